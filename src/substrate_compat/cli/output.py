"""What the verbs print: verdicts on standard output, diagnostics on standard error."""

import json
from collections.abc import Sequence
from typing import Final

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from substrate_compat.errors import visible

__all__ = [
    "EXIT_NO",
    "EXIT_UNCERTAIN",
    "EXIT_YES",
    "Json",
    "complain",
    "note",
    "say",
    "say_json",
    "say_table",
]

EXIT_YES: Final = 0
EXIT_NO: Final = 1
EXIT_UNCERTAIN: Final = 3

Json = str | int | float | bool | None | Sequence["Json"] | dict[str, "Json"]


def say(text: str, style: str = "") -> None:
    """Print lines, which carry no markup, to standard output; they are not wrapped.

    What cannot be seen in them is escaped: a name must not turn a terminal's colours or its text round.
    """
    console = Console(highlight=False, soft_wrap=True, emoji=False)
    console.print(_visible_lines(text), style=style, markup=False)


def say_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to standard output."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*(escape(visible(cell)) for cell in row))
    Console(highlight=False, emoji=False).print(table)


def say_json(value: Json) -> None:
    """Print a value as JSON to standard output."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if not text.replace("\n", "").isprintable():
        # Escapes as JSON knows them, so that a program reads what was there.
        text = "".join(
            each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text
        )
    click.echo(text)


def note(text: str) -> None:
    """Print what a person should know to standard error."""
    console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
    console.print(_visible_lines(text), style="dim", markup=False)


def complain(text: str) -> None:
    """Print an error to standard error."""
    console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
    console.print(f"error: {_visible_lines(text)}", style="red", markup=False)


def _visible_lines(text: str) -> str:
    return "\n".join(map(visible, text.split("\n")))
