"""What a retirement would strand: the same counts as a scan."""

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, select

from fleets import Workers, empty, fleets, gvisor, on_a_database, real_fleet, without_nul
from substrate_compat.identity import SandboxRuntime, WorkerRuntimes
from substrate_compat.match import explain_worker, matches
from substrate_compat.tables import FleetTables, put_snapshots, put_workers, refresh_restore_pairs, stranded

Counts = dict[str, tuple[int, int]]


def counts(connection: Connection, fleet: FleetTables, going: list[str]) -> Counts:
    refresh_restore_pairs(connection, fleet)
    with connection.begin():
        rows = connection.execute(stranded(fleet, going)).all()
        worker_ids = fleet.worker_runtime.c.worker_id
        by_select = stranded(fleet, select(worker_ids).where(worker_ids.in_(going)))
        assert sorted(map(tuple, connection.execute(by_select))) == sorted(map(tuple, rows))
    return {snapshot_id: (workers, left) for snapshot_id, workers, left in rows}


def scan(workers: Workers, snapshots: dict[str, SandboxRuntime], going: list[str]) -> Counts:
    able = {
        snapshot_id: [
            name for name, runtimes in workers.items() if any(matches(each, snapshot) for each in runtimes)
        ]
        for snapshot_id, snapshot in snapshots.items()
    }
    return {
        snapshot_id: (len(names), len([name for name in names if name not in going]))
        for snapshot_id, names in able.items()
    }


@on_a_database
@given(fleets(), st.lists(without_nul, max_size=3), st.data())
def test_counts_equal_a_scan(
    connection: Connection,
    fleet: FleetTables,
    drawn: tuple[Workers, SandboxRuntime | None],
    others: list[SandboxRuntime],
    data: st.DataObject,
) -> None:
    workers, snapshot = drawn
    snapshots = {f"s{number}": each for number, each in enumerate([snapshot, *others, snapshot]) if each}
    going = data.draw(st.lists(st.sampled_from([*workers, "no such worker"]), unique=True))
    empty(connection, fleet)
    put_workers(connection, fleet, workers)
    put_snapshots(connection, fleet, snapshots)
    assert counts(connection, fleet, going) == scan(workers, snapshots, going)


def test_160_real_machines(connection: Connection, fleet: FleetTables) -> None:
    workers, carried = real_fleet()
    snapshots = {f"s{number}": snapshot for number, snapshot in enumerate(carried)}
    going = sorted(workers)[::3]
    put_workers(connection, fleet, workers)
    put_snapshots(connection, fleet, snapshots)
    found = counts(connection, fleet, going)
    assert found == scan(workers, snapshots, going)
    lost = [snapshot_id for snapshot_id, (able, left) in found.items() if able and not left]
    assert lost
    for snapshot_id in lost:
        assert all(
            name in going or not explain_worker(runtimes, snapshots[snapshot_id]).compatible
            for name, runtimes in workers.items()
        )


def test_a_worker_that_matches_twice_counts_once(connection: Connection, fleet: FleetTables) -> None:
    old, new = (gvisor(architecture="amd64", cpu_features=mask) for mask in "13")
    put_workers(connection, fleet, {"w": WorkerRuntimes(new, (old,))})
    put_snapshots(connection, fleet, {"s": old, "none": gvisor(architecture="arm64")})
    assert counts(connection, fleet, []) == {"s": (1, 1), "none": (0, 0)}
    assert counts(connection, fleet, ["w"]) == {"s": (1, 0), "none": (0, 0)}
