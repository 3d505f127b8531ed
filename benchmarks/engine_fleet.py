"""A fleet for databases: many workers with few identities, and the snapshots that are asked for.

20 machine models, each with more features than the one before, times 3 runtime versions: 60 identities. A
worker's default is the newest version and it still restores the two older ones, but for 50 workers, spread
over the fleet, that were not upgraded: their default is the oldest.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from sqlalchemy import Connection, insert, text

from substrate_compat.cpufeatures import FeatureSet, known_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.identity import (
    ARCHITECTURE,
    CPU_FEATURES,
    SANDBOX_RUNTIME_HASH,
    SandboxRuntime,
    VersionedSandboxCompat,
    WorkerRuntimes,
)
from substrate_compat.tables import FleetTables, attribute_rows, identity_key, runtime_row

__all__ = ["MATCHING", "MODELS", "NOT_UPGRADED", "VERSIONS", "load", "offer", "snapshots", "worker_rows"]

MODELS: Final = 20
VERSIONS: Final = 3
NOT_UPGRADED: Final = 50
MATCHING: Final = {
    "one model": 1,
    "20 identities": 20,
    "all 60 identities": 60,
    "fewer than 100 defaults": 20,
    "none": 0,
}
"""How many identities match each of `snapshots()`."""

_ROWS_AT_ONCE: Final = 100_000
_NAMES: Final = [feature.name for feature in known_features(Architecture.AMD64)]
_UNKNOWN_VERSION: Final = VERSIONS


def identity(model: int, version: int | None) -> SandboxRuntime:
    """A machine model, and one of the runtime versions if any."""
    features = FeatureSet.from_names(Architecture.AMD64, _NAMES[: len(_NAMES) - 2 * (MODELS - 1 - model)])
    attributes = {ARCHITECTURE: Architecture.AMD64.value, CPU_FEATURES: features.hex}
    if version is not None:
        attributes[SANDBOX_RUNTIME_HASH] = f"sha256:{version:064x}"
    return SandboxRuntime("gvisor", VersionedSandboxCompat.of(attributes))


def offer(model: int, *, upgraded: bool = True) -> WorkerRuntimes:
    """What a worker offers."""
    oldest, *newer = (identity(model, version) for version in range(VERSIONS))
    older, newest = newer
    return WorkerRuntimes(newest, (older, oldest)) if upgraded else WorkerRuntimes(oldest, (newest, older))


def snapshots() -> Mapping[str, SandboxRuntime]:
    """What is asked for, by the name of the case."""
    newest = VERSIONS - 1
    return {
        "one model": identity(MODELS - 1, newest),
        "20 identities": identity(0, newest),
        "all 60 identities": identity(0, None),
        "fewer than 100 defaults": identity(0, 0),
        "none": identity(0, _UNKNOWN_VERSION),
    }


def worker_rows(workers: int) -> Iterator[tuple[str, int, str]]:
    """The rows of `worker_runtime`, in an order that is not the ids'."""
    keys = {
        upgraded: [list(map(identity_key, offer(model, upgraded=upgraded))) for model in range(MODELS)]
        for upgraded in (True, False)
    }
    every = workers // NOT_UPGRADED
    for number in range(workers):
        for position, key in enumerate(keys[number % every != 0][number % MODELS]):
            yield f"worker-{number * 7919 % workers:07}", position, key


def load(connection: Connection, fleet: FleetTables, workers: int) -> None:
    """Fill empty tables, in the way that each engine does it fastest."""
    identities = [identity(model, version) for model in range(MODELS) for version in range(VERSIONS)]
    rows = worker_rows(workers)
    with connection.begin():
        connection.execute(insert(fleet.runtime), [runtime_row(each) for each in identities])
        attributes = [row for each in identities for row in attribute_rows(each)]
        connection.execute(insert(fleet.runtime_attribute), attributes)
        driver = connection.connection.driver_connection
        assert driver is not None
        match connection.dialect.name:
            case "postgresql":
                with driver.cursor().copy("COPY worker_runtime FROM STDIN") as copy:
                    for row in rows:
                        copy.write_row(row)
            case "sqlite":
                driver.executemany("INSERT INTO worker_runtime VALUES (?, ?, ?)", rows)
            case "duckdb":
                # DuckDB reads a list of columns fast, and single rows slowly.
                statement = text(
                    "INSERT INTO worker_runtime SELECT unnest(CAST(:ids AS VARCHAR[])),"
                    " unnest(CAST(:positions AS INTEGER[])), unnest(CAST(:keys AS VARCHAR[]))"
                )
                while some := list(islice(rows, _ROWS_AT_ONCE)):
                    ids, positions, keys = zip(*some, strict=True)
                    values = {"ids": list(ids), "positions": list(positions), "keys": list(keys)}
                    connection.execute(statement, values)
            case other:
                raise NotImplementedError(other)
