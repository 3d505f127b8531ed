"""How laws are tried, and the databases that the tests of the fleet run on.

Laws get few examples each, and no deadline, which a busy machine would break. The databases are those
that are part of Python or come with pip; `--database postgresql` runs the same tests on a server of
PostgreSQL, as `make test-engines` does.
"""

import os
import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import Phase, settings
from sqlalchemy import Connection, Engine, MetaData, create_engine, event
from sqlalchemy.pool import ConnectionPoolEntry

from fleets import empty
from postgres import postgres_server
from substrate_compat.tables import FleetTables, prepare

# On the way to a landing the same examples are tried each time; a developer tries new ones.
settings.register_profile(
    "substrate-compat", max_examples=50, deadline=None, database=None, derandomize="CI" in os.environ
)
# Of a mutant it is enough that a test fails: no smaller example is looked for.
settings.register_profile(
    "mutants",
    settings.get_profile("substrate-compat"),
    max_examples=20,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile("substrate-compat")

EMBEDDED = ("sqlite", "duckdb")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--database", choices=[*EMBEDDED, "postgresql"], help="the only one to test on")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "database" in metafunc.fixturenames:
        only = metafunc.config.getoption("--database")
        metafunc.parametrize(
            "database", EMBEDDED if only is None else [only], indirect=True, scope="session"
        )


def do_not_wait_for_the_disk(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
    connection.execute("PRAGMA synchronous = OFF")


@pytest.fixture(scope="session")
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine on a database without tables."""
    name = str(request.param)
    if name == "postgresql":
        with postgres_server() as server:
            engine = create_engine(server.url)
            yield engine
            engine.dispose()
    else:
        engine = create_engine(f"{name}:///{tmp_path_factory.mktemp(name) / 'fleet.db'}")
        if name == "sqlite":
            event.listen(engine, "connect", do_not_wait_for_the_disk)
        yield engine
        engine.dispose()


@pytest.fixture
def fleet() -> FleetTables:
    """The tables, on a metadata of their own."""
    return FleetTables.on(MetaData())


@pytest.fixture
def connection(database: Engine, fleet: FleetTables) -> Iterator[Connection]:
    """A connection to a database with empty tables."""
    with database.connect() as connection:
        prepare(connection, fleet)
        empty(connection, fleet)
        yield connection
