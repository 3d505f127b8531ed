"""The command line: a module for each family of verbs, and the group that holds them.

Verdicts and names go to standard output, diagnostics to standard error. Exit status: 0 yes, 1 no, 2 input
not understood or wrong usage, 3 yes but not certain where `--strict` is given.
"""

from collections.abc import Sequence
from typing import Final

import click

from substrate_compat import __version__
from substrate_compat.cli import (
    check,
    demo,
    features,
    fleet,
    level,
    matrix,
    plan,
    probe,
    runtime_hash,
    table,
)
from substrate_compat.cli.output import complain
from substrate_compat.errors import CompatError, shortened

__all__ = ["main", "run"]

_INTERRUPTED: Final = 130


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 yes, 1 no, 2 input not understood, 3 yes but not certain (with --strict).",
)
@click.version_option(__version__, prog_name="substrate-compat")
def main() -> None:
    """Can this worker restore this sandbox snapshot, and if not, exactly why not?

    A FILE of `-` is standard input.
    """


for _verb in (
    *probe.VERBS,
    *check.VERBS,
    *level.VERBS,
    *matrix.VERBS,
    *features.VERBS,
    *plan.VERBS,
    *runtime_hash.VERBS,
    *fleet.VERBS,
    *table.VERBS,
    *demo.VERBS,
):
    main.add_command(_verb)


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit status; an input that is not understood gives 2."""
    try:
        status = main.main(arguments, prog_name="substrate-compat", standalone_mode=False)
    except click.exceptions.Abort:
        complain("interrupted")
        return _INTERRUPTED
    except click.ClickException as error:
        message = shortened(error.format_message())
        context = error.ctx if isinstance(error, click.UsageError) else None
        click.UsageError(message, context).show()
        return error.exit_code
    except CompatError as error:
        complain(str(error))
        return 2
    return status if isinstance(status, int) else 0
