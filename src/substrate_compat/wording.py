"""The words for a person: what a verdict and the other values say, in plain text.

The words are deterministic and carry no markup. A sentence about a restore names its direction.
"""

import re
from collections.abc import Sequence
from functools import singledispatch
from typing import Final

from substrate_compat.cpufeatures import decode_cpu_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import quoted, shortened
from substrate_compat.guest import XSAVE_NOTE
from substrate_compat.identity import ARCHITECTURE, CPU_CACHE_LINE, SANDBOX_RUNTIME_HASH
from substrate_compat.levels import Level, LevelChoice, level_name, unannounced
from substrate_compat.match import Mismatch, Reason, Unchecked, Verdict, WorkerVerdict
from substrate_compat.plan import LeftOut, Plan
from substrate_compat.probe import Probed
from substrate_compat.whatif import Pin
from substrate_compat.why_none import Excluded, NearMiss, WhyNone

__all__ = ["describe", "describe_unchecked", "few", "runtime_name"]

_is_plain: Final = re.compile(r"[0-9A-Za-z_./-]{1,60}").fullmatch

_MOST_NAMED: Final = 5

_CALLED: Final = {
    ARCHITECTURE: "the architecture",
    CPU_CACHE_LINE: "the cache line size",
    SANDBOX_RUNTIME_HASH: "the runtime hash (the binaries and the pause image)",
    Reason.SANDBOX_CLASS: "the sandbox class",
    Reason.SCHEMA_VERSION: "the schema version",
}

_UNCHECKED: Final = {
    Unchecked.IDENTITY: "everything: the snapshot carries no identity",
    Unchecked.SANDBOX_CLASS: "what this sandbox class depends on: no profile of it is known",
    Unchecked.SCHEMA_VERSION: "what this schema version means: only v1 is known",
    Unchecked.BEYOND_HWCAP: "arm64 features beyond the 24 HWCAP bits that gVisor checks: a guest can read "
    "them from the ID registers",
    Unchecked.TSC_RATE: "the TSC rate",
    CPU_CACHE_LINE: "the cache line size, which gVisor also compares: not recorded in the snapshot",
}

_NEAREST_SHOWN: Final = 5


@singledispatch
def describe(value: object) -> str:
    """The words for `value`: several lines where there is more than one thing to say.

    Raises:
        TypeError: a value that has no words here.

    >>> print(describe(Mismatch(Reason.MISSING_FEATURES, "cpu_features", "1", "3", ("pclmulqdq",))))
    the worker lacks 1 CPU feature that the guest saw: pclmulqdq
    """
    raise TypeError(f"there are no words for a {type(value).__name__}")


def describe_unchecked(item: str) -> str:
    """The words for one member of `Verdict.unchecked`.

    >>> describe_unchecked("cpu_model")
    'cpu_model: not recorded in the snapshot'
    """
    return _UNCHECKED.get(item, f"{item}: not recorded in the snapshot")


