"""The verb `matrix`: who can restore whose snapshots, as a table and as a page."""

from typing import Final

import click

from substrate_compat.cli.fleets import offers, read_fleet
from substrate_compat.cli.matrix_page import matrix_page
from substrate_compat.cli.options import architecture_option, json_option, sandbox_class_option
from substrate_compat.cli.output import Json, note, say, say_json
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.files import write_whole
from substrate_compat.matrix import Cell, Matrix, matrix
from substrate_compat.wording import describe_unchecked, few

__all__ = ["VERBS"]


@click.command("matrix")
@click.argument("files", metavar="[NAME=]FILE...", nargs=-1, required=True)
@click.option("--html", metavar="FILE", help="Write the matrix as a page for a browser, with every reason.")
@sandbox_class_option
@architecture_option
@json_option
def _matrix(
    *,
    files: tuple[str, ...],
    html: str | None,
    sandbox_class: str | None,
    architecture: Architecture | None,
    as_json: bool,
) -> None:
    """Print who can restore whose snapshots: a row is a snapshot, a column is a worker.

    FILE is a runsc listing, a mask, the output of `cpuid -r`, an identity, a sandbox-runtimes.json, or has
    a worker as JSON in each line. Workers that offer the same are one row and one column.
    """
    found = matrix(offers(read_fleet(files, architecture, sandbox_class)))
    if html is not None:
        write_whole(html, matrix_page(found).encode())
    if as_json:
        say_json(_as_json(found))
        return
    _say_matrix(found)
    if html is not None:
        note(f"written: {html}")


def _say_matrix(found: Matrix) -> None:
    width = max(4, len(str(len(found.groups))) + 1)
    numbers = range(1, len(found.groups) + 1)
    say("A row is a snapshot, by the worker it was taken on; a column is the worker that is to restore it.")
    say("yes: it can; -7: it lacks 7 CPU features; no: for another reason")
    say("")
    say(" " * width + "".join(f"{number:>{width}}" for number in numbers), style="bold")
    for number, group, cells in zip(numbers, found.groups, found.rows, strict=True):
        row = "".join(f"{_mark(cell):>{width}}" for cell in cells)
        say(f"{number:>{width}}{row}  {few(group)}")
    say("")
    say(f"{found.accepted} of {found.workers**2} restores can succeed")
    for item in found.unchecked:
        note(f"unchecked: {describe_unchecked(item)}")


def _mark(cell: Cell) -> str:
    if cell.compatible:
        return "yes"
    return f"-{len(cell.missing)}" if cell.missing and len(cell.mismatches) == 1 else "no"


def _as_json(found: Matrix) -> Json:
    return {
        "groups": [list(group) for group in found.groups],
        "rows": [[_cell_json(cell) for cell in row] for row in found.rows],
        "canRestore": found.accepted,
        "of": found.workers**2,
        "unchecked": list(found.unchecked),
    }


def _cell_json(cell: Cell) -> Json:
    return {
        "compatible": cell.compatible,
        "missingFeatures": list(cell.missing),
        "reasons": [mismatch.reason.value for mismatch in cell.mismatches],
    }


VERBS: Final = (_matrix,)
