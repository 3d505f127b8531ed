"""`docs/proof.md`: what campaigns saw and what the library said, for a reader who wants to check it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from proof.record import Record
from proof.verdicts import (
    Judgement,
    disagreements,
    features,
    judge_chain,
    judge_level,
    judge_restores,
    workers,
)
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.probe import parse_cpuinfo

__all__ = ["report", "summary"]

_HEAD = """\
# Proof: the verdict against real gVisor restores

This page is written by `make proof` (see [proof/README.md](../proof/README.md)). On emulated machines of
many CPU models, gVisor took snapshots of a container that counts, and restored each snapshot on each
machine. *Alive* means that the counter went on where the checkpoint had left it. The library was given
what was read on each machine (`runsc cpu-features` and `/proc/cpuinfo`), and its verdict was held against
what happened.
"""

_LEGEND = """\
In the tables that follow, a row is where the snapshot was taken, a column where it was restored, by the
numbers of the machines.

| cell | the library | gVisor |
| --- | --- | --- |
| `+` | yes | went on |
| `-` | no, naming missing features | refused, naming the same features |
| `(+)` `(-)` | no | went on, or refused, on a worker without usable XSAVE (no `osxsave`) |
| `!` | | a disagreement |
| blank | | not run |

Without usable XSAVE, gVisor counts `xsave` or not from run to run, and may refuse its own snapshots; so
there the library does not promise what needs it.
"""


def report(records: Sequence[Record]) -> str:
    """The whole page, for the campaigns in the order given."""
    return "\n".join([_HEAD, _LEGEND, *(_section(record) for record in records)])


def summary(record: Record) -> Iterator[str]:
    """The counts, a sentence each."""
    offered = workers(record)
    matrix = list(judge_restores(record, offered))
    yield _counts(matrix)
    level = list(judge_level(record, offered))
    if level:
        alive = sum(judgement.restore.alive for judgement in level)
        yield f"Under the level: {alive} of {len(level)} restores went on."
    refused = record.level.refused
    if refused:
        count = f"{len(refused)} of {len(record.machines)}"
        yield f"Under the annotation, no sandbox started on {count} machines."
    for judgement in judge_chain(record, offered):
        went = "went on" if judgement.restore.alive else "failed"
        yield f"Chain: {judgement.restore.snapshot} -> {judgement.restore.worker} {went}."
    found = sum(1 for _ in disagreements(record, offered))
    yield f"Disagreements: {found}."


def _counts(matrix: Sequence[Judgement]) -> str:
    count = Counter(_cell(judgement) for judgement in matrix)
    parts = [
        f"{count['+']} yes and alive",
        f"{count['-']} no and refused, for the very features that the verdict names",
    ]
    doubtful = count["(+)"] + count["(-)"]
    if doubtful:
        went = f"{count['(+)']} went on and {count['(-)']} did not"
        parts.append(f"{doubtful} no on a worker without usable XSAVE, where {went}")
    return f"{len(matrix)} restores: {'; '.join(parts)}; {count['!']} otherwise."


def _cell(judgement: Judgement) -> str:
    if judgement.disagreement:
        return "!"
    mark = "+" if judgement.restore.alive else "-"
    if judgement.doubtful and not judgement.verdict.compatible:
        return f"({mark})"
    return mark


def _section(record: Record) -> str:
    offered = workers(record)
    parts = [
        f"## {record.architecture.value}\n",
        *_paragraph(_versions(record)),
        *_paragraph(f"- {line}" for line in summary(record)),
        *_paragraph(f"- **{line}**" for line in disagreements(record, offered)),
        *_paragraph(f"- Not run: `{model}`: {reason}" for model, reason in record.not_run.items()),
        "### Machines\n",
        *_table(("", "model", "vendor", "features", "osxsave"), _machines(record)),
        "### Every snapshot on every machine\n",
        *_matrix(record, judge_restores(record, offered)),
    ]
    return "\n".join([*parts, *_level(record, judge_level(record, offered))])


def _versions(record: Record) -> Iterator[str]:
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    yield (
        f"{versions}; QEMU emulates each model by software alone (TCG). "
        f"The machines ran for {record.machine_seconds} s together."
    )


def _machines(record: Record) -> Iterator[tuple[str, ...]]:
    for number, machine in enumerate(record.machines, 1):
        names = features(machine, record.architecture)
        vendor = parse_cpuinfo(machine.cpuinfo).vendor or "?"
        osxsave = "" if record.architecture is Architecture.ARM64 else "yes" if "osxsave" in names else "no"
        yield str(number), f"`{machine.model}`", vendor, str(len(names)), osxsave


def _matrix(record: Record, judgements: Iterable[Judgement]) -> Iterator[str]:
    cells = {(each.restore.snapshot, each.restore.worker): _cell(each) for each in judgements}
    models = [machine.model for machine in record.machines if any(machine.model in pair for pair in cells)]
    numbers = {machine.model: str(number) for number, machine in enumerate(record.machines, 1)}
    rows = (
        (numbers[taken], f"`{taken}`", *(cells.get((taken, worker), "") for worker in models))
        for taken in models
    )
    yield from _table(("", "snapshot of", *(numbers[model] for model in models)), rows)


def _level(record: Record, judgements: Iterable[Judgement]) -> Iterator[str]:
    level = record.level
    yield "### Under the annotation\n"
    yield f"`dev.gvisor.internal.cpufeatures`: `{level.annotation}`\n"
    if level.guests:
        yield (
            "It is the common level of the machines below. The flags in each sandbox's `/proc/cpuinfo` "
            "were held against the library's `guest_flags` of the machine's levelled set.\n"
        )
        yield from _matrix(record, judgements)
    if level.refused:
        yield "No sandbox starts under it:\n"
        yield from _table(("model", "runsc"), _refusals(level.refused))


def _refusals(refused: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    for model, said in refused.items():
        yield f"`{model}`", said.replace("|", "\\|")


def _paragraph(lines: Iterable[str]) -> Iterator[str]:
    text = "\n".join(lines)
    if text:
        yield text + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    lines = [head, ["---"] * len(head), *rows]
    yield "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
