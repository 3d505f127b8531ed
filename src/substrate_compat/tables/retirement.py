"""Which snapshots would be lost if some workers went away.

A database may hold hundreds of millions of snapshots, but few distinct identities. The match is done once
for each pair of identities and kept in the table `restore_pair`; then the question is one statement of
joins and counts, whose work grows with the rows, not with snapshots times workers.
"""

from collections.abc import Collection

from sqlalchemy import BigInteger, ColumnElement, Select, case, cast, func, select

from substrate_compat.tables.schema import FleetTables

__all__ = ["stranded"]


def stranded(fleet: FleetTables, workers_to_go: "Collection[str] | Select[str]") -> "Select[str, int, int]":
    """Every snapshot with the number of workers that restore it now, and without `workers_to_go`.

    The columns are `snapshot_id`, `workers` and `workers_left`, in no order. A snapshot is stranded where
    `workers` is not 0 and `workers_left` is 0. Call `refresh_restore_pairs` before.

    Args:
        fleet: the tables.
        workers_to_go: the ids, or, for more than one statement can carry, a SELECT of them.

    >>> from sqlalchemy import MetaData
    >>> stranded(FleetTables.on(MetaData()), ["w1"]).selected_columns.keys()
    ['snapshot_id', 'workers', 'workers_left']
    """
    worker, pair, snapshot = fleet.worker_runtime.c, fleet.restore_pair.c, fleet.snapshot.c
    # Workers that offer the same are counted once, and one of them is asked for all.
    stays = case((worker.worker_id.in_(workers_to_go), 0), else_=1)
    each = (
        select(
            worker.worker_id,
            func.min(stays).label("stays"),
            func.aggregate_strings(worker.runtime_key, ",").label("offer"),
        )
        .group_by(worker.worker_id)
        .subquery("each")
    )
    alike = (
        select(
            func.min(each.c.worker_id).label("worker_id"),
            func.count().label("workers"),
            func.sum(each.c.stays).label("workers_left"),
        )
        .group_by(each.c.offer)
        .subquery("alike")
    )
    able = (
        select(pair.snapshot_key, alike.c.worker_id, alike.c.workers, alike.c.workers_left)
        .join(fleet.worker_runtime, worker.worker_id == alike.c.worker_id)
        .join(fleet.restore_pair, pair.worker_key == worker.runtime_key)
        .distinct()
        .subquery("able")
    )
    counts = (
        select(
            able.c.snapshot_key,
            func.sum(able.c.workers).label("workers"),
            func.sum(able.c.workers_left).label("workers_left"),
        )
        .group_by(able.c.snapshot_key)
        .subquery("counts")
    )
    return select(
        snapshot.snapshot_id,
        _integer(counts.c.workers).label("workers"),
        _integer(counts.c.workers_left).label("workers_left"),
    ).join(counts, snapshot.runtime_key == counts.c.snapshot_key, isouter=True)


def _integer(count: ColumnElement[int]) -> ColumnElement[int]:
    """0 for none; a sum of counts is of a wider type in some engines."""
    return cast(func.coalesce(count, 0), BigInteger)
