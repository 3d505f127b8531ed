"""Workers and snapshots are written whole or not at all, and removed without harm to others."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, delete, event, select
from sqlalchemy.exc import DBAPIError, InvalidRequestError

from fleets import Workers, empty, fleets, gvisor, ids, on_a_database, read_workers, without_nul
from substrate_compat.errors import InputError
from substrate_compat.identity import SandboxRuntime, WorkerRuntimes
from substrate_compat.match import matches
from substrate_compat.tables import (
    FleetTables,
    identity_key,
    prepare,
    put_snapshots,
    put_workers,
    read_runtimes,
    refresh_restore_pairs,
    remove_snapshots,
    remove_unused_runtimes,
    remove_workers,
)

ONE, TWO, THREE, FOUR = (gvisor(architecture="amd64", cpu_features=mask) for mask in ("1", "2", "3", "0x4"))


def keys(*runtimes: SandboxRuntime) -> list[str]:
    return [identity_key(runtime) for runtime in runtimes]


def held_runtimes(connection: Connection, fleet: FleetTables) -> dict[str, SandboxRuntime]:
    with connection.begin():
        return read_runtimes(connection, fleet)


def held_snapshots(connection: Connection, fleet: FleetTables) -> dict[str, str]:
    with connection.begin():
        return dict(
            connection.execute(select(fleet.snapshot.c.snapshot_id, fleet.snapshot.c.runtime_key)).all()
        )


@on_a_database
@given(fleets(), fleets())
def test_the_last_write_of_a_worker_counts(
    connection: Connection,
    fleet: FleetTables,
    first: tuple[Workers, SandboxRuntime | None],
    second: tuple[Workers, SandboxRuntime | None],
) -> None:
    empty(connection, fleet)
    put_workers(connection, fleet, first[0])
    put_workers(connection, fleet, second[0])
    expected = {**first[0], **second[0]}
    assert read_workers(connection, fleet) == {name: keys(*runtimes) for name, runtimes in expected.items()}
    remove_workers(connection, fleet, second[0])
    rest = {name: keys(*runtimes) for name, runtimes in first[0].items() if name not in second[0]}
    assert read_workers(connection, fleet) == rest


@on_a_database
@given(st.dictionaries(ids, without_nul, max_size=4), st.dictionaries(ids, without_nul, max_size=4))
def test_the_last_write_of_a_snapshot_counts(
    connection: Connection,
    fleet: FleetTables,
    first: dict[str, SandboxRuntime],
    second: dict[str, SandboxRuntime],
) -> None:
    empty(connection, fleet)
    put_snapshots(connection, fleet, first)
    put_snapshots(connection, fleet, second)
    expected = {name: identity_key(snapshot) for name, snapshot in {**first, **second}.items()}
    assert held_snapshots(connection, fleet) == expected
    remove_snapshots(connection, fleet, second)
    rest = {name: key for name, key in expected.items() if name not in second}
    assert held_snapshots(connection, fleet) == rest


def test_a_shorter_list_leaves_no_rest(connection: Connection, fleet: FleetTables) -> None:
    put_workers(
        connection, fleet, {"w": WorkerRuntimes(ONE, (TWO, THREE)), "x": WorkerRuntimes(ONE, (TWO,))}
    )
    put_workers(connection, fleet, {"w": WorkerRuntimes(THREE)})
    assert read_workers(connection, fleet) == {"w": keys(THREE), "x": keys(ONE, TWO)}


def test_a_fault_leaves_the_old_workers(connection: Connection, fleet: FleetTables) -> None:
    put_workers(connection, fleet, {"w": WorkerRuntimes(ONE, (TWO,))})
    with pytest.raises(InputError, match=r"^worker id: 0 characters"):
        put_workers(connection, fleet, {"w": WorkerRuntimes(THREE), "": WorkerRuntimes(ONE)})
    assert read_workers(connection, fleet) == {"w": keys(ONE, TWO)}


def statements_until(engine: Engine, last: int) -> Callable[[], None]:
    """From now on, the statement after `last` others fails as a broken connection would."""
    ran = iter(range(last))

    def count(*_: object) -> None:
        if next(ran, None) is None:
            raise ConnectionResetError

    event.listen(engine, "before_cursor_execute", count)
    return lambda: event.remove(engine, "before_cursor_execute", count)


@pytest.mark.parametrize("last", range(4))
def test_a_write_that_breaks_off_leaves_the_old_worker(
    database: Engine, connection: Connection, fleet: FleetTables, last: int
) -> None:
    put_workers(connection, fleet, {"w": WorkerRuntimes(ONE, (TWO, THREE))})
    resume = statements_until(database, last)
    with pytest.raises(ConnectionResetError):
        put_workers(connection, fleet, {"w": WorkerRuntimes(THREE, (FOUR,))})
    resume()
    assert read_workers(connection, fleet) == {"w": keys(ONE, TWO, THREE)}
    assert set(held_runtimes(connection, fleet)) == set(keys(ONE, TWO, THREE))


def test_a_transaction_under_way_is_refused(connection: Connection, fleet: FleetTables) -> None:
    connection.execute(select(fleet.runtime))
    with pytest.raises(InvalidRequestError):
        put_workers(connection, fleet, {"w": WorkerRuntimes(ONE)})
    connection.rollback()


def test_a_connection_that_commits_by_itself_is_refused(
    database: Engine, connection: Connection, fleet: FleetTables
) -> None:
    if database.name == "duckdb":
        pytest.skip("DuckDB has no isolation level to set")
    put_workers(connection, fleet, {"w": WorkerRuntimes(ONE)})
    with database.connect().execution_options(isolation_level="AUTOCOMMIT") as careless:
        writes: tuple[Callable[[], None], ...] = (
            lambda: prepare(careless, fleet),
            lambda: put_workers(careless, fleet, {"w": WorkerRuntimes(TWO)}),
            lambda: remove_workers(careless, fleet, ["w"]),
        )
        for write in writes:
            with pytest.raises(InputError, match=r"^connection: its isolation level is AUTOCOMMIT"):
                write()
    assert read_workers(connection, fleet) == {"w": keys(ONE)}


def test_unused_runtimes_go(connection: Connection, fleet: FleetTables) -> None:
    put_workers(connection, fleet, {"w": WorkerRuntimes(ONE, (THREE,)), "x": WorkerRuntimes(FOUR)})
    put_snapshots(connection, fleet, {"s": ONE, "t": TWO})
    refresh_restore_pairs(connection, fleet)
    remove_unused_runtimes(connection, fleet)
    assert set(held_runtimes(connection, fleet)) == set(keys(ONE, TWO, THREE, FOUR))
    remove_workers(connection, fleet, ["x", "no such worker"])
    remove_snapshots(connection, fleet, ["t", "no such snapshot"])
    remove_unused_runtimes(connection, fleet)
    assert held_runtimes(connection, fleet) == {identity_key(each): each for each in (ONE, THREE)}
    with connection.begin():
        left = connection.execute(select(fleet.runtime_attribute.c.runtime_key)).scalars().all()
        assert sorted(left) == sorted(keys(ONE, THREE))
        pairs = connection.execute(
            select(fleet.restore_pair.c.worker_key, fleet.restore_pair.c.snapshot_key)
        )
        assert sorted(map(tuple, pairs)) == sorted((key, identity_key(ONE)) for key in keys(ONE, THREE))
    remove_workers(connection, fleet, ["w"])
    remove_snapshots(connection, fleet, [])
    remove_unused_runtimes(connection, fleet)
    assert held_runtimes(connection, fleet) == {identity_key(ONE): ONE}


def test_pairs_are_those_of_workers_and_snapshots(connection: Connection, fleet: FleetTables) -> None:
    put_workers(connection, fleet, {"w": WorkerRuntimes(THREE, (FOUR,)), "x": WorkerRuntimes(ONE)})
    put_snapshots(connection, fleet, {"s": ONE, "t": TWO, "u": FOUR})
    for _ in range(2):
        refresh_restore_pairs(connection, fleet)
        with connection.begin():
            pair = fleet.restore_pair.c
            rows = connection.execute(select(pair.worker_key, pair.snapshot_key)).all()
        assert {(worker, snapshot) for worker, snapshot in rows} == {
            (identity_key(worker), identity_key(snapshot))
            for worker in (THREE, FOUR, ONE)
            for snapshot in (ONE, TWO, FOUR)
            if matches(worker, snapshot)
        }


def test_a_damaged_identity_is_named(connection: Connection, fleet: FleetTables) -> None:
    put_workers(connection, fleet, {"w": WorkerRuntimes(gvisor(zone="a"))})
    with connection.begin():
        connection.execute(delete(fleet.runtime_attribute))
    with pytest.raises(InputError, match=r"^\$\.attributes: 0 attributes"), connection.begin():
        read_runtimes(connection, fleet)


OFFERS = [WorkerRuntimes(ONE, (TWO, THREE, FOUR)), WorkerRuntimes(TWO, (ONE,)), WorkerRuntimes(THREE)]
WHOLE = [keys(*offer) for offer in OFFERS]
TIMES = 15


def together(*jobs: Callable[[], None]) -> None:
    """Run the jobs at once, each in a thread; what one raises is raised."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        for job in [pool.submit(job) for job in jobs]:
            job.result()


