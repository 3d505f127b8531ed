"""The verb `table verify`: does the table know every feature name that this runsc prints?"""

from collections.abc import Collection
from typing import Final

import click

from substrate_compat.cli.inputs import read_text
from substrate_compat.cli.options import architecture_option, json_option
from substrate_compat.cli.output import EXIT_NO, EXIT_YES, say, say_json
from substrate_compat.cpufeatures import known_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import InputError
from substrate_compat.runsc import listed_names, run_listing, unknown_names

__all__ = ["VERBS"]

_HOW_TO_ADD: Final = {
    Architecture.AMD64: """\
Until then its hosts cannot be probed by it. A newer substrate-compat may know them; else add a row for each
to cpufeatures_table.py, whose head says how:
- gVisor's pkg/cpuid/features_amd64.go has the constant with its block and bit;
- value = 32 * block + bit; name = what runsc prints, which is often not the constant's.
Upgrade what reads masks before what writes them: a reader refuses a bit that it cannot name.""",
    Architecture.ARM64: """\
Until then its hosts cannot be probed by it. A newer substrate-compat may know them; else add a row for each
to cpufeatures_table.py, whose head says how:
- gVisor's pkg/cpuid/features_arm64.go has the constant with its bit of the ELF HWCAP word;
- value = that bit; name = what runsc prints, which is often not the constant's.
Upgrade what reads masks before what writes them: a reader refuses a bit that it cannot name.""",
}


@click.group("table")
def _table() -> None:
    """Hold the table of feature names against a runsc."""


@_table.command("verify")
@click.option("--runsc", metavar="PATH", help="Ask this runsc, on this host.")
@click.option("--features", metavar="FILE", help="The output of `runsc cpu-features`.")
@architecture_option
@json_option
def _verify(
    *, runsc: str | None, features: str | None, architecture: Architecture | None, as_json: bool
) -> int:
    """Say which names this runsc prints that the table does not know, and how to add them.

    Run it with each new runsc before it is rolled out. Exit status 1 if there are such names.
    """
    if (runsc is None) == (features is None):
        raise click.UsageError("give either --runsc or --features")
    listing = run_listing(runsc) if runsc is not None else read_text(features or "")
    names = frozenset(listed_names(listing))
    known = architecture or _architecture_of(names)
    unknown = unknown_names(names, known)
    if as_json:
        say_json({"architecture": known.value, "names": len(names), "unknown": list(unknown)})
    elif unknown:
        say(f"drift: of {len(names)} names on {known} the table does not know {len(unknown)}:", style="red")
        say("\n".join(f"- {name}" for name in unknown))
        say(_HOW_TO_ADD[known])
    else:
        say(f"no drift: the table knows all {len(names)} names on {known}", style="green")
    return EXIT_NO if unknown else EXIT_YES


def _architecture_of(names: Collection[str]) -> Architecture:
    """The architecture to which most of the names belong; unknown ones are what is looked for."""
    amd64, arm64 = (
        sum(feature.name in names for feature in known_features(architecture))
        for architecture in (Architecture.AMD64, Architecture.ARM64)
    )
    if amd64 == arm64:
        problem = f"as many of its names are of amd64 as of arm64: {amd64}"
        raise InputError("runsc listing", problem, "say which with --arch, if it is a listing")
    return Architecture.AMD64 if amd64 > arm64 else Architecture.ARM64


VERBS: Final = (_table,)
