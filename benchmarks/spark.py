"""The Spark example as a person runs it, what the engine says of its work, and DuckDB's counts.

Run as a program, it counts 10 and 100 million snapshots for 100,000 workers with a heap of 2 GiB.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Final

import attrs
from cattrs.gen import make_dict_structure_fn, override
from cattrs.preconf.json import JsonConverter, make_converter
from rich.console import Console
from sqlalchemy import MetaData, create_engine, text
from sqlalchemy.engine import Connection

from benchmarks.retirement_data import SETS, RetirementData
from substrate_compat.tables import FleetTables, refresh_restore_pairs, stranded

__all__ = ["SparkRun", "differences", "main", "retire"]

_MOST_SECONDS: Final = 180
_MOST_GROWTH: Final = 12

_EXAMPLE: Final = Path(__file__).parents[1] / "examples" / "retire_spark.py"
_SAID: Final = re.compile(r"(\d+) snapshots, (\d+) of them stranded; counted in ([\d.]+) s\n").fullmatch


@attrs.frozen
class SparkRun:
    """One run.

    Attributes:
        snapshots: how many were counted.
        stranded: how many of them would be lost.
        seconds: from the start of the session to the last count written, without the start itself.
        rows: how many rows each kind of node of the plans gave, by the engine's own account.
    """

    snapshots: int
    stranded: int
    seconds: float
    rows: Counter[str]


def retire(folder: Path, going: Path, heap: str = "2g") -> SparkRun:
    """Run the example on the tables in `folder`; the counts are in `folder / "counts"` then."""
    log = folder / "events"
    log.mkdir()
    settings = {
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": log.as_uri(),
        "spark.local.dir": str(folder),
    }
    options = [f"--conf {key}={value}" for key, value in settings.items()]
    done = subprocess.run(
        [sys.executable, _EXAMPLE, "--tables", folder, "--going", going, "--output", folder / "counts"],
        env={
            **os.environ,
            "PYSPARK_SUBMIT_ARGS": " ".join(["--driver-memory", heap, *options, "pyspark-shell"]),
        },
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    said = _SAID(done.stdout)
    assert said is not None, done.stdout
    (events,) = log.iterdir()
    return SparkRun(int(said[1]), int(said[2]), float(said[3]), _rows(events))


def main() -> None:
    """Print how long each size took, and how many rows its nodes gave."""
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    first: SparkRun | None = None
    for data in (
        RetirementData(10_000_000, 100_000, versions=3),
        RetirementData(100_000_000, 100_000, versions=3),
        RetirementData(100_000_000, 100_000, versions=50),
    ):
        with tempfile.TemporaryDirectory() as folder:
            start = perf_counter()
            run = retire(Path(folder), data.write(Path(folder)))
            whole = perf_counter() - start
        first = first or run
        growth = run.seconds / first.seconds
        held = "ok" if run.seconds <= _MOST_SECONDS and growth <= _MOST_GROWTH else "over"
        sides = f"{data.workers:,} workers, {data.versions * SETS:,} identities on each side"
        console.print(
            f"{data.snapshots:,} snapshots, {sides}: {run.seconds:.1f} s, {growth:.2f} x the first "
            f"(bars {_MOST_SECONDS} s, {_MOST_GROWTH} x: {held}); {run.stranded:,} stranded; "
            f"{whole:.0f} s with the start of Spark and the writing of the files"
        )
        given = (f"{kind.strip()} {rows:,}" for kind, rows in run.rows.most_common())
        console.print(f"  rows: {', '.join(given)}")


def differences(folder: Path, going: Path, memory: str = "4GB") -> tuple[int, int]:
    """How many snapshots DuckDB counted from the same files, and for how many of them it differs."""
    engine = create_engine("duckdb:///:memory:", connect_args={"config": {"memory_limit": memory}})
    fleet = FleetTables.on(MetaData())
    with engine.connect() as connection:
        with connection.begin():
            for table in fleet:
                if table is not fleet.restore_pair:
                    files = folder / table.name / "*.parquet"
                    connection.execute(
                        text(f"CREATE VIEW {table.name} AS SELECT * FROM read_parquet('{files}')")
                    )
            fleet.restore_pair.create(connection)
        refresh_restore_pairs(connection, fleet)
        counted, differing = _compare(connection, fleet, folder, going.read_text().split())
    engine.dispose()
    return counted, differing


def _compare(connection: Connection, fleet: FleetTables, folder: Path, going: list[str]) -> tuple[int, int]:
    counts = stranded(fleet, going).compile(connection, compile_kwargs={"literal_binds": True})
    files = folder / "counts" / "*.parquet"
    row = connection.exec_driver_sql(
        f"""SELECT count(*), count(*) FILTER (here IS DISTINCT FROM there)
        FROM (SELECT snapshot_id, (workers, workers_left) AS here FROM ({counts}))
        FULL JOIN (SELECT snapshot_id, (workers, workers_left) AS there FROM read_parquet('{files}'))
        USING (snapshot_id)"""
    ).one()
    return row[0], row[1]


@attrs.frozen
class _Metric:
    """A counter of a node."""

    name: str
    id: int


@attrs.frozen
class _Plan:
    """A node of a plan."""

    kind: str
    metrics: tuple[_Metric, ...] = ()
    children: tuple["_Plan", ...] = ()

    def __iter__(self) -> Iterator["_Plan"]:
        yield self
        for child in self.children:
            yield from child


@attrs.frozen
class _Update:
    """What a task added to a counter."""

    id: int
    value: int | str = 0


@attrs.frozen
class _Task:
    updates: tuple[_Update, ...] = ()


@attrs.frozen
class _Event:
    """A line of the event log."""

    plan: _Plan | None = None
    task: _Task | None = None


for _kind in (_Plan, _Event):
    attrs.resolve_types(_kind)


def _rows(events: Path) -> Counter[str]:
    """The rows that each kind of node gave."""
    read = _converter()
    kinds: dict[int, str] = {}
    given: Counter[int] = Counter()
    with events.open() as lines:
        for line in lines:
            event = read.loads(line, _Event)
            for node in event.plan or ():
                counters = (metric.id for metric in node.metrics if metric.name == "number of output rows")
                kinds.update(dict.fromkeys(counters, node.kind))
            for update in event.task.updates if event.task else ():
                given[update.id] += int(update.value)
    rows: Counter[str] = Counter()
    for counter, kind in kinds.items():
        rows[kind] += given[counter]
    return rows


def _converter() -> JsonConverter:
    converter = make_converter()
    converter.register_structure_hook(
        _Metric, make_dict_structure_fn(_Metric, converter, id=override(rename="accumulatorId"))
    )
    converter.register_structure_hook(
        _Plan, make_dict_structure_fn(_Plan, converter, kind=override(rename="nodeName"))
    )
    converter.register_structure_hook(
        _Update,
        make_dict_structure_fn(
            _Update, converter, id=override(rename="ID"), value=override(rename="Update")
        ),
    )
    converter.register_structure_hook(
        _Task, make_dict_structure_fn(_Task, converter, updates=override(rename="Accumulables"))
    )
    converter.register_structure_hook(
        _Event,
        make_dict_structure_fn(
            _Event, converter, plan=override(rename="sparkPlanInfo"), task=override(rename="Task Info")
        ),
    )
    return converter


if __name__ == "__main__":
    main()
