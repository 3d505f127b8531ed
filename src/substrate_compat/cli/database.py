"""The fleet's database as the verbs of `fleet` use it: opened, checked, and its errors made ours."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Self

import attrs
from sqlalchemy import Connection, MetaData, create_engine, func, make_url, select
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from substrate_compat.errors import HostError, InputError, quoted
from substrate_compat.identity import SandboxRuntime, WorkerRuntimes, is_unicode
from substrate_compat.tables import (
    FleetTables,
    candidates,
    prepare,
    put_snapshots,
    put_workers,
    refresh_restore_pairs,
    stranded,
)

__all__ = ["Affected", "Database", "Retirement"]

_NO_URL: Final = "this is no database URL"
_SUCH_AS: Final = "such as sqlite:///fleet.db"


@attrs.frozen
class Affected:
    """A snapshot that loses workers: how many restore it now, and how many would be left."""

    snapshot_id: str
    workers: int
    workers_left: int


@attrs.frozen
class Retirement:
    """What a retirement would do.

    Attributes:
        snapshots: how many there are.
        already_lost: how many of them no worker restores even now.
        affected: those that lose workers, the fewest left first.
    """

    snapshots: int
    already_lost: int
    affected: tuple[Affected, ...]


@attrs.frozen
class Database:
    """The fleet in an open database, whose tables are there and as they should be."""

    connection: Connection
    tables: FleetTables

    @classmethod
    @contextmanager
    def open(cls, url: str) -> Iterator[Self]:
        """Connect, and make the tables if the database has none.

        Raises:
            InputError: the URL is none, its driver is not installed, or the schema is not ours.
            HostError: the database cannot be reached, or breaks off.
        """
        if "\0" in url or not is_unicode(url):
            raise InputError("--db", f"{_NO_URL}: it has what is no text", _SUCH_AS)
        try:
            parsed = make_url(url)
            engine = create_engine(parsed)
        except (ArgumentError, NoSuchModuleError, ValueError) as error:
            # The text may hold a password, so it is not repeated.
            raise InputError("--db", _NO_URL, _SUCH_AS) from error
        except ModuleNotFoundError as error:
            name = parsed.render_as_string()
            raise InputError(
                "--db", f"{name} needs the driver {error.name}", f"pip install {error.name}"
            ) from error
        tables = FleetTables.on(MetaData())
        try:
            with engine.connect() as connection:
                prepare(connection, tables)
                yield cls(connection, tables)
        except DBAPIError as error:
            raise HostError(parsed.render_as_string(), " ".join(str(error.orig).split())) from error
        finally:
            engine.dispose()

    def counts(self) -> tuple[int, int, int]:
        """How many workers, snapshots and distinct identities there are."""
        worker = self.tables.worker_runtime.c
        with self.connection.begin():
            workers, snapshots, identities = (
                self.connection.execute(statement).scalar_one()
                for statement in (
                    select(func.count()).where(worker.position == 0),
                    select(func.count()).select_from(self.tables.snapshot),
                    select(func.count()).select_from(self.tables.runtime),
                )
            )
        return workers, snapshots, identities

    def load(self, workers: Mapping[str, WorkerRuntimes]) -> None:
        """Write the workers."""
        put_workers(self.connection, self.tables, workers)

    def load_snapshots(self, snapshots: Mapping[str, SandboxRuntime]) -> None:
        """Write the snapshots."""
        put_snapshots(self.connection, self.tables, snapshots)

    def candidates(self, snapshot: SandboxRuntime | None, limit: int) -> list[tuple[str, int]]:
        """The workers that restore `snapshot`, each with the position of the runtime that matches."""
        statement = candidates(self.tables, snapshot, limit, self.connection.dialect.name)
        with self.connection.begin():
            return [(worker_id, position) for worker_id, position in self.connection.execute(statement)]

    def retire(self, going: Sequence[str]) -> Retirement:
        """What would be if the workers were gone.

        Raises:
            InputError: there is no such worker: of a misspelt one nothing depends.
        """
        worker = self.tables.worker_runtime.c
        texts = [worker_id for worker_id in going if is_unicode(worker_id)]
        with self.connection.begin():
            known = set(
                self.connection.scalars(
                    select(worker.worker_id).where(worker.worker_id.in_(texts)).distinct()
                )
            )
        for worker_id in going:
            if worker_id not in known:
                raise InputError("WORKER", f"{quoted(worker_id)} is not in the fleet", "check the name")
        refresh_restore_pairs(self.connection, self.tables)
        counts = stranded(self.tables, going).subquery()
        losing = counts.c.workers_left < counts.c.workers
        order = (counts.c.workers_left, counts.c.snapshot_id)
        with self.connection.begin():
            rows = self.connection.execute(select(counts).where(losing).order_by(*order)).all()
            already = self.connection.execute(
                select(func.count()).select_from(counts).where(counts.c.workers == 0)
            ).scalar_one()
        _, snapshots, _ = self.counts()
        return Retirement(snapshots, already, tuple(Affected(*row) for row in rows))
