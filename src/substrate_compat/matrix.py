"""Who can restore whose snapshots, among the workers of a fleet.

A row is a snapshot as a worker would take it of a sandbox that it started cold, a column is a worker.
Workers that offer the same are one row and one column.
"""

from collections.abc import Mapping
from typing import Final

import attrs

from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.errors import InputError, quoted
from substrate_compat.identity import (
    ARCHITECTURE,
    CPU_FEATURES,
    GVISOR,
    SandboxRuntime,
    VersionedSandboxCompat,
    WorkerRuntimes,
)
from substrate_compat.levels import offered
from substrate_compat.match import Mismatch, Reason, Verdict, WorkerVerdict, explain_worker, stamp

__all__ = ["Cell", "Matrix", "matrix", "worker_of_features"]

_RECORDED: Final = (ARCHITECTURE, CPU_FEATURES)


@attrs.frozen
class Cell:
    """Whether a worker can restore a snapshot.

    Attributes:
        mismatches: every reason against it under the worker's runtime that comes nearest, by the number
            of reasons and of missing features; none where the worker can restore the snapshot.
    """

    mismatches: tuple[Mismatch, ...]

    @property
    def compatible(self) -> bool:
        """The worker can restore the snapshot."""
        return not self.mismatches

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the features that the worker lacks, sorted."""
        return next(
            (each.features for each in self.mismatches if each.reason is Reason.MISSING_FEATURES), ()
        )


@attrs.frozen
class Matrix:
    """Who can restore whose snapshots.

    Attributes:
        groups: the names of the workers that offer the same, in the order given.
        rows: for each group, what each group's worker would do with its snapshot.
        unchecked: what no verdict could look at, since it was not recorded, sorted.
    """

    groups: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[Cell, ...], ...]
    unchecked: tuple[str, ...]

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return sum(map(len, self.groups))

    @property
    def accepted(self) -> int:
        """How many ordered pairs of workers, each with itself too, restore: out of `workers` squared."""
        return sum(
            len(self.groups[row]) * len(self.groups[column])
            for row, cells in enumerate(self.rows)
            for column, cell in enumerate(cells)
            if cell.compatible
        )


def worker_of_features(features: FeatureSet) -> WorkerRuntimes:
    """A gVisor worker of which no more is known than the feature set that its runsc reports.

    >>> from substrate_compat.cpufeatures_table import Architecture
    >>> worker = worker_of_features(FeatureSet.from_names(Architecture.AMD64, ["fpu", "xsave"]))
    >>> worker.default_runtime.compat_version.features.names
    ('fpu',)
    """
    values = (features.architecture.value, offered(features).hex)
    compat = VersionedSandboxCompat.of(dict(zip(_RECORDED, values, strict=True)))
    return WorkerRuntimes(SandboxRuntime(GVISOR.sandbox_class, compat))


def matrix(workers: Mapping[str, WorkerRuntimes]) -> Matrix:
    """Who can restore whose snapshots; see `worker_of_features` for workers of bare feature sets.

    Raises:
        InputError: there is no worker, or one whose features are unreadable, so that it can take no
            snapshot.

    >>> from substrate_compat.cpufeatures_table import Architecture
    >>> sets = {"a": "osxsave", "b": "osxsave,avx2", "c": "osxsave"}
    >>> view = matrix({
    ...     name: worker_of_features(FeatureSet.from_names(Architecture.AMD64, names.split(",")))
    ...     for name, names in sets.items()
    ... })
    >>> view.groups, [[cell.missing for cell in row] for row in view.rows]
    ((('a', 'c'), ('b',)), [[(), ()], [('avx2',), ()]])
    """
    if not workers:
        raise InputError("matrix", "there is no worker", "name at least one")
    groups: dict[WorkerRuntimes, list[str]] = {}
    for name, runtimes in workers.items():
        groups.setdefault(runtimes, []).append(name)
    snapshots = [_snapshot(names[0], runtimes) for runtimes, names in groups.items()]
    verdicts = [[explain_worker(runtimes, snapshot) for runtimes in groups] for snapshot in snapshots]
    unchecked = {
        key for row in verdicts for verdict in row for each in verdict.verdicts for key in each.unchecked
    }
    return Matrix(
        tuple(map(tuple, groups.values())),
        tuple(tuple(Cell(_nearest(verdict)) for verdict in row) for row in verdicts),
        tuple(sorted(unchecked)),
    )


def _snapshot(name: str, runtimes: WorkerRuntimes) -> SandboxRuntime:
    try:
        return stamp(runtimes.default_runtime)
    except InputError as error:
        raise InputError(f"worker {quoted(name)}", error.problem, error.remedy) from None


def _nearest(verdict: WorkerVerdict) -> tuple[Mismatch, ...]:
    return min(verdict.verdicts, key=_distance).mismatches


def _distance(verdict: Verdict) -> tuple[int, int]:
    missing = sum(len(mismatch.features) for mismatch in verdict.mismatches)
    return len(verdict.mismatches), missing
