"""The fleet in a database: the match runs inside the engine that holds the workers and the snapshots.

An identity stands there once, and workers and snapshots name it by key; so a statement compares the few
identities and then follows an index. SQLAlchemy Core makes the statements; nothing else imports it.
"""

from substrate_compat.rows import attribute_rows, identity_key, runtime_row, snapshot_row, worker_rows
from substrate_compat.tables.query import candidates
from substrate_compat.tables.retirement import stranded
from substrate_compat.tables.schema import FleetTables, UnstorableError, prepare, restores
from substrate_compat.tables.store import (
    put_snapshots,
    put_workers,
    read_runtimes,
    refresh_restore_pairs,
    remove_snapshots,
    remove_unused_runtimes,
    remove_workers,
)

__all__ = [
    "FleetTables",
    "UnstorableError",
    "attribute_rows",
    "candidates",
    "identity_key",
    "prepare",
    "put_snapshots",
    "put_workers",
    "read_runtimes",
    "refresh_restore_pairs",
    "remove_snapshots",
    "remove_unused_runtimes",
    "remove_workers",
    "restores",
    "runtime_row",
    "snapshot_row",
    "stranded",
    "worker_rows",
]
