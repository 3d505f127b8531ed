"""Fleets to try the database on, and the answers that a scan with the core gives for them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, select

import vectors
from strategies import near_snapshots, sandbox_runtimes, worker_runtimes
from substrate_compat.identity import GVISOR, SandboxRuntime, VersionedSandboxCompat, WorkerRuntimes
from substrate_compat.match import explain_worker
from substrate_compat.tables import FleetTables
from test_match import RULES

Workers = Mapping[str, WorkerRuntimes]

on_a_database: Final = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=10,
)
"""The tables are emptied within each example, so one connection does for all."""

AWKWARD: Final = (
    "'; DROP TABLE runtime; --",
    '"worker_id"',
    "back\\slash \\' \\n",
    "100% %s %(x)s :x ? $1 {x}",
    "SELECT",
    "\U0001f980\U00010000",
    "e\u0301 \u00e9 \u00df",
    "\uffff",
    "tab\tline\nreturn\r\x01\x7f",
    " ",
    "NULL",
)
"""Texts that are trouble for who pastes them into a statement."""

ids = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=3)


@st.composite
def fleets(draw: st.DrawFn) -> tuple[Workers, SandboxRuntime | None]:
    """A few workers, and a snapshot that some of them may well restore."""
    pool = draw(st.lists(without_nul, min_size=1, max_size=3))
    offered = worker_runtimes(st.sampled_from(pool) | without_nul)
    workers = draw(st.dictionaries(ids, offered, max_size=6))
    near = near_snapshots(draw(st.sampled_from(pool)))
    return workers, draw(st.one_of(st.none(), st.sampled_from(pool), near, without_nul))


def _has_no_nul(runtime: SandboxRuntime) -> bool:
    compat = runtime.compat_version
    texts = (
        runtime.sandbox_class,
        compat.schema_version,
        *(text for pair in compat.attributes for text in pair),
    )
    return not any("\0" in text for text in texts)


without_nul = sandbox_runtimes.filter(_has_no_nul)
"""Identities that every engine can hold."""


def empty(connection: Connection, fleet: FleetTables) -> None:
    """Remove every row."""
    with connection.begin():
        for table in fleet:
            connection.execute(delete(table))


def gvisor(**attributes: str) -> SandboxRuntime:
    """An identity of class gvisor."""
    return SandboxRuntime(GVISOR.sandbox_class, VersionedSandboxCompat.of(attributes))


def rules() -> Iterator[tuple[SandboxRuntime, SandboxRuntime, bool]]:
    """The worker, the snapshot and the answer of each row of the core's table."""
    for row in RULES:
        worker, snapshot, reasons = row.values
        assert isinstance(worker, SandboxRuntime)
        assert isinstance(snapshot, SandboxRuntime)
        yield worker, snapshot, not reasons


def scan(workers: Workers, snapshot: SandboxRuntime | None, limit: int) -> list[tuple[str, int]]:
    """What `candidates` must answer: each worker asked in turn, then sorted."""
    found = []
    for worker_id, runtimes in workers.items():
        runtime = explain_worker(runtimes, snapshot).runtime
        if runtime is not None:
            found.append((worker_id, list(runtimes).index(runtime)))
    return sorted(found, key=lambda row: (row[1] > 0, row[0]))[:limit]


def read_workers(connection: Connection, fleet: FleetTables) -> dict[str, list[str]]:
    """The runtime keys of each worker in the database, by position."""
    worker = fleet.worker_runtime.c
    held: dict[str, list[str]] = {}
    with connection.begin():
        rows = connection.execute(select(fleet.worker_runtime).order_by(worker.worker_id, worker.position))
        for worker_id, position, key in rows:
            keys = held.setdefault(worker_id, [])
            assert position == len(keys)
            keys.append(key)
    return held


def real_fleet() -> tuple[Workers, Iterable[SandboxRuntime]]:
    """160 real machines, half of which still restore what an older runtime took, and their snapshots."""
    hosts = vectors.gvisor_hosts().hosts
    old, new = (
        {
            host.id: gvisor(architecture="amd64", cpu_features=host.features.hex, sandbox_runtime_hash=text)
            for host in hosts
        }
        for text in ("sha256:" + "1" * 64, "sha256:" + "2" * 64)
    )
    workers = {
        host.id: WorkerRuntimes(new[host.id], (old[host.id],) if number % 2 else ())
        for number, host in enumerate(hosts)
    }
    return workers, [*old.values(), *new.values()]
