"""Why no worker of a fleet can restore a snapshot: how many each reason excludes, and who comes nearest."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from substrate_compat.bitmaps import selectors
from substrate_compat.chunks import Chunk, Group, fewest_missing
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.families import Family, Shape
from substrate_compat.identity import CPU_FEATURES, SandboxRuntime
from substrate_compat.match import Reason, explain

__all__ = ["Excluded", "NearMiss", "WhyNone", "why_none"]


@attrs.frozen
class Excluded:
    """How many workers one reason excludes.

    Attributes:
        reason: of which kind.
        key: the attribute key, or the name of the field that differs, as in `Mismatch`.
        workers: how many workers have a runtime that this speaks against; at least 1.
    """

    reason: Reason
    key: str
    workers: int


@attrs.frozen
class NearMiss:
    """Workers that lack nothing but the same few CPU features.

    Attributes:
        features: the names of the missing features, sorted.
        workers: how many workers are so near.
        runtimes: the different runtimes under which they are, in order of insertion of their workers.
    """

    features: tuple[str, ...]
    workers: int
    runtimes: tuple[SandboxRuntime, ...]


@attrs.frozen
class WhyNone:
    """Why no worker of a fleet can restore a snapshot.

    Attributes:
        workers: how many workers there are.
        excluded: how many of them each reason excludes, the most first. A worker counts under each reason
            that any of its runtimes has, so that the numbers may add up to more than there are workers.
        nearest: of the runtimes against which nothing speaks but missing CPU features, those that lack
            the fewest: an item for each set of missing features, that of the most workers first. Empty
            where something else speaks against every runtime.
    """

    workers: int
    excluded: tuple[Excluded, ...]
    nearest: tuple[NearMiss, ...]


_Grounds = tuple[tuple[Reason, str], ...]
_MISSING: Final = (Reason.MISSING_FEATURES, CPU_FEATURES)


def why_none(
    workers: int, families: Iterable[Family], chunks: Sequence[Chunk], snapshot: SandboxRuntime
) -> WhyNone:
    """The answer for a fleet of so many workers, of which none can restore `snapshot`."""
    grounds = _grounds(families, snapshot)
    return WhyNone(
        workers,
        _excluded(chunks, grounds, snapshot),
        _nearest(chunks, grounds.get((_MISSING,), set()), snapshot),
    )


def _grounds(families: Iterable[Family], snapshot: SandboxRuntime) -> dict[_Grounds, set[Family]]:
    """What speaks against runtimes, and against which: missing features only against some of the masks."""
    needed = snapshot.compat_version.equalities
    # Families of one shape that fail the same equalities fail for the same reasons.
    known: dict[tuple[Shape, frozenset[tuple[str, str]]], set[Family]] = {}
    against: dict[_Grounds, set[Family]] = {}
    for family in families:
        alike = family.shape, needed - family.runtime.compat_version.equalities
        if alike not in known:
            known[alike] = against.setdefault(tuple(_possible(family.runtime, snapshot)), set())
        known[alike].add(family)
    return against


def _possible(example: SandboxRuntime, snapshot: SandboxRuntime) -> Iterator[tuple[Reason, str]]:
    for mismatch in explain(example, snapshot).mismatches:
        if mismatch.reason is not Reason.MISSING_FEATURES:
            yield mismatch.reason, mismatch.key
    needed, offered = snapshot.compat_version.features, example.compat_version.features
    if needed is not None and offered is not None and needed.architecture is offered.architecture:
        yield _MISSING


def _excluded(
    chunks: Iterable[Chunk], grounds: Mapping[_Grounds, set[Family]], snapshot: SandboxRuntime
) -> tuple[Excluded, ...]:
    needed = selectors(snapshot.compat_version.needs)
    workers: Counter[tuple[Reason, str]] = Counter()
    for chunk in chunks:
        rows_of: defaultdict[tuple[Reason, str], int] = defaultdict(int)
        for layer in chunk.layers:
            lacking = layer.lacking_any(needed)
            for reasons, families in grounds.items():
                rows = layer.offering_any(families)
                for reason in reasons:
                    rows_of[reason] |= rows & lacking if reason is _MISSING else rows
        for reason, rows in rows_of.items():
            workers[reason] += chunk.workers(rows)
    excluded = [Excluded(*reason, count) for reason, count in workers.items() if count]
    return tuple(sorted(excluded, key=lambda each: (-each.workers, each.key, each.reason)))


def _nearest(
    chunks: Iterable[Chunk], families: set[Family], snapshot: SandboxRuntime
) -> tuple[NearMiss, ...]:
    features = snapshot.compat_version.features
    if features is None or not families:
        return ()
    fewest, groups = _nearest_groups(chunks, families, selectors(snapshot.compat_version.needs))
    alike = {family.runtime.same for family in families}
    workers: Counter[FeatureSet] = Counter()
    runtimes: defaultdict[FeatureSet, dict[SandboxRuntime, None]] = defaultdict(dict)
    for group in sorted(groups, key=Group.first_ticket):
        near = set()
        for runtime in group.runtimes:
            held = runtime.compat_version.features
            if held is None or runtime.same not in alike:
                continue
            missing = features - held
            if len(missing) == fewest:
                near.add(missing)
                runtimes[missing][runtime] = None
        for missing in near:
            workers[missing] += len(group)
    misses = [
        NearMiss(missing.names, count, tuple(runtimes[missing])) for missing, count in workers.items()
    ]
    return tuple(sorted(misses, key=lambda miss: (-miss.workers, miss.features)))


def _nearest_groups(
    chunks: Iterable[Chunk], families: set[Family], needed: bytes
) -> tuple[int, set[Group]]:
    """The least number of needed features that a runtime of the families lacks, and who has such."""
    fewest = len(needed)
    groups: set[Group] = set()
    for chunk in chunks:
        for layer in chunk.layers:
            offering = layer.offering_any(families)
            if not offering:
                continue
            missing, rows = fewest_missing(layer, offering, needed)
            if missing < fewest:
                fewest = missing
                groups.clear()
            if missing == fewest:
                groups.update(chunk.groups(rows))
    return fewest, groups
