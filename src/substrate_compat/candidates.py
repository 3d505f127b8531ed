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
    and_,
    bindparam,
    func,
    literal_column,
    select,
    true,
    union_all,
)

from substrate_compat.errors import InputError
from substrate_compat.identity import SandboxRuntime
from substrate_compat.tables import FleetTables, restores

__all__ = ["candidates"]

_POSTGRESQL: Final = "postgresql"
_SQLITE: Final = "sqlite"


def candidates(
    fleet: FleetTables,
    snapshot: SandboxRuntime | None,
    limit: int = 100,
    dialect: str = _POSTGRESQL,
) -> "Select[str, int]":
    """The workers that restore `snapshot`: at most `limit` rows of `worker_id` and `position`.

    A worker that matches by its default, at position 0, comes before one that matches by a restorable
    runtime; then they go by id. A worker is listed once, at the first position that matches.

    Args:
        fleet: the tables.
        snapshot: what is to be restored; None puts no constraint.
        limit: how many workers at most, 1 or more.
        dialect: SQLAlchemy's name of the engine, `connection.dialect.name`. For PostgreSQL and SQLite the
            limit goes inside, so that the work grows with the limit and the matching identities, not with
            the fleet; other engines get a plain statement with the same answer.

    Raises:
        InputError: a limit below 1.

    >>> from sqlalchemy import MetaData
    >>> candidates(FleetTables.on(MetaData()), None).selected_columns.keys()
    ['worker_id', 'position']
    """
    if type(limit) is not int or limit < 1:
        raise InputError("limit", f"{limit!a} is not a number of workers", "give 1 or more")
    matching = select(fleet.runtime.c.runtime_key).where(restores(fleet, snapshot)).cte("matching")
    if dialect not in (_POSTGRESQL, _SQLITE):
        return _plain_candidates(fleet, matching, limit)
    defaults = select(matching.c.runtime_key, literal_column("0").label("position")).subquery("defaults")
    first = _first_of_each(fleet, defaults, limit, dialect)
    by_default = (
        select(first).order_by(_by_code_point(first.c.worker_id, dialect)).limit(limit).cte("by_default")
    )

    # With fewer than `limit` workers by default, of which each may take one place in any of the reads, the
    # first `limit` of each read still hold all that can be among the answer.
    others = _restorable(fleet, matching)
    first = _first_of_each(fleet, others, limit, dialect)
    missing = select(func.count()).select_from(by_default).scalar_subquery() < limit
    by_restorable = (
        select(first.c.worker_id, func.min(first.c.position).label("position"))
        .where(missing, first.c.worker_id.not_in(select(by_default.c.worker_id)))
        .group_by(first.c.worker_id)
        .order_by(_by_code_point(first.c.worker_id, dialect))
        .limit(limit)
        .cte("by_restorable")
    )
    both = union_all(select(by_default), select(by_restorable)).subquery("candidates")
    in_order = (both.c.position > 0, _by_code_point(both.c.worker_id, dialect))
    return select(both.c.worker_id, both.c.position).order_by(*in_order).limit(limit)


def _plain_candidates(fleet: FleetTables, matching: FromClause, limit: int) -> "Select[str, int]":
    worker = fleet.worker_runtime.c
    position = func.min(worker.position).label("position")
    return (
        select(worker.worker_id, position)
        .join(matching, worker.runtime_key == matching.c.runtime_key)
        .group_by(worker.worker_id)
        .order_by(position > 0, worker.worker_id)
        .limit(limit)
    )


def _restorable(fleet: FleetTables, matching: FromClause) -> FromClause:
    """Each matching identity with each position after 0 up to the last at which any worker has it."""
    worker = fleet.worker_runtime.c
    reads = select(matching.c.runtime_key, literal_column("0").label("position")).cte(
        "reads", recursive=True
    )
    last = select(func.max(worker.position)).where(worker.runtime_key == reads.c.runtime_key)
    reads = reads.union_all(
        select(reads.c.runtime_key, (reads.c.position + 1).label("position")).where(
            reads.c.position < last.scalar_subquery()
        )
    )
    return select(reads).where(reads.c.position > 0).subquery("others")


def _first_of_each(fleet: FleetTables, reads: FromClause, limit: int, dialect: str) -> FromClause:
    """At least the first `limit` workers, by id, of each identity and position in `reads`."""
    worker = fleet.worker_runtime.c
    there = and_(worker.runtime_key == reads.c.runtime_key, worker.position == reads.c.position)
    found = select(worker.worker_id, worker.position)
    if dialect == _POSTGRESQL:
        # A limit that the planner cannot see: it then expects a tenth of the rows and reads the index in
        # order, however few it expects, with statistics or without. Of a plain one it may sort all rows.
        unseen = select(bindparam("most", limit, unique=True, type_=Integer)).scalar_subquery()
        each = (
            found.where(there)
            .order_by(_by_code_point(worker.worker_id, dialect))
            .limit(unseen)
            .lateral("each")
        )
        return (
            select(each.c.worker_id, each.c.position)
            .select_from(reads.join(each, true()))
            .subquery("first")
        )
    other = fleet.worker_runtime.alias("nth").c
    nth = (
        select(other.worker_id)
        .where(other.runtime_key == reads.c.runtime_key, other.position == reads.c.position)
        .order_by(other.worker_id)
        .limit(1)
        .offset(limit - 1)
    )
    # SQLite has no LATERAL, but it reads a range of the index; a blob is greater than every text.
    up_to = func.ifnull(nth.scalar_subquery(), literal_column("x''"))
    return found.select_from(
        reads.join(fleet.worker_runtime, and_(there, worker.worker_id <= up_to))
    ).subquery("first")


def _by_code_point(column: ColumnElement[str], dialect: str) -> ColumnElement[str]:
    return column.collate("C") if dialect == _POSTGRESQL else column
