"""The workers and snapshots of a fleet, written to a database and removed from it.

Each function is one transaction of its own, so that nobody ever reads half a worker, and a connection that
breaks leaves what was there before. Writers of one worker wait for each other at its row of position 0,
which is written first; writers of many go by id, so that none waits for another in a circle.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Final

import attrs
from sqlalchemy import (
    DDL,
    ColumnElement,
    Connection,
    Executable,
    Table,
    bindparam,
    delete,
    insert,
    literal_column,
    or_,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from substrate_compat.identity import SandboxRuntime, WorkerRuntimes
from substrate_compat.pairs import restore_pairs
from substrate_compat.rows import (
    attribute_rows,
    identity_key,
    runtime_from_rows,
    runtime_row,
    snapshot_row,
    worker_rows,
)
from substrate_compat.tables.schema import FleetTables, transaction

__all__ = [
    "put_snapshots",
    "put_workers",
    "read_runtimes",
    "refresh_restore_pairs",
    "remove_snapshots",
    "remove_unused_runtimes",
    "remove_workers",
]

_WAIT_FOR_WRITERS: Final = DDL("LOCK TABLE %(fullname)s IN SHARE ROW EXCLUSIVE MODE").execute_if(
    dialect="postgresql"
)
"""Keeps other writers of a table out until the transaction ends; the other engines do so by themselves."""

_ROWS_AT_ONCE: Final = 10_000


def put_workers(connection: Connection, fleet: FleetTables, workers: Mapping[str, WorkerRuntimes]) -> None:
    """Write the workers, each in place of the one of its id, in one transaction.

    Raises:
        InputError: an id or a text that the engine cannot hold, or `connection` commits each statement by
            itself; then nothing is written.
        sqlalchemy.exc.InvalidRequestError: `connection` is in a transaction already.
    """
    rows = [row for worker_id in sorted(workers) for row in worker_rows(worker_id, workers[worker_id])]
    if not rows:
        return
    identities = {identity_key(runtime): runtime for runtimes in workers.values() for runtime in runtimes}
    last = [{"id": worker_id, "last": len([*workers[worker_id]]) - 1} for worker_id in sorted(workers)]
    writes = _writes(fleet, connection.dialect.name)
    with transaction(connection):
        _put_identities(connection, fleet, identities)
        connection.execute(writes.worker, rows)
        connection.execute(writes.beyond, last)


def put_snapshots(
    connection: Connection, fleet: FleetTables, snapshots: Mapping[str, SandboxRuntime]
) -> None:
    """Write the snapshots, each in place of the one of its id, in one transaction.

    Raises:
        InputError: an id or a text that the engine cannot hold, or `connection` commits each statement by
            itself; then nothing is written.
        sqlalchemy.exc.InvalidRequestError: `connection` is in a transaction already.
    """
    rows = [snapshot_row(snapshot_id, snapshots[snapshot_id]) for snapshot_id in sorted(snapshots)]
    if not rows:
        return
    identities = {identity_key(snapshot): snapshot for snapshot in snapshots.values()}
    with transaction(connection):
        _put_identities(connection, fleet, identities)
        connection.execute(_writes(fleet, connection.dialect.name).snapshot, rows)


def remove_workers(connection: Connection, fleet: FleetTables, worker_ids: Iterable[str]) -> None:
    """Remove the workers that are there, in one transaction; other ids change nothing.

    Raises:
        InputError: an id that the engine cannot hold; then nothing is removed.
    """
    worker = fleet.worker_runtime.c
    others = delete(fleet.worker_runtime).where(worker.worker_id == bindparam("id"))
    default = others.where(worker.position == 0).returning(worker.position)
    with transaction(connection):
        for worker_id in sorted(set(worker_ids)):
            # A worker whose default was not there to be locked is being written just now: it stays whole.
            if connection.execute(default, {"id": worker_id}).all():
                connection.execute(others, {"id": worker_id})


def remove_snapshots(connection: Connection, fleet: FleetTables, snapshot_ids: Iterable[str]) -> None:
    """Remove the snapshots that are there, in one transaction; other ids change nothing.

    Raises:
        InputError: an id that the engine cannot hold; then nothing is removed.
    """
    gone = delete(fleet.snapshot).where(fleet.snapshot.c.snapshot_id == bindparam("id"))
    rows = [{"id": snapshot_id} for snapshot_id in sorted(set(snapshot_ids))]
    if rows:
        with transaction(connection):
            connection.execute(gone, rows)


def remove_unused_runtimes(connection: Connection, fleet: FleetTables) -> None:
    """Remove the identities that no worker and no snapshot uses, in one transaction.

    On PostgreSQL it waits for the writers that are under way, and new ones wait for it: every writer begins
    with the table `runtime`. SQLite and DuckDB let one transaction of two that conflict through.
    """
    key = fleet.runtime.c.runtime_key
    used = or_(_exists(fleet.worker_runtime, key), _exists(fleet.snapshot, key))
    with transaction(connection):
        _WAIT_FOR_WRITERS(fleet.runtime, connection)
        connection.execute(delete(fleet.runtime).where(~used))
        attribute, pair = fleet.runtime_attribute, fleet.restore_pair
        for table, column in (
            (attribute, attribute.c.runtime_key),
            (pair, pair.c.worker_key),
            (pair, pair.c.snapshot_key),
        ):
            connection.execute(delete(table).where(~_exists(fleet.runtime, column)))


def read_runtimes(connection: Connection, fleet: FleetTables) -> dict[str, SandboxRuntime]:
    """Every identity in the database, by its key.

    Raises:
        InputError: the rows hold what is no identity.
    """
    attributes: dict[str, dict[str, str]] = {}
    for runtime_key, key, value in connection.execute(select(fleet.runtime_attribute)):
        attributes.setdefault(runtime_key, {})[key] = value
    rows = connection.execute(select(fleet.runtime)).mappings()
    return {
        row["runtime_key"]: runtime_from_rows({**row}, attributes.get(row["runtime_key"], {}))
        for row in rows
    }


def refresh_restore_pairs(connection: Connection, fleet: FleetTables) -> None:
    """Fill the table of the pairs of identities that match, in one transaction.

    To be called before a question over the pairs, if workers or snapshots were written since the last time.

    Raises:
        InputError: the rows hold what is no identity.
    """
    key = fleet.runtime.c.runtime_key
    pair = fleet.restore_pair
    with transaction(connection):
        _WAIT_FOR_WRITERS(pair, connection)
        connection.execute(delete(pair))
        runtimes = read_runtimes(connection, fleet)
        offered, carried = (
            {used: runtimes[used] for used in connection.scalars(select(key).where(_exists(table, key)))}
            for table in (fleet.worker_runtime, fleet.snapshot)
        )
        rows = ({"snapshot_key": s, "worker_key": w} for w, s in restore_pairs(offered, carried))
        while some := list(islice(rows, _ROWS_AT_ONCE)):
            connection.execute(insert(pair), some)


def _exists(table: Table, key: ColumnElement[str]) -> ColumnElement[bool]:
    return select(literal_column("1")).where(table.c.runtime_key == key).exists()


def _put_identities(
    connection: Connection, fleet: FleetTables, identities: Mapping[str, SandboxRuntime]
) -> None:
    """Write the identities that are not there yet.

    This comes first in every transaction, also when all are known: on PostgreSQL it takes the lock that
    `remove_unused_runtimes` respects.
    """
    rows = [runtime_row(identities[key]) for key in sorted(identities)]
    new = sorted(connection.scalars(_writes(fleet, connection.dialect.name).unknown, rows))
    attributes = [row for key in new for row in attribute_rows(identities[key])]
    if attributes:
        connection.execute(insert(fleet.runtime_attribute), attributes)


@attrs.frozen
class _Writes:
    """The statements that write workers and snapshots.

    Attributes:
        unknown: writes the identities that are not there yet, and gives their keys.
        worker: writes rows of workers, each in place of the one with its primary key.
        snapshot: the same for snapshots.
        beyond: removes what a worker had beyond its last position.
    """

    unknown: Executable
    worker: Executable
    snapshot: Executable
    beyond: Executable


@lru_cache(maxsize=8)
def _writes(fleet: FleetTables, dialect: str) -> _Writes:
    """The statements for an engine, made once: to make them takes longer than to run them."""
    # DuckDB spells ON CONFLICT as PostgreSQL does.
    insert_of = sqlite.insert if dialect == "sqlite" else postgresql.insert

    def replace(table: Table) -> Executable:
        statement = insert_of(table)
        return statement.on_conflict_do_update(
            index_elements=list(table.primary_key), set_={"runtime_key": statement.excluded.runtime_key}
        )

    worker = fleet.worker_runtime.c
    return _Writes(
        insert_of(fleet.runtime).on_conflict_do_nothing().returning(fleet.runtime.c.runtime_key),
        replace(fleet.worker_runtime),
        replace(fleet.snapshot),
        delete(fleet.worker_runtime).where(
            worker.worker_id == bindparam("id"), worker.position > bindparam("last")
        ),
    )
