"""The hosts of a fleet, by feature set, and which of them a level can stand on.

A level is put into force by gVisor, on amd64 only, and there not on every host: see `equal_hosts`.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final

from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import InputError, quoted
from substrate_compat.guest import require_amd64

__all__ = ["equal_hosts", "named", "require_basis"]

_BASIS: Final = tuple(
    (FeatureSet.from_names(Architecture.AMD64, names.split(",")), why)
    for names, why in (
        # `syscall` is left out: what a 32-bit program reads of an Intel processor does not show it.
        ("cmov,cx8,fpu,fxsr,lm,mmx,sse,sse2,tsc", "which x86-64 itself requires"),
        ("osxsave", "without which gVisor reports xsave or not from run to run"),
        ("xsave", "which gVisor never takes away from a guest"),
    )
)
"""What a level stands on, and why."""
_MOST_NAMED: Final = 5
_LONGEST_NAMED: Final = 40


def equal_hosts(hosts: Mapping[str, FeatureSet]) -> dict[FeatureSet, tuple[str, ...]]:
    """The distinct feature sets of a fleet that can be levelled, each with its hosts' names, sorted.

    The sets are ordered by mask, so that the order of the hosts changes nothing.

    Raises:
        InputError: there is no host; a host is of another architecture than amd64, or lacks `osxsave`,
            `xsave` or what x86-64 itself requires. All such hosts are named.

    >>> names = "cmov,cx8,fpu,fxsr,lm,mmx,osxsave,sse,sse2,tsc,xsave".split(",")
    >>> basis = FeatureSet.from_names(Architecture.AMD64, names)
    >>> equal_hosts({"b": basis, "a": basis}).values()
    dict_values([('a', 'b')])
    """
    if not hosts:
        raise InputError("level", "there is no host", "name the hosts of the fleet")
    groups: dict[FeatureSet, list[str]] = {}
    for name in sorted(hosts):
        groups.setdefault(hosts[name], []).append(name)
    _require_basis_everywhere(groups)
    return {features: tuple(groups[features]) for features in sorted(groups, key=attrgetter("bits"))}


def require_basis(features: FeatureSet) -> None:
    """Refuse a set that gVisor cannot be told to show.

    Raises:
        InputError: the set is not of amd64, is empty, or lacks `osxsave`, `xsave` or what x86-64
            itself requires.
    """
    require_amd64(features)
    remedy = "take the common level of the hosts of a fleet"
    if not features:
        raise InputError("level", "it is empty", remedy)
    if lacking := _lacking(features):
        raise InputError("level", f"it lacks {lacking}", remedy)


def named(names: Iterable[str]) -> str:
    """The first few of some names, as they may stand in a message.

    >>> named(["b", "a"]), named("abcdefg")
    ("'a', 'b'", "'a', 'b', 'c', 'd', 'e' and 2 more")
    """
    first = sorted(names)
    more = len(first) - _MOST_NAMED
    quotes = ", ".join(quoted(name, _LONGEST_NAMED) for name in first[:_MOST_NAMED])
    return quotes + (f" and {more} more" if more > 0 else "")


def _require_basis_everywhere(groups: Mapping[FeatureSet, Sequence[str]]) -> None:
    faults = []
    for features, names in groups.items():
        if features.architecture is not Architecture.AMD64:
            faults.append((names, f"of {features.architecture}, on which gVisor knows no levels"))
        elif lacking := _lacking(features):
            faults.append((names, f"without {lacking}"))
    if faults:
        told = [f"{named(names)}: {fault}" for names, fault in faults[:_MOST_NAMED]]
        if more := len(faults[_MOST_NAMED:]):
            told.append(f"and {more} more kinds of host")
        raise InputError(
            "level",
            "; ".join(told),
            "leave these hosts out: a snapshot of theirs needs an equal host",
        )


def _lacking(features: FeatureSet) -> str:
    """What a set of amd64 lacks for a level to stand on, and why; empty where nothing."""
    missing = ((required - features, why) for required, why in _BASIS)
    return ", and ".join(f"{','.join(names)}, {why}" for names, why in missing if names)
