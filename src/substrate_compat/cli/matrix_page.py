"""The matrix as one page of HTML that loads nothing, for a screen, for paper and for a screen reader.

What colour says, a symbol says too: dark with a tick is yes, light with a cross and the number of missing
features is no. Every no is a link to its reasons in the list below.
"""

import html
from collections.abc import Iterator, Sequence
from importlib import resources
from string import Template
from typing import Final

from substrate_compat.matrix import Cell, Matrix
from substrate_compat.wording import describe, describe_unchecked

__all__ = ["matrix_page"]

_LONGEST_HEAD: Final = 44
_POLICY: Final = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_PAGE: Final = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>$title</title>
<style>
$style</style>
</head>
<body>
<h1>$title</h1>
<p class="lead">$summary</p>
$body</body>
</html>
""")


def matrix_page(matrix: Matrix, title: str = "Who can restore whose snapshots") -> str:
    """The page of a matrix: a table of snapshots and workers, and below it every reason.

    >>> from substrate_compat.cpufeatures import FeatureSet
    >>> from substrate_compat.cpufeatures_table import Architecture
    >>> from substrate_compat.matrix import matrix, worker_of_features
    >>> host = FeatureSet.from_names(Architecture.AMD64, ["osxsave"])
    >>> page = matrix_page(matrix({"<host>": worker_of_features(host)}))
    >>> "&lt;host&gt;" in page, "<host>" in page
    (True, False)
    """
    style = resources.files("substrate_compat.cli").joinpath("matrix_page.css").read_text()
    return _PAGE.substitute(
        policy=_POLICY,
        title=_text(title),
        style=style + "".join(_crosshair(len(matrix.groups))),
        summary=_text(_summary(matrix)),
        body="".join(_body(matrix)),
    )


def _summary(matrix: Matrix) -> str:
    machines = _count(matrix.workers, "machine")
    if len(matrix.groups) != matrix.workers:
        machines += f" of {_count(len(matrix.groups), 'kind')}"
    if matrix.accepted == matrix.workers**2:
        return f"{machines}: each can restore the snapshots of every one."
    return (
        f"{machines}. Of the {matrix.workers**2} restores of a snapshot of one on another or on itself, "
        f"{matrix.accepted} can succeed."
    )


def _body(matrix: Matrix) -> Iterator[str]:
    yield _LEGEND
    yield from _table(matrix)
    yield from _kinds(matrix)
    yield from _reasons(matrix)
    if matrix.unchecked:
        yield "<h2>What a yes leaves open</h2>\n<ul>\n"
        yield from (f"<li>{_text(describe_unchecked(item))}</li>\n" for item in matrix.unchecked)
        yield "</ul>\n"


_LEGEND: Final = """\
<ul class="legend">
<li><span class="key yes" aria-hidden="true">✓</span> the snapshot can be restored</li>
<li><span class="key no" aria-hidden="true">✗<small>7</small></span> no: 7 CPU features are missing</li>
<li><span class="key no" aria-hidden="true">✗</span> no, for another reason</li>
<li><span class="key yes own" aria-hidden="true">✓</span> a machine's own snapshot</li>
</ul>
"""


def _table(matrix: Matrix) -> Iterator[str]:
    names = [_named(group) for group in matrix.groups]
    titles = [_text(", ".join(group)) for group in matrix.groups]
    yield (
        '<div class="scroll" role="region" aria-label="Matrix" tabindex="0">\n<table>\n'
        "<caption>A row is a snapshot, by the machine that it was taken on; a column is a machine that "
        'is to restore it.</caption>\n<thead>\n<tr><td class="corner"><div>snapshot taken on&nbsp;↓</div>'
        "<div>restored on&nbsp;→</div></td>\n"
    )
    for column, (name, title) in enumerate(zip(names, titles, strict=True), start=1):
        head = _text(_short(name))
        yield f'<th scope="col" title="{title}"><div><b>{column}</b> {head}</div></th>\n'
    yield "</tr>\n</thead>\n<tbody>\n"
    for row, cells in enumerate(matrix.rows):
        yield f'<tr><th scope="row" title="{titles[row]}"><b>{row + 1}</b> {_text(names[row])}</th>\n'
        for column, cell in enumerate(cells):
            yield _cell(cell, names, row, column)
        yield "</tr>\n"
    yield "</tbody>\n</table>\n</div>\n"


def _cell(cell: Cell, names: Sequence[str], row: int, column: int) -> str:
    own = " own" if row == column else ""
    pair = f"a snapshot of {row + 1} {names[row]} on {column + 1} {names[column]}"
    if cell.compatible:
        words = _text(f"yes: {pair}")
        return f'<td class="yes{own}" title="{words}"><span role="img" aria-label="{words}">✓</span></td>\n'
    count = f"<small>{len(cell.missing)}</small>" if len(cell.mismatches) == 1 and cell.missing else ""
    reasons = "\n".join(describe(mismatch) for mismatch in cell.mismatches)
    short = f", {_count(len(cell.missing), 'CPU feature')} missing" if cell.missing else ""
    return (
        f'<td class="no{own}" title="{_text(f"no: {pair}: {reasons}")}">'
        f'<a href="#s{row + 1}w{column + 1}" aria-label="{_text(f"no: {pair}{short}")}">✗{count}</a></td>\n'
    )


def _kinds(matrix: Matrix) -> Iterator[str]:
    """The names of machines that offer the same, where the table could not show them all."""
    groups = [(number, group) for number, group in enumerate(matrix.groups, start=1) if len(group) > 1]
    if groups:
        yield "<h2>Machines that offer the same</h2>\n<ul>\n"
        for number, group in groups:
            yield f"<li><b>{number}</b> {_text(', '.join(group))}</li>\n"
        yield "</ul>\n"


def _reasons(matrix: Matrix) -> Iterator[str]:
    """Every no with its reasons, by snapshot; workers with the same reasons together."""
    refused = [row for row, cells in enumerate(matrix.rows) if not all(cell.compatible for cell in cells)]
    if refused:
        yield "<h2>Why not</h2>\n"
    for row in refused:
        name = _text(_named(matrix.groups[row]))
        yield f"<section>\n<h3>A snapshot of <b>{row + 1}</b> {name}</h3>\n<dl>\n"
        reasons: dict[tuple[str, ...], list[int]] = {}
        for column, cell in enumerate(matrix.rows[row]):
            if not cell.compatible:
                words = tuple(describe(mismatch) for mismatch in cell.mismatches)
                reasons.setdefault(words, []).append(column)
        for words, columns in sorted(reasons.items(), key=lambda item: len(item[0])):
            for column in columns:
                worker = f"<b>{column + 1}</b> {_text(_named(matrix.groups[column]))}"
                yield f'<dt id="s{row + 1}w{column + 1}">on {worker}</dt>\n'
            yield from (f"<dd>{_text(line)}</dd>\n" for line in words)
        yield "</dl>\n</section>\n"


def _crosshair(columns: int) -> Iterator[str]:
    """The rules that mark the head of the column under the pointer."""
    for column in range(2, columns + 2):
        nth = f":nth-child({column})"
        yield f"table:has(td{nth}:hover) thead th{nth} div {{ color: var(--mark); }}\n"


def _named(group: Sequence[str]) -> str:
    """What a group of equal machines is called where there is little room."""
    return group[0] if len(group) == 1 else f"{group[0]} and {len(group) - 1} more"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_HEAD else f"{name[: _LONGEST_HEAD - 1]}…"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _text(text: str) -> str:
    """`text` for HTML; what cannot be seen is escaped, so that no name hides or turns round the text."""
    seen = (each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in text)
    return html.escape("".join(seen))