def few(names: Sequence[str]) -> str:
    """The first few of some names, and how many more there are.

    >>> few("ab"), few("abcdefg")
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    more = len(names) - _MOST_NAMED
    shown = [name if name.isprintable() else quoted(name) for name in names[:_MOST_NAMED]]
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def runtime_name(position: int) -> str:
    """What a worker's runtime is called by its place: 0 is the default.

    >>> runtime_name(0), runtime_name(2)
    ('default runtime', 'restorable runtime 2')
    """
    return f"restorable runtime {position}" if position else "default runtime"


@describe.register
def _(mismatch: Mismatch) -> str:
    match mismatch.reason:
        case Reason.NO_WORKER:
            return "there is no worker identity to restore it"
        case Reason.MISSING_KEY:
            return f"the worker has no {_key(mismatch.key)}, the snapshot needs {_value(mismatch.snapshot)}"
        case Reason.MISSING_FEATURES:
            return _missing_features(mismatch)
        case Reason.UNREADABLE_FEATURES:
            return (
                f"the CPU features cannot be read: worker {_value(mismatch.worker)}, "
                f"snapshot {_value(mismatch.snapshot)}"
            )
        case _:
            called = _CALLED.get(mismatch.key, _key(mismatch.key))
            return (
                f"{called} differs: worker {_value(mismatch.worker)}, snapshot {_value(mismatch.snapshot)}"
            )


def _missing_features(mismatch: Mismatch) -> str:
    count = len(mismatch.features)
    text = f"the worker lacks {_features(count)} that the guest saw: {', '.join(mismatch.features)}"
    if mismatch.worker is not None and "xsave" in mismatch.features:
        worker = decode_cpu_features(mismatch.worker, Architecture.AMD64)
        if "osxsave" not in worker:
            text += f" ({XSAVE_NOTE})"
    return text


@describe.register
def _(verdict: Verdict) -> str:
    if not verdict.compatible:
        reasons = [f"- {describe(mismatch)}" for mismatch in verdict.mismatches]
        return "\n".join(["no", *reasons])
    if verdict.certain:
        return "yes"
    unchecked = [f"- unchecked: {describe_unchecked(item)}" for item in verdict.unchecked]
    return "\n".join(["yes, as far as was recorded", *unchecked])


@describe.register
def _(verdict: WorkerVerdict) -> str:
    for position, each in enumerate(verdict.verdicts):
        if each.compatible:
            answer, *rest = describe(each).split("\n")
            under = f" (under its {runtime_name(position)})" if position else ""
            return "\n".join([answer + under, *rest])
    if len(verdict.verdicts) == 1:
        return describe(verdict.verdicts[0])
    lines = ["no"]
    for position, each in enumerate(verdict.verdicts):
        lines.append(f"- {runtime_name(position)}:")
        lines.extend(f"  - {describe(mismatch)}" for mismatch in each.mismatches)
    return "\n".join(lines)


@describe.register
def _(level: Level) -> str:
    lines = [f"{level_name(level.features)}: {_features(len(level.features))} that every host has"]
    by_hosts: dict[tuple[str, ...], list[str]] = {}
    for feature, hosts in level.dropped.items():
        by_hosts.setdefault(hosts, []).append(feature)
    lines.extend(f"- not on {few(hosts)}: {', '.join(names)}" for hosts, names in by_hosts.items())
    if hidden := unannounced(level.features):
        lines.append(f"- not in the annotation, since no runsc is known to know it: {', '.join(hidden)}")
    return "\n".join(lines)


@describe.register
def _(pin: Pin) -> str:
    gained = f"{_features(len(pin.gained))}: {', '.join(pin.gained)}" if pin.gained else "nothing"
    return f"without {few(pin.hosts)} the level would gain {gained}"


@describe.register
def _(choice: LevelChoice) -> str:
    count = len(choice.groups)
    levels = "1 level" if count == 1 else f"{count} levels"
    lines = [f"with {levels} the hosts give up {choice.loss} in all (features, times each host's weight)"]
    for more, gain in enumerate(choice.gains, start=count + 1):
        lines.append(f"- with {more} levels: {choice.losses[more - 1]}, which is {gain} less")
    if not choice.exact:
        lines.append("- there may be better choices: with so many feature sets not all can be tried")
    return "\n".join(lines)


@describe.register
def _(probed: Probed) -> str:
    lines = [f"left out: {key}: {reason}" for key, reason in probed.left_out.items()]
    return "\n".join([*lines, *(f"note: {note}" for note in probed.notes)])


@describe.register
def _(why: WhyNone) -> str:
    if not why.workers:
        return "there are no workers"
    total = "the only worker cannot" if why.workers == 1 else f"none of {why.workers:,} workers can"
    lines = [f"{total} restore the snapshot; a worker counts under each reason:"]
    lines.extend(f"- {describe(excluded)}" for excluded in why.excluded)
    if not why.nearest:
        return "\n".join(
            [*lines, "nearest: none; more than missing CPU features speaks against every runtime"]
        )
    lines.append("nearest, where only CPU features are missing:")
    lines.extend(f"- {describe(miss)}" for miss in why.nearest[:_NEAREST_SHOWN])
    left_out = why.nearest[_NEAREST_SHOWN:]
    if left_out:
        lines.append(f"- {_workers(sum(miss.workers for miss in left_out))}: as many features, but others")
    return "\n".join(lines)


@describe.register
def _(excluded: Excluded) -> str:
    match excluded.reason:
        case Reason.MISSING_KEY:
            reason = f"there is no {_key(excluded.key)}"
        case Reason.MISSING_FEATURES:
            reason = "CPU features that the guest saw are missing"
        case Reason.UNREADABLE_FEATURES:
            reason = "the CPU features cannot be read"
        case _:
            reason = f"{_CALLED.get(excluded.key, _key(excluded.key))} differs"
    return f"{_workers(excluded.workers)}: {reason}"


@describe.register
def _(miss: NearMiss) -> str:
    return f"{_workers(miss.workers)}: {', '.join(miss.features)}"


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count:,} workers"


def _features(count: int) -> str:
    return "1 CPU feature" if count == 1 else f"{count} CPU features"


def _key(text: str) -> str:
    return text if _is_plain(text) else quoted(text)


@describe.register
def _(left_out: LeftOut) -> str:
    return f"left out: {shortened(left_out.name)}: {left_out.problem}"


@describe.register
def _(plan: Plan) -> str:
    return "\n".join([*map(describe, plan.left_out), *(f"note: {note}" for note in plan.notes)])


def _value(text: str | None) -> str:
    return "none" if text is None else quoted(text)
