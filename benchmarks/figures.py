"""What a benchmark reports: a figure, what it is held against, and its bar."""

from collections.abc import Iterable
from typing import Final

import attrs
from rich.console import Console
from rich.table import Table

__all__ = ["Figure", "as_json", "print_table"]

_SCALES: Final = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
    "bytes": ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")),
}


@attrs.frozen
class Figure:
    """One measured value.

    Attributes:
        name: what was measured.
        value: in `unit`.
        peer: what it is held against; None where the bar is on the value itself.
        peer_value: the peer's value in the same run, in `unit`.
        bar: the most that `measured` should be; None for a figure that is only shown.
        unit: `s` or `bytes`.
        group: the group that took it; filled in by the runner.
    """

    name: str
    value: float
    peer: str | None = None
    peer_value: float | None = None
    bar: float | None = None
    unit: str = "s"
    group: str = ""

    @property
    def ratio(self) -> float | None:
        """The value in units of the peer's; None without a peer."""
        return None if self.peer_value is None else self.value / self.peer_value

    @property
    def over(self) -> bool:
        """The figure misses its bar."""
        measured = self.value if self.ratio is None else self.ratio
        return self.bar is not None and measured > self.bar


def as_json(figure: Figure) -> dict[str, object]:
    """The figure for machines."""
    fields = attrs.asdict(figure)
    return {**fields, "ratio": figure.ratio, "over": figure.over}


def print_table(figures: Iterable[Figure], console: Console) -> None:
    """The figures for people, one a row."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for head in ("group", "figure"):
        table.add_column(head, overflow="fold")
    table.add_column("here", justify="right", no_wrap=True)
    table.add_column("peer", overflow="fold")
    for head in ("there", "ratio", "bar"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for figure in figures:
        ratio = figure.ratio
        table.add_row(
            figure.group,
            figure.name,
            _quantity(figure.value, figure.unit),
            figure.peer or "",
            "" if figure.peer_value is None else _quantity(figure.peer_value, figure.unit),
            "" if ratio is None else _times(ratio),
            _bar(figure),
            "" if figure.bar is None else "[bold red]over[/]" if figure.over else "[green]ok[/]",
        )
    console.print(table)


def _bar(figure: Figure) -> str:
    if figure.bar is None:
        return ""
    return _quantity(figure.bar, figure.unit) if figure.ratio is None else _times(figure.bar)


def _times(ratio: float) -> str:
    return f"{ratio:.3g} x" if ratio >= 0.6 else f"1/{1 / ratio:.3g}"


def _quantity(value: float, unit: str) -> str:
    scales = _SCALES[unit]
    scale, name = next((each for each in scales if abs(value) >= each[0]), scales[-1])
    return f"{value / scale:.3g} {name}"
