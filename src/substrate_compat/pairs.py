"""Which worker identities restore which snapshot identities, all pairs at once.

A planner counts over hundreds of millions of snapshots, but their identities are few. So the match is done
here, once for each pair of distinct identities, and an engine only joins the pairs.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from substrate_compat.identity import SandboxRuntime

__all__ = ["restore_pairs"]

_Equalities = tuple[str, str, frozenset[tuple[str, str]]]


def restore_pairs(
    workers: Mapping[str, SandboxRuntime], snapshots: Mapping[str, SandboxRuntime]
) -> Iterator[tuple[str, str]]:
    """Each pair of a worker's key and a snapshot's key whose identities match; the order is not promised.

    Args:
        workers: the distinct identities that workers offer, by key.
        snapshots: the distinct identities that snapshots carry, by key.

    Workers are looked up by what must be equal, so that masks are compared only where the rest fits.

    >>> from substrate_compat.identity import VersionedSandboxCompat
    >>> one, three = (
    ...     SandboxRuntime("gvisor", VersionedSandboxCompat.of({"architecture": "amd64", **features}))
    ...     for features in ({"cpu_features": "1"}, {"cpu_features": "3"})
    ... )
    >>> sorted(restore_pairs({"w1": one, "w3": three}, {"s1": one, "s3": three}))
    [('w1', 's1'), ('w3', 's1'), ('w3', 's3')]
    """
    by_keys = defaultdict(list)
    for key, snapshot in snapshots.items():
        by_keys[frozenset(name for name, _ in snapshot.compat_version.equalities)].append((key, snapshot))
    for names, group in by_keys.items():
        offered = _by_equalities(workers, names)
        for key, snapshot in group:
            compat = snapshot.compat_version
            for worker_key, lacks in offered.get(
                (snapshot.sandbox_class, compat.schema_version, compat.equalities), ()
            ):
                if not compat.needs & lacks:
                    yield worker_key, key


def _by_equalities(
    workers: Mapping[str, SandboxRuntime], names: frozenset[str]
) -> dict[_Equalities, list[tuple[str, int]]]:
    """The keys of the workers and the bits that they lack, by the values that they have under `names`."""
    offered = defaultdict(list)
    for key, worker in workers.items():
        compat = worker.compat_version
        held = frozenset(pair for pair in compat.equalities if pair[0] in names)
        offered[worker.sandbox_class, compat.schema_version, held].append((key, compat.lacks))
    return offered
