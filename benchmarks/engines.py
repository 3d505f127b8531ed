"""How fast databases find the candidates among many workers: `make bench-engines`.

Each case is asked 30 times of a warm database, in small and in large; a figure is the median. PostgreSQL
runs with `fsync` and 1 GB of `shared_buffers`, and accounts for the rows that it reads. DuckDB has no bars:
it is made for other questions.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from heapq import nsmallest
from itertools import cycle
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

import attrs
from rich.console import Console
from rich.table import Table
from sqlalchemy import URL, Connection, MetaData, create_engine, make_url, select, text

from benchmarks import engine_fleet
from benchmarks.plans import explain
from postgres import postgres_server
from substrate_compat.identity import SandboxRuntime
from substrate_compat.match import matches
from substrate_compat.tables import FleetTables, candidates, prepare, put_workers, read_runtimes

__all__ = ["main"]

_TIMES: Final = 30
_MOST_SECONDS: Final = 0.010
_MOST_GROWTH: Final = 3.0
_MOST_SECONDS_OF_UPSERT: Final = 0.003
_MOST_ROWS: Final = 200
_UPSERT: Final = "upsert that changes 3 runtimes"
_SCAN: Final = "pull all rows and scan in Python"
_HELD_TO_BARS: Final = {"postgresql": True, "sqlite": True, "duckdb": False}


@attrs.frozen
class Figure:
    """What one case took in small and in large, in seconds, and its bars."""

    engine: str
    case: str
    small: float
    large: float

    @property
    def most(self) -> float | None:
        """The bar on the seconds in large."""
        if self.case == _UPSERT:
            return _MOST_SECONDS_OF_UPSERT if self.engine == "postgresql" else None
        return _MOST_SECONDS if _HELD_TO_BARS[self.engine] and self.case != _SCAN else None

    @property
    def most_growth(self) -> float | None:
        """The bar on the growth."""
        return _MOST_GROWTH if self.most == _MOST_SECONDS else None

    @property
    def holds(self) -> bool:
        """Every bar is held."""
        within = self.most is None or self.large <= self.most
        return within and (self.most_growth is None or self.large / self.small <= self.most_growth)


def main(arguments: Sequence[str]) -> None:
    """Measure and print tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=__doc__)
    parser.add_argument(
        "--engine", action="append", choices=list(_HELD_TO_BARS), help="all if none is named"
    )
    parser.add_argument("--workers", type=int, default=1_000_000)
    parser.add_argument("--small", type=int, default=10_000, metavar="WORKERS")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    for engine in options.engine or _HELD_TO_BARS:
        small = dict(_measure(engine, options.small, console))
        large = dict(_measure(engine, options.workers, console))
        figures = [Figure(engine, case, small[case], large[case]) for case in large]
        _print(figures, options.small, options.workers, console)


def _print(figures: Sequence[Figure], small: int, large: int, console: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("engine", "case"):
        table.add_column(head)
    for head in (f"{small:,} workers", f"{large:,} workers", "bar", "growth", "bar", ""):
        table.add_column(head, justify="right", no_wrap=True)
    for figure in figures:
        barred = figure.most is not None
        table.add_row(
            figure.engine,
            figure.case,
            _milliseconds(figure.small),
            _milliseconds(figure.large),
            _milliseconds(figure.most) if figure.most else "",
            f"{figure.large / figure.small:.2f} x",
            f"{figure.most_growth:g} x" if figure.most_growth else "",
            ("ok" if figure.holds else "over") if barred else "",
        )
    console.print(table)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.3g} ms" if seconds < 1 else f"{seconds:,.1f} s"


def _measure(engine: str, workers: int, console: Console) -> Iterator[tuple[str, float]]:
    fleet = FleetTables.on(MetaData())
    with _database(engine) as connection:
        prepare(connection, fleet)
        engine_fleet.load(connection, fleet, workers)
        if engine == "postgresql":
            _count_rows(connection, fleet, f"{workers:,} workers, no statistics", console)
            with connection.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as own:
                for command in ("VACUUM ANALYZE", "CHECKPOINT"):
                    own.execute(text(command))
            _count_rows(connection, fleet, f"{workers:,} workers, statistics", console)
        for case, snapshot in engine_fleet.snapshots().items():
            yield case, _median(_ask(connection, fleet, snapshot))
        yield _UPSERT, _upsert(connection, fleet)
        yield _SCAN, _scan(connection, fleet)


@contextmanager
def _database(engine: str) -> Iterator[Connection]:
    """A connection to a fresh database on disk."""
    if engine == "postgresql":
        with postgres_server(shared_buffers="1GB", autovacuum="off") as server:
            yield from _connect(server.url)
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield from _connect(make_url(f"{engine}:///{Path(folder) / 'fleet.db'}"))


def _connect(url: URL) -> Iterator[Connection]:
    engine = create_engine(url)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def _ask(connection: Connection, fleet: FleetTables, snapshot: SandboxRuntime) -> Callable[[], None]:
    def ask() -> None:
        with connection.begin():
            connection.execute(candidates(fleet, snapshot, 100, connection.dialect.name)).all()

    return ask


def _median(call: Callable[[], None]) -> float:
    call()
    taken = []
    for _ in range(_TIMES):
        start = perf_counter()
        call()
        taken.append(perf_counter() - start)
    return median(taken)


def _upsert(connection: Connection, fleet: FleetTables) -> float:
    """One worker, which each time changes to another model's three runtimes."""
    models = cycle(range(engine_fleet.MODELS))

    def upsert() -> None:
        put_workers(connection, fleet, {"worker-0000001": engine_fleet.offer(next(models))})

    return _median(upsert)


def _scan(connection: Connection, fleet: FleetTables) -> float:
    """What the database spares: every row in Python, and the match on each."""
    snapshot = engine_fleet.snapshots()["20 identities"]
    worker = fleet.worker_runtime.c
    start = perf_counter()
    with connection.begin():
        runtimes = read_runtimes(connection, fleet)
        first: dict[str, int] = {}
        for worker_id, position, key in connection.execute(
            select(worker.worker_id, worker.position, worker.runtime_key)
        ):
            if matches(runtimes[key], snapshot):
                first[worker_id] = min(position, first.get(worker_id, position))
        nsmallest(100, first.items(), key=lambda found: (found[1] > 0, found[0]))
    return perf_counter() - start


def _count_rows(connection: Connection, fleet: FleetTables, when: str, console: Console) -> None:
    """Print the most rows that any node of any plan reads of the workers, for each matching identity."""
    worst = 0.0
    for case, snapshot in engine_fleet.snapshots().items():
        for generic in (False, True):
            with connection.begin():
                plan = explain(connection, candidates(fleet, snapshot), generic=generic)
            read = max(node.read for node in plan if node.table == fleet.worker_runtime.name)
            worst = max(worst, read / max(1, engine_fleet.MATCHING[case]))
    held = "ok" if worst <= _MOST_ROWS else "over"
    console.print(
        f"{when}: at most {worst:g} rows read for each matching identity, bar {_MOST_ROWS}: {held}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
