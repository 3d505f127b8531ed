"""A fleet in a database: its tables, and the match as a condition that the engine tests.

The match is done on the few distinct identities: equal values by `=`, features by `&` on the words of the
mask. SQLite, PostgreSQL, DuckDB and others understand it alike.
"""

from collections.abc import Iterator
from typing import Final, Self

import attrs
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Index,
    Integer,
    MetaData,
    RootTransaction,
    String,
    Table,
    and_,
    false,
    inspect,
    literal_column,
    select,
    true,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DontWrapMixin
from sqlalchemy.types import TypeDecorator, TypeEngine

from substrate_compat.errors import InputError, quoted
from substrate_compat.identity import ARCHITECTURE, CPU_FEATURES, SandboxRuntime, is_unicode
from substrate_compat.rows import WORDS, mask_words

__all__ = ["FleetTables", "UnstorableError", "prepare", "restores", "transaction"]

_POSTGRESQL: Final = "postgresql"


class UnstorableError(InputError, DontWrapMixin):
    """A text that the engine cannot hold."""


class _Text(TypeDecorator[str]):
    """Text that is compared and sorted by code point in every engine."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        collation = "C" if dialect.name == _POSTGRESQL else None
        return dialect.type_descriptor(String(collation=collation))

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is not None and not is_unicode(value):
            raise UnstorableError(
                "database", f"{quoted(value)} has half a surrogate pair: it is no Unicode text"
            )
        if value is not None and "\0" in value and dialect.name == _POSTGRESQL:
            raise UnstorableError(
                "database",
                f"PostgreSQL holds no text with a NUL, such as {quoted(value)}",
                "remove the NUL",
            )
        return value


@attrs.frozen
class FleetTables:
    """The tables of a fleet.

    Attributes:
        runtime: the distinct identities: class, schema version, architecture and the words of the mask.
        runtime_attribute: the attributes of each that are matched by equality.
        worker_runtime: which identities a worker offers, its default at position 0.
        snapshot: which identity a snapshot carries.
        restore_pair: which worker identity restores which snapshot identity; derived from the others.

    >>> FleetTables.on(MetaData()).worker_runtime.c.keys()
    ['worker_id', 'position', 'runtime_key']
    """

    runtime: Table
    runtime_attribute: Table
    worker_runtime: Table
    snapshot: Table
    restore_pair: Table

    @classmethod
    def on(cls, metadata: MetaData) -> Self:
        """The tables, declared on `metadata`, in its schema if it has one."""
        worker_runtime = Table(
            "worker_runtime",
            metadata,
            Column("worker_id", _Text, primary_key=True),
            Column("position", Integer, primary_key=True, autoincrement=False),
            Column("runtime_key", _Text, nullable=False),
        )
        columns = worker_runtime.c
        Index("worker_runtime_by_runtime", columns.runtime_key, columns.position, columns.worker_id)
        return cls(
            Table(
                "runtime",
                metadata,
                Column("runtime_key", _Text, primary_key=True),
                Column("sandbox_class", _Text, nullable=False),
                Column("schema_version", _Text, nullable=False),
                Column("architecture", _Text),
                *(Column(word, BigInteger) for word in WORDS),
            ),
            Table(
                "runtime_attribute",
                metadata,
                Column("runtime_key", _Text, primary_key=True),
                Column("key", _Text, primary_key=True),
                Column("value", _Text, nullable=False),
            ),
            worker_runtime,
            Table(
                "snapshot",
                metadata,
                Column("snapshot_id", _Text, primary_key=True),
                Column("runtime_key", _Text, nullable=False, index=True),
            ),
            Table(
                "restore_pair",
                metadata,
                Column("snapshot_key", _Text, primary_key=True),
                Column("worker_key", _Text, primary_key=True),
            ),
        )

    def __iter__(self) -> Iterator[Table]:
        yield from (self.runtime, self.runtime_attribute, self.worker_runtime, self.snapshot)
        yield self.restore_pair


def prepare(connection: Connection, fleet: FleetTables) -> None:
    """Make the tables in a database that has none of them; check the columns of those that are there.

    Raises:
        InputError: the database has some of the tables only, or a table with other columns: an older or
            another program's schema. Nothing is changed then.
    """
    with transaction(connection):
        held = {table.name: _columns(connection, table) for table in fleet}
        if not any(held.values()):
            fleet.runtime.metadata.create_all(connection, list(fleet))
            return
    for table in fleet:
        if held[table.name] != set(table.c.keys()):
            raise InputError(
                f"database table {table.name}",
                f"its columns are {', '.join(sorted(held[table.name])) or 'none: there is no such table'}, "
                f"not {', '.join(sorted(table.c.keys()))}: an older or another program's schema",
                "use an empty database, or remove the tables and load the fleet again",
            )


def transaction(connection: Connection) -> RootTransaction:
    """A transaction that nobody sees half of, also when it breaks off.

    Raises:
        InputError: `connection` commits each statement by itself.
        sqlalchemy.exc.InvalidRequestError: it is in a transaction already.
    """
    driver = connection.connection.dbapi_connection
    if driver is not None and connection.dialect.detect_autocommit_setting(driver):
        raise InputError(
            "connection",
            "its isolation level is AUTOCOMMIT: whoever reads meanwhile sees half a worker",
            "give a connection with another isolation level",
        )
    return connection.begin()


def restores(fleet: FleetTables, snapshot: SandboxRuntime | None) -> ColumnElement[bool]:
    """The condition on the table `runtime` that the identity restores `snapshot`, as `matches` says.

    It is true or false, never NULL, so that it can be negated.

    >>> print(restores(FleetTables.on(MetaData()), None))
    true
    """
    if snapshot is None:
        return true()
    compat = snapshot.compat_version
    runtime, attribute = fleet.runtime.c, fleet.runtime_attribute.c
    conditions: list[ColumnElement[bool]] = [
        runtime.sandbox_class == snapshot.sandbox_class,
        runtime.schema_version == compat.schema_version,
    ]
    for key, value in sorted(compat.equalities):
        if key == ARCHITECTURE:
            conditions += (runtime.architecture.is_not(None), runtime.architecture == value)
        else:
            held = (attribute.runtime_key == runtime.runtime_key, attribute.key == key)
            conditions.append(select(literal_column("1")).where(*held, attribute.value == value).exists())
    if compat.features is not None:
        conditions.append(runtime.f0.is_not(None))
        for word, needed in zip(WORDS, mask_words(compat.features.bits), strict=True):
            if needed:
                conditions.append(runtime[word].bitwise_and(needed) == needed)
    elif compat.get(CPU_FEATURES) is not None:
        conditions.append(false())
    return and_(*conditions)


def _columns(connection: Connection, table: Table) -> set[str]:
    """The columns of the table in the database; empty where there is none of that name."""
    if not inspect(connection).has_table(table.name, table.schema):
        return set()
    every: ColumnElement[str] = literal_column("*")
    return set(connection.execute(select(every).select_from(table).limit(0)).keys())
