"""A fleet as Parquet, to ask what a retirement strands: any number of snapshots, workers and identities.

Half of the identities belong to workers, half to snapshots: `versions` runtime versions times 100 feature
sets, which grow in two directions, so that some pairs of sets are nested and others are not. A worker
offers three versions of one set.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs
import duckdb

from substrate_compat.cpufeatures import FeatureSet, known_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.identity import (
    ARCHITECTURE,
    CPU_CACHE_LINE,
    CPU_FEATURES,
    SANDBOX_RUNTIME_HASH,
    SandboxRuntime,
    VersionedSandboxCompat,
)
from substrate_compat.rows import WORDS, Cell, attribute_rows, identity_key, runtime_row

__all__ = ["SETS", "RetirementData"]

SETS: Final = 100
_NAMES: Final = [feature.name for feature in known_features(Architecture.AMD64)]


@attrs.frozen
class RetirementData:
    """What is written.

    Attributes:
        snapshots: how many.
        workers: how many.
        versions: runtime versions; the distinct identities on each side are 100 times as many.
    """

    snapshots: int
    workers: int
    versions: int

    def identities(self, *, of_workers: bool) -> list[SandboxRuntime]:
        """The distinct identities of one side: version by version, the sets of each in order."""
        extra = {CPU_CACHE_LINE: "64"} if of_workers else {}
        return [
            SandboxRuntime(
                "gvisor",
                VersionedSandboxCompat.of(
                    {
                        ARCHITECTURE: Architecture.AMD64.value,
                        CPU_FEATURES: _features(number).hex,
                        SANDBOX_RUNTIME_HASH: f"sha256:{version:064x}",
                        **extra,
                    }
                ),
            )
            for version in range(self.versions)
            for number in range(SETS)
        ]

    def write(self, folder: Path) -> Path:
        """Write the tables into `folder`; the answer is the file of the workers that go: the best tenth."""
        going = [_worker_id(number) for number in range(self.workers) if number % SETS >= SETS * 9 // 10]
        with duckdb.connect() as database:
            database.execute("SET preserve_insertion_order = false")
            self._write_identities(database, folder)
            for table, rows in (
                (
                    "worker_runtime",
                    f"""SELECT 'worker-' || lpad(i::VARCHAR, 7, '0') AS worker_id,
                        position::INTEGER AS position, runtime_key
                    FROM range({self.workers}) workers(i), range(3) positions(position), offered
                    WHERE number = (i // {SETS} + position) % {self.versions} * {SETS} + i % {SETS}""",
                ),
                (
                    "snapshot",
                    f"""SELECT 'snapshot-' || lpad(i::VARCHAR, 9, '0') AS snapshot_id, runtime_key
                    FROM range({self.snapshots}) snapshots(i), carried
                    WHERE number = hash(i) % {self.versions * SETS}""",
                ),
            ):
                database.execute(f"COPY ({rows}) TO '{folder / table}' (FORMAT parquet, PER_THREAD_OUTPUT)")
        file = folder / "going.txt"
        file.write_text("".join(f"{worker_id}\n" for worker_id in going))
        return file

    def _write_identities(self, database: duckdb.DuckDBPyConnection, folder: Path) -> None:
        words = ", ".join(f"{word} BIGINT" for word in WORDS)
        for table, columns in (
            (
                "runtime",
                f"runtime_key TEXT, sandbox_class TEXT, schema_version TEXT, architecture TEXT, {words}",
            ),
            ("runtime_attribute", "runtime_key TEXT, key TEXT, value TEXT"),
            ("offered", "number BIGINT, runtime_key TEXT"),
            ("carried", "number BIGINT, runtime_key TEXT"),
        ):
            database.execute(f"CREATE TABLE {table} ({columns})")
        for table, of_workers in (("offered", True), ("carried", False)):
            identities = self.identities(of_workers=of_workers)
            _insert(database, "runtime", [[*runtime_row(each).values()] for each in identities])
            attributes = [[*row.values()] for each in identities for row in attribute_rows(each)]
            _insert(database, "runtime_attribute", attributes)
            keys: list[list[Cell]] = [
                [number, identity_key(each)] for number, each in enumerate(identities)
            ]
            _insert(database, table, keys)
        for table in ("runtime", "runtime_attribute"):
            database.execute(f"COPY {table} TO '{folder / table}' (FORMAT parquet, PER_THREAD_OUTPUT)")


def _insert(database: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Sequence[Cell]]) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    lists = ", ".join(["unnest(?)"] * len(columns))
    database.execute(f"INSERT INTO {table} SELECT {lists}", columns)


def _worker_id(number: int) -> str:
    return f"worker-{number:07}"


def _features(number: int) -> FeatureSet:
    """Longer with the tens, and short of one of the first names: nested in both or in neither."""
    tens, ones = divmod(number, 10)
    kept = _NAMES[: len(_NAMES) - 4 * (9 - tens)]
    return FeatureSet.from_names(Architecture.AMD64, kept[9 - ones :])
