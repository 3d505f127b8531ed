"""The workers that restore a snapshot: the same as a scan finds, in the same order."""

import pytest
from benchmarks import engine_fleet
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine
from sqlalchemy.dialects import postgresql

from fleets import AWKWARD, Workers, empty, fleets, gvisor, on_a_database, real_fleet, rules, scan
from substrate_compat.errors import InputError
from substrate_compat.identity import SandboxRuntime, WorkerRuntimes
from substrate_compat.tables import FleetTables, candidates, put_workers


def ask(
    connection: Connection, fleet: FleetTables, snapshot: SandboxRuntime | None, limit: int = 100
) -> list[tuple[str, int]]:
    statement = candidates(fleet, snapshot, limit, connection.dialect.name)
    with connection.begin():
        return [(worker_id, position) for worker_id, position in connection.execute(statement)]


def test_the_table_of_rules(connection: Connection, fleet: FleetTables) -> None:
    workers = {f"w{number:02}": WorkerRuntimes(worker) for number, (worker, _, _) in enumerate(rules())}
    put_workers(connection, fleet, workers)
    for number, (_, snapshot, expected) in enumerate(rules()):
        answer = ask(connection, fleet, snapshot)
        assert answer == scan(workers, snapshot, 100)
        assert ((f"w{number:02}", 0) in answer) is expected


def test_160_real_machines(connection: Connection, fleet: FleetTables) -> None:
    workers, snapshots = real_fleet()
    put_workers(connection, fleet, workers)
    lengths = set()
    for snapshot in list(snapshots)[::7]:
        expected = scan(workers, snapshot, 200)
        lengths.add(len(expected))
        assert ask(connection, fleet, snapshot, 200) == expected
    assert len(lengths) > 20


@on_a_database
@given(fleets(), st.integers(1, 4))
def test_candidates_equal_a_scan(
    connection: Connection, fleet: FleetTables, drawn: tuple[Workers, SandboxRuntime | None], limit: int
) -> None:
    workers, snapshot = drawn
    empty(connection, fleet)
    put_workers(connection, fleet, workers)
    assert ask(connection, fleet, snapshot, limit) == scan(workers, snapshot, limit)
    assert ask(connection, fleet, snapshot) == scan(workers, snapshot, 100)


# Few identities in many places: workers that match twice, or by default and again, fill the limited reads.
SOME = [gvisor(architecture="amd64", cpu_features=mask) for mask in ("3", "1", "7", "4", "1f")]


@on_a_database
@given(
    st.lists(
        st.permutations(SOME).flatmap(lambda order: st.integers(1, 5).map(lambda n: tuple(order[:n]))),
        max_size=12,
    ),
    st.integers(1, 6),
    st.sampled_from(SOME),
)
def test_a_worker_is_listed_once(
    connection: Connection,
    fleet: FleetTables,
    offers: list[tuple[SandboxRuntime, ...]],
    limit: int,
    snapshot: SandboxRuntime,
) -> None:
    workers = {f"w{number:02}": WorkerRuntimes(offer[0], offer[1:]) for number, offer in enumerate(offers)}
    empty(connection, fleet)
    put_workers(connection, fleet, workers)
    assert ask(connection, fleet, snapshot, limit) == scan(workers, snapshot, limit)


def test_ids_go_by_code_point(connection: Connection, fleet: FleetTables) -> None:
    runtimes = WorkerRuntimes(gvisor(architecture="amd64"))
    workers = dict.fromkeys([*AWKWARD, "a", "B", "b", "_", "Z", "a-", "aa", "a a", "10", "9"], runtimes)
    put_workers(connection, fleet, workers)
    assert ask(connection, fleet, None) == [(worker_id, 0) for worker_id in sorted(workers)]


def test_the_default_comes_first(connection: Connection, fleet: FleetTables) -> None:
    old, new = (gvisor(architecture="amd64", sandbox_runtime_hash="sha256:" + digit * 64) for digit in "12")
    workers = {"a": WorkerRuntimes(new, (old,)), "b": WorkerRuntimes(old), "c": WorkerRuntimes(old, (new,))}
    put_workers(connection, fleet, workers)
    assert ask(connection, fleet, old) == [("b", 0), ("c", 0), ("a", 1)]
    assert ask(connection, fleet, old, 2) == [("b", 0), ("c", 0)]
    assert ask(connection, fleet, new, 2) == [("a", 0), ("c", 1)]
    assert ask(connection, fleet, None) == [("a", 0), ("b", 0), ("c", 0)]


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, 2**31])
def test_a_limit_is_a_number_of_workers(fleet: FleetTables, limit: int) -> None:
    with pytest.raises(
        InputError, match=r"^limit: it is no number from 1 to 2147483647; say how many workers at most$"
    ):
        candidates(fleet, None, limit)


def test_postgresql_reads_the_index_for_each_identity_and_sorts_by_code_point(fleet: FleetTables) -> None:
    statement = str(candidates(fleet, None).compile(dialect=postgresql.dialect()))
    assert statement.count("JOIN LATERAL") == 2
    assert statement.count("ORDER BY") == statement.count(' COLLATE "C"')


def test_sqlite_looks_every_row_up_in_the_index(
    database: Engine, connection: Connection, fleet: FleetTables
) -> None:
    if database.dialect.name == "sqlite":
        engine_fleet.load(connection, fleet, 2000)
        statement = candidates(fleet, engine_fleet.snapshots()["20 identities"], 100, "sqlite")
        literal = statement.compile(database, compile_kwargs={"literal_binds": True})
        index = "SEARCH worker_runtime USING COVERING INDEX worker_runtime_by_runtime (runtime_key=?"
        for prepared in ("SELECT 1", "ANALYZE"):
            connection.exec_driver_sql(prepared)
            plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {literal}")]
            reads = [step.removeprefix(index) for step in plan if "worker_runtime" in step]
            assert reads == [")", " AND position=?)", " AND position=? AND worker_id>?)"]
        connection.rollback()
