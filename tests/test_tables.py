"""The condition is the match; what an engine cannot hold, and foreign schemas, are refused."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    MetaData,
    Table,
    Text,
    insert,
    inspect,
    select,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeDecorator

from fleets import AWKWARD, empty, gvisor, on_a_database, rules, without_nul
from strategies import near_snapshots
from substrate_compat.errors import CompatError, InputError
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat, WorkerRuntimes
from substrate_compat.match import matches
from substrate_compat.tables import (
    FleetTables,
    attribute_rows,
    identity_key,
    prepare,
    put_snapshots,
    put_workers,
    read_runtimes,
    remove_snapshots,
    remove_workers,
    restores,
    runtime_row,
)


def write(
    connection: Connection, fleet: FleetTables, runtimes: Iterable[SandboxRuntime]
) -> dict[str, SandboxRuntime]:
    """The tables hold these identities only."""
    by_key = {identity_key(runtime): runtime for runtime in runtimes}
    empty(connection, fleet)
    with connection.begin():
        for runtime in by_key.values():
            connection.execute(insert(fleet.runtime), runtime_row(runtime))
            for row in attribute_rows(runtime):
                connection.execute(insert(fleet.runtime_attribute), row)
    return by_key


def restoring(connection: Connection, fleet: FleetTables, snapshot: SandboxRuntime | None) -> set[str]:
    """The keys that the condition holds for; its negation must hold for all others."""
    key, condition = fleet.runtime.c.runtime_key, restores(fleet, snapshot)
    with connection.begin():
        found = set(connection.scalars(select(key).where(condition)))
        others = set(connection.scalars(select(key).where(~condition)))
        assert found.isdisjoint(others)
        assert found | others == set(connection.scalars(select(key)))
    return found


def test_the_table_of_rules(connection: Connection, fleet: FleetTables) -> None:
    write(connection, fleet, [worker for worker, _, _ in rules()])
    for worker, snapshot, expected in rules():
        assert (identity_key(worker) in restoring(connection, fleet, snapshot)) is expected


SIGNS = [f"{1 << bit:x}" for bit in (0, 62, 63, 64, 127, 224, 255, 260, 261)] + ["0", f"{1 << 63 | 1:x}"]


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_every_word_and_its_sign(connection: Connection, fleet: FleetTables, architecture: str) -> None:
    runtimes = [
        gvisor(architecture=architecture, cpu_features=mask) for mask in [*SIGNS, "f", "7fffff", "-1", "A"]
    ]
    by_key = write(connection, fleet, runtimes)
    for snapshot in runtimes:
        expected = {key for key, runtime in by_key.items() if matches(runtime, snapshot)}
        assert restoring(connection, fleet, snapshot) == expected


@on_a_database
@given(st.data())
def test_the_condition_is_the_match(
    connection: Connection, fleet: FleetTables, data: st.DataObject
) -> None:
    runtimes = data.draw(st.lists(without_nul, min_size=1, max_size=4))
    near = near_snapshots(data.draw(st.sampled_from(runtimes)))
    snapshot = data.draw(st.one_of(near, st.sampled_from(runtimes), without_nul, st.none()))
    by_key = write(connection, fleet, runtimes)
    expected = {key for key, runtime in by_key.items() if matches(runtime, snapshot)}
    assert restoring(connection, fleet, snapshot) == expected


def test_awkward_texts_come_back_as_they_went_in(connection: Connection, fleet: FleetTables) -> None:
    runtimes = {text: gvisor(**{text: text[::-1], "architecture": text}) for text in AWKWARD}
    put_workers(connection, fleet, {text: WorkerRuntimes(runtime) for text, runtime in runtimes.items()})
    put_snapshots(connection, fleet, runtimes)
    with connection.begin():
        read = read_runtimes(connection, fleet)
        assert read == {identity_key(runtime): runtime for runtime in runtimes.values()}
        for table, column in ((fleet.worker_runtime, "worker_id"), (fleet.snapshot, "snapshot_id")):
            rows = connection.execute(select(table.c[column], table.c.runtime_key)).all()
            assert dict(rows) == {text: identity_key(runtime) for text, runtime in runtimes.items()}
    for runtime in runtimes.values():
        assert restoring(connection, fleet, runtime) == {identity_key(runtime)}


@pytest.mark.parametrize(
    "where", ["worker id", "snapshot id", "sandbox class", "schema version", "key", "value"]
)
def test_nul_comes_back_or_is_refused(
    database: Engine, connection: Connection, fleet: FleetTables, where: str
) -> None:
    nul = "a\0b"
    attributes = {nul if where == "key" else "a": nul if where == "value" else "b"}
    compat = VersionedSandboxCompat.of(attributes, nul if where == "schema version" else "v1")
    runtime = SandboxRuntime(nul if where == "sandbox class" else "gvisor", compat)
    worker_id, snapshot_id = (nul if where == each else "x" for each in ("worker id", "snapshot id"))

    def put() -> None:
        put_workers(connection, fleet, {worker_id: WorkerRuntimes(runtime)})
        put_snapshots(connection, fleet, {snapshot_id: runtime})

    if database.dialect.name == "postgresql":
        with pytest.raises(
            InputError, match=r"^database: PostgreSQL holds no text with a NUL, such as 'a\\x00b'"
        ):
            put()
        return
    put()
    with connection.begin():
        assert read_runtimes(connection, fleet) == {identity_key(runtime): runtime}
        assert connection.scalar(select(fleet.worker_runtime.c.worker_id)) == worker_id
        assert connection.scalar(select(fleet.snapshot.c.snapshot_id)) == snapshot_id
    assert restoring(connection, fleet, runtime) == {identity_key(runtime)}


def test_an_id_that_is_no_text_removes_nothing(connection: Connection, fleet: FleetTables) -> None:
    runtime = gvisor(architecture="amd64")
    put_workers(connection, fleet, {"w": WorkerRuntimes(runtime)})
    put_snapshots(connection, fleet, {"s": runtime})
    for remove in (remove_workers, remove_snapshots):
        with pytest.raises(InputError, match=r"^database: '\\ud800' has half a surrogate pair"):
            remove(connection, fleet, ["w", "s", "\ud800"])
    with connection.begin():
        assert connection.scalar(select(fleet.worker_runtime.c.worker_id)) == "w"
        assert connection.scalar(select(fleet.snapshot.c.snapshot_id)) == "s"


def test_postgresql_gets_no_nul(fleet: FleetTables) -> None:
    for table in fleet:
        for column in table.c:
            process = column.type.bind_processor(postgresql.dialect())
            if isinstance(column.type, TypeDecorator):
                assert process is not None
                assert process("a") == "a"
                with pytest.raises(InputError, match=r"^database: PostgreSQL holds no text with a NUL"):
                    process("a\0")


class TestPrepare:
    def test_it_makes_the_tables_once(self, connection: Connection, fleet: FleetTables) -> None:
        put_workers(connection, fleet, {"w": WorkerRuntimes(gvisor(architecture="amd64"))})
        prepare(connection, fleet)
        with connection.begin():
            assert len(read_runtimes(connection, fleet)) == 1

    @pytest.mark.parametrize(
        ("columns", "problem"),
        [
            pytest.param(
                ("runtime_key", "sandbox_class", "schema_version", "architecture", "f0", "f1"),
                "its columns are architecture, f0, f1, runtime_key, sandbox_class, schema_version, not "
                "architecture, f0, f1, f2, f3, f4, f5, runtime_key, sandbox_class, schema_version: "
                "an older or another program's schema",
                id="older",
            ),
            pytest.param(
                ("id", "name"),
                "its columns are id, name, not "
                "architecture, f0, f1, f2, f3, f4, f5, runtime_key, sandbox_class, schema_version: "
                "an older or another program's schema",
                id="foreign",
            ),
        ],
    )
    def test_another_schema_is_refused(
        self, database: Engine, fleet: FleetTables, columns: tuple[str, ...], problem: str
    ) -> None:
        other = MetaData()
        Table("runtime", other, *(Column(name, Text if name[0] != "f" else BigInteger) for name in columns))
        with database.connect() as connection:
            with connection.begin():
                fleet.runtime.metadata.drop_all(connection)
                other.create_all(connection)
            with pytest.raises(CompatError) as refused:
                prepare(connection, fleet)
            assert (refused.value.subject, refused.value.problem) == ("database table runtime", problem)
            assert "remove the tables" in refused.value.remedy
            assert not inspect(connection).has_table("worker_runtime")
            connection.rollback()
            with connection.begin():
                other.drop_all(connection)

    def test_half_of_the_tables_are_refused(self, connection: Connection, fleet: FleetTables) -> None:
        with connection.begin():
            fleet.snapshot.drop(connection)
        with pytest.raises(
            CompatError, match=r"^database table snapshot: its columns are none: there is no such"
        ):
            prepare(connection, fleet)
        with connection.begin():
            fleet.runtime.metadata.drop_all(connection)

    def test_the_tables_may_live_in_a_schema(self, database: Engine) -> None:
        if database.dialect.name == "sqlite":
            return
        fleet = FleetTables.on(MetaData(schema="scheduler"))
        with database.connect() as connection:
            with connection.begin():
                connection.exec_driver_sql("CREATE SCHEMA scheduler")
            prepare(connection, fleet)
            prepare(connection, fleet)
            put_workers(connection, fleet, {"w": WorkerRuntimes(gvisor(architecture="amd64"))})
            with connection.begin():
                assert connection.scalar(select(fleet.worker_runtime.c.worker_id)) == "w"
                fleet.runtime.metadata.drop_all(connection)
                connection.exec_driver_sql("DROP SCHEMA scheduler")
