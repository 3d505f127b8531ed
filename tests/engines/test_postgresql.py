"""PostgreSQL: what it reads for an answer, and what a crash leaves."""

from collections.abc import Callable, Iterator

import pytest
from benchmarks import engine_fleet
from benchmarks.plans import explain
from sqlalchemy import Connection, Engine, MetaData, create_engine, event, text
from sqlalchemy.exc import DBAPIError

from fleets import gvisor, read_workers
from postgres import Postgres, postgres_server
from substrate_compat.identity import WorkerRuntimes
from substrate_compat.tables import FleetTables, candidates, identity_key, prepare, put_workers

WORKERS = 20_000


@pytest.fixture(scope="module")
def large_fleet() -> Iterator[tuple[Connection, FleetTables]]:
    """A fleet of which the server has no statistics yet."""
    fleet = FleetTables.on(MetaData())
    with postgres_server(autovacuum="off") as server:
        engine = create_engine(server.url)
        with engine.connect() as connection:
            prepare(connection, fleet)
            engine_fleet.load(connection, fleet, WORKERS)
            yield connection, fleet
        engine.dispose()


class TestRowsRead:
    """The tests go in this order: without statistics, then with them."""

    @pytest.mark.parametrize("analysed", [False, True], ids=["no statistics", "statistics"])
    @pytest.mark.parametrize("generic", [False, True], ids=["custom plan", "generic plan"])
    @pytest.mark.parametrize("case", engine_fleet.MATCHING)
    def test_at_most_200_for_each_matching_identity(
        self, large_fleet: tuple[Connection, FleetTables], *, analysed: bool, generic: bool, case: str
    ) -> None:
        connection, fleet = large_fleet
        with connection.begin():
            if analysed:
                connection.execute(text("ANALYZE"))
            plan = explain(connection, candidates(fleet, engine_fleet.snapshots()[case]), generic=generic)
        read = [node.read for node in plan if node.table == "worker_runtime"]
        assert read
        assert max(read) <= 200 * engine_fleet.MATCHING[case]
        assert plan.rows == min(100, 100 * engine_fleet.MATCHING[case])


ONE, TWO, THREE = (gvisor(architecture="amd64", cpu_features=mask) for mask in "123")


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres_server() as server:
        yield server


def killing(engine: Engine, server: Postgres, moment: str, last: int) -> Callable[[], None]:
    """From now on, the server dies at the `last` of these moments."""
    left = iter(range(last))

    def die(*_: object) -> None:
        if next(left, None) is None:
            server.kill()

    event.listen(engine, moment, die)
    return lambda: event.remove(engine, moment, die)


@pytest.mark.parametrize(
    ("moment", "last"),
    [*(("before_cursor_execute", last) for last in range(4)), ("commit", 0)],
)
def test_a_server_killed_in_the_middle_of_an_upsert_has_the_old_worker(
    server: Postgres, moment: str, last: int
) -> None:
    fleet = FleetTables.on(MetaData())
    engine = create_engine(server.url)
    with engine.connect() as connection:
        prepare(connection, fleet)
        put_workers(connection, fleet, {"w": WorkerRuntimes(ONE, (TWO, THREE))})
    live = killing(engine, server, moment, last)
    with engine.connect() as connection, pytest.raises(DBAPIError):
        put_workers(connection, fleet, {"w": WorkerRuntimes(gvisor(architecture="arm64"), (ONE,))})
    live()
    server.start()
    with engine.connect() as connection:
        assert read_workers(connection, fleet) == {"w": [identity_key(each) for each in (ONE, TWO, THREE)]}
    engine.dispose()