def insisting(database: Engine, write: Callable[[Connection], None]) -> None:
    """Write; on DuckDB, which lets one of two writers fail, until it is the one that does not."""
    with database.connect() as connection:
        while True:
            try:
                write(connection)
            except DBAPIError:
                if database.dialect.name != "duckdb":
                    raise
            else:
                return


def written(
    database: Engine, fleet: FleetTables, names: str, *offers: WorkerRuntimes
) -> Callable[[], None]:
    """A job that writes the workers again and again, offering this and that."""

    def job() -> None:
        for number in range(TIMES):
            workers = dict.fromkeys(names, offers[number % len(offers)])
            insisting(database, partial(put_workers, fleet=fleet, workers=workers))

    return job


def removed(database: Engine, remove: Callable[[Connection], None]) -> Callable[[], None]:
    """A job that removes again and again."""

    def job() -> None:
        for _ in range(TIMES):
            insisting(database, remove)

    return job


def always_whole(database: Engine, fleet: FleetTables) -> Callable[[], None]:
    """A job that reads workers and never sees but one of the offers."""

    def job() -> None:
        with database.connect() as connection:
            for _ in range(TIMES):
                for held in read_workers(connection, fleet).values():
                    assert held in WHOLE

    return job


def test_writers_of_one_worker_leave_one_of_them_whole(
    database: Engine, connection: Connection, fleet: FleetTables
) -> None:
    writers = [
        written(database, fleet, names, offer)
        for names, offer in zip(("wx", "xw", "wx"), OFFERS, strict=True)
    ]
    together(*writers, always_whole(database, fleet))
    left = read_workers(connection, fleet)
    assert left["w"] == left["x"]
    assert left["w"] in WHOLE


def test_removal_and_writing_at_once_leave_no_half(
    database: Engine, connection: Connection, fleet: FleetTables
) -> None:
    together(
        written(database, fleet, "w", *OFFERS),
        removed(database, partial(remove_workers, fleet=fleet, worker_ids=["w"])),
        always_whole(database, fleet),
    )
    assert read_workers(connection, fleet).get("w", WHOLE[0]) in WHOLE


def test_no_identity_goes_while_a_worker_that_uses_it_is_written(
    database: Engine, connection: Connection, fleet: FleetTables
) -> None:
    if database.dialect.name == "duckdb":
        pytest.skip("DuckDB is for one writer at a time")
    together(
        written(database, fleet, "w", *OFFERS),
        removed(database, partial(remove_unused_runtimes, fleet=fleet)),
    )
    used = {key for held in read_workers(connection, fleet).values() for key in held}
    assert used
    assert used <= set(held_runtimes(connection, fleet))
    with connection.begin():
        attributed = connection.scalars(select(fleet.runtime_attribute.c.runtime_key))
        assert used <= set(attributed)
