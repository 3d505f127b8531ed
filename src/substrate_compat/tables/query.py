"""The workers that restore a snapshot, as one statement that does not read the fleet.

Most identities are offered by many workers, and a scheduler wants the first hundred. So the limit goes
inside: the index is read once for each matching identity, in order and no further than the limit, and the
few rows that come out are merged. Only where too few workers match by their default are the others read.
"""

from typing import Final

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Integer,
    Select,
    bindparam,
    func,
    literal_column,
    select,
    text,
    true,
    union_all,
)

from substrate_compat.errors import InputError
from substrate_compat.identity import SandboxRuntime
from substrate_compat.tables.schema import FleetTables, restores

__all__ = ["candidates"]

_MOST: Final = 2**31 - 1


def candidates(
    fleet: FleetTables,
    snapshot: SandboxRuntime | None,
    limit: int = 100,
    dialect: str = "postgresql",
) -> "Select[str, int]":
    """The workers that restore `snapshot`: at most `limit` rows of `worker_id` and `position`.

    A worker that matches by its default, at position 0, comes before one that matches by a restorable
    runtime; then they go by id. A worker is listed once, at the first position that matches.

    Args:
        fleet: the tables.
        snapshot: what is to be restored; None puts no constraint.
        limit: how many workers at most, 1 to 2**31 - 1.
        dialect: SQLAlchemy's name of the engine, `connection.dialect.name`. For PostgreSQL and SQLite the
            limit goes inside, so that the work grows with the limit and the matching identities, not with
            the fleet; other engines get a plain statement with the same answer.

    Raises:
        InputError: a limit below 1 or beyond 2**31 - 1, which not every engine can count.

    >>> from sqlalchemy import MetaData
    >>> candidates(FleetTables.on(MetaData()), None).selected_columns.keys()
    ['worker_id', 'position']
    """
    if type(limit) is not int or not 1 <= limit <= _MOST:
        raise InputError("limit", f"it is no number from 1 to {_MOST}", "say how many workers at most")
    matching = select(fleet.runtime.c.runtime_key).where(restores(fleet, snapshot)).cte("matching")
    if dialect == "postgresql":
        return _postgresql(fleet, matching, limit)
    if dialect == "sqlite":
        return _sqlite(fleet, matching, limit)
    worker = fleet.worker_runtime.c
    every = (
        select(worker.worker_id, worker.position)
        .join(matching, worker.runtime_key == matching.c.runtime_key)
        .subquery("every")
    )
    return _once_each(every, limit)


def _postgresql(fleet: FleetTables, matching: FromClause, limit: int) -> "Select[str, int]":
    """One read for each matching identity, and others for its later positions if that is not enough."""
    defaults = select(matching.c.runtime_key, literal_column("0").label("position")).subquery("defaults")
    first = _first_of_each(fleet, defaults, limit)
    by_default = select(first).order_by(first.c.worker_id.collate("C")).limit(limit).cte("by_default")
    # With fewer than `limit` workers by default, of which each may take one place in any of the reads, the
    # first `limit` of each read still hold all that can be among the answer.
    reads = _reads(fleet, matching)
    others = select(reads).where(reads.c.position > 0).subquery("others")
    first = _first_of_each(fleet, others, limit)
    missing = select(func.count()).select_from(by_default).scalar_subquery() < limit
    by_restorable = select(first).where(missing)
    return _once_each(union_all(select(by_default), by_restorable).subquery("both"), limit, "C")


def _first_of_each(fleet: FleetTables, reads: FromClause, limit: int) -> FromClause:
    """The first `limit` workers, by id, of each identity and position in `reads`."""
    worker = fleet.worker_runtime.c
    # A limit that the planner cannot see: it then expects a tenth of the rows and reads the index in order,
    # however few it expects, with statistics or without. Of a plain one it may sort all rows.
    unseen = select(bindparam("most", limit, unique=True, type_=Integer)).scalar_subquery()
    each = (
        select(worker.worker_id, worker.position)
        .where(worker.runtime_key == reads.c.runtime_key, worker.position == reads.c.position)
        .order_by(worker.worker_id.collate("C"))
        .limit(unseen)
        .lateral("each")
    )
    return select(each.c.worker_id, each.c.position).select_from(reads.join(each, true())).subquery("first")


def _sqlite(fleet: FleetTables, matching: FromClause, limit: int) -> "Select[str, int]":
    """A queue with the next worker of each read: the first comes out, and the one after it goes in.

    SQLite keeps the rows of a recursive query in such a queue if it has an ORDER BY, and each step looks up
    one row of the index.
    """
    worker = fleet.worker_runtime.c
    nobody: ColumnElement[str] = literal_column("x''")  # a blob, which is greater than every text

    def next_worker(read: FromClause, *after: ColumnElement[bool]) -> ColumnElement[str]:
        there = (worker.runtime_key == read.c.runtime_key, worker.position == read.c.position)
        least = select(func.min(worker.worker_id)).where(*there, *after)
        return func.ifnull(least.scalar_subquery(), nobody).label("worker_id")

    reads = _reads(fleet, matching)
    late = (reads.c.position > 0).label("late")
    queue = select(reads.c.runtime_key, reads.c.position, late, next_worker(reads)).cte(
        "queue", recursive=True
    )
    after = next_worker(queue, worker.worker_id > queue.c.worker_id)
    # A worker comes out once for each read that it is in, and each read once at its end.
    enough = text(
        "ORDER BY late, worker_id"
        " LIMIT (SELECT :most * (ifnull(max(position), 0) + 1) + count(*) FROM reads)"
    )
    queue = queue.union_all(
        select(queue.c.runtime_key, queue.c.position, queue.c.late, after)
        .where(queue.c.worker_id < nobody)
        .suffix_with(enough.bindparams(most=limit))
    )
    found = select(queue.c.worker_id, queue.c.position).where(queue.c.worker_id < nobody)
    return _once_each(found.subquery("found"), limit)


def _reads(fleet: FleetTables, matching: FromClause) -> FromClause:
    """Each matching identity with each position up to the last at which any worker has it."""
    worker = fleet.worker_runtime.c
    reads = select(matching.c.runtime_key, literal_column("0").label("position")).cte(
        "reads", recursive=True
    )
    last = select(func.max(worker.position)).where(worker.runtime_key == reads.c.runtime_key)
    following = select(reads.c.runtime_key, (reads.c.position + 1).label("position"))
    return reads.union_all(following.where(reads.c.position < last.scalar_subquery()))


def _once_each(found: FromClause, limit: int, collation: str | None = None) -> "Select[str, int]":
    """Each worker in `found` at its first position: those at 0 first, then by id in code point order."""
    worker_id: ColumnElement[str] = found.c.worker_id
    position = func.min(found.c.position).label("position")
    by_id = worker_id if collation is None else worker_id.collate(collation)
    return select(worker_id, position).group_by(worker_id).order_by(position > 0, by_id).limit(limit)
