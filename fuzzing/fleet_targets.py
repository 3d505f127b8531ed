"""Targets of whole fleets: the index, the pairs, the matrix and the database against a plain scan."""

import atexit
import json
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Final

from sqlalchemy import Column, Connection, MetaData, create_engine, select
from sqlalchemy.pool import StaticPool

from fuzzing.json_targets import TARGETS as JSON_TARGETS
from fuzzing.json_targets import workers_of
from fuzzing.target import Target, accepted, require, text_of
from substrate_compat.cli.matrix_page import matrix_page
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import CompatError
from substrate_compat.identity import SandboxRuntime, WorkerRuntimes
from substrate_compat.index import WorkerIndex
from substrate_compat.match import matches
from substrate_compat.matrix import matrix, worker_of_features
from substrate_compat.pairs import restore_pairs
from substrate_compat.registration import (
    NEVER,
    Backoff,
    Caches,
    NodeRules,
    Pod,
    PodState,
    Register,
    Sync,
    WorkerRules,
    WorkerState,
)
from substrate_compat.rows import identity_key
from substrate_compat.strictjson import parse_json
from substrate_compat.tables import (
    FleetTables,
    candidates,
    prepare,
    put_snapshots,
    put_workers,
    refresh_restore_pairs,
    remove_snapshots,
    remove_unused_runtimes,
    remove_workers,
    stranded,
)
from substrate_compat.wire import dumps_worker
from substrate_compat.wording import describe

__all__ = ["TARGETS"]

_MOST: Final = 12
_FLEET: Final = FleetTables.on(MetaData())
_NODE: Final = NodeRules()
_WORKER: Final = WorkerRules()


def _restorers(fleet: Mapping[str, WorkerRuntimes], snapshot: SandboxRuntime) -> set[str]:
    return {name for name, runtimes in fleet.items() if any(matches(each, snapshot) for each in runtimes)}


def _index(data: bytes) -> None:
    fleet = workers_of(data)
    index = WorkerIndex()
    for name, runtimes in fleet.items():
        index.put(name, runtimes)
    require(len(index) == len(fleet), "each worker once")
    snapshots = [*dict.fromkeys(runtime for runtimes in fleet.values() for runtime in runtimes)][:_MOST]
    for snapshot in snapshots:
        found = _restorers(fleet, snapshot)
        require(set(index.candidates(snapshot)) == found, "candidates as by a scan")
        require(index.count(snapshot) == len(found), "as many as there are")
    for name in fleet:
        require(name in index, "what was put is there")
    by_key = {identity_key(snapshot): snapshot for snapshot in snapshots}
    pairs = {(a, b) for a, one in by_key.items() for b, other in by_key.items() if matches(one, other)}
    require(set(restore_pairs(by_key, by_key)) == pairs, "pairs as by a scan")
    for name in [*fleet][: len(fleet) // 2 + 1]:
        index.remove(name)
        del fleet[name]
    for snapshot in snapshots:
        require(set(index.candidates(snapshot)) == _restorers(fleet, snapshot), "as by a scan, later")
        why = index.why_none(snapshot)
        if why is not None:
            describe(why)


def _matrix(data: bytes) -> None:
    fleet = workers_of(data)
    view = accepted(matrix, fleet)
    if view is not None:
        require(view.workers == len(fleet), "each worker once")
        page = matrix_page(view, text_of(data[:20]))
        require("<script" not in page, "no name is markup")


@cache
def _connection() -> Connection:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    atexit.register(engine.dispose)
    connection = engine.connect()
    atexit.register(connection.close)
    prepare(connection, _FLEET)
    return connection


def _emptied() -> Connection:
    connection = _connection()
    with connection.begin():
        for table in _FLEET:
            connection.execute(table.delete())
    return connection


def _written(connection: Connection, column: Column[str], wanted: Collection[str]) -> bool:
    with connection.begin():
        held = set(connection.scalars(select(column)))
    require(held in (set(wanted), set()), "all is written or nothing")
    return bool(held)


def _database(data: bytes) -> None:
    ids, _, lines = data.partition(b"\n")
    going = text_of(ids).split(",")
    fleet = workers_of(lines)
    connection = _emptied()
    accepted(put_workers, connection, _FLEET, fleet)
    if not _written(connection, _FLEET.worker_runtime.c.worker_id, fleet):
        return
    snapshots = {
        each: runtimes.default_runtime for each, runtimes in zip(going, fleet.values(), strict=False)
    }
    accepted(put_snapshots, connection, _FLEET, snapshots)
    written = _written(connection, _FLEET.snapshot.c.snapshot_id, snapshots)
    for snapshot in snapshots.values():
        statement = candidates(_FLEET, snapshot, _MOST, "sqlite")
        with connection.begin():
            found = {worker_id for worker_id, _ in connection.execute(statement)}
        require(found == _restorers(fleet, snapshot), "candidates as by a scan")
    refresh_restore_pairs(connection, _FLEET)
    gone = [each for each in fleet if each in going]
    with connection.begin():
        rows = [*connection.execute(stranded(_FLEET, gone))]
    require(len(rows) == (len(snapshots) if written else 0), "each snapshot once")
    for snapshot_id, workers, left in rows:
        able = _restorers(fleet, snapshots[snapshot_id])
        require((workers, left) == (len(able), len(able - set(gone))), "counted as by a scan")
    accepted(remove_workers, connection, _FLEET, going)
    accepted(remove_snapshots, connection, _FLEET, going)
    remove_unused_runtimes(connection, _FLEET)


def _texts(value: object) -> dict[str, str]:
    pairs = value.items() if isinstance(value, dict) else ()
    return {str(key): each for key, each in pairs if isinstance(each, str)}


def _registration(data: bytes) -> None:
    value = accepted(parse_json, data)
    if not isinstance(value, dict):
        return
    pods = {key: Pod(pool, pool == "") for key, pool in _texts(value.get("pods")).items()}
    caches = Caches(pods, _texts(value.get("pools")), _texts(value.get("configs")))
    for key in (*pods, "gone"):
        state: PodState | None = None
        for step in range(3):
            now = 100.0 * step
            state, action = _NODE.decide(key, state, caches, float(step), now=now, draw=0.5)
            if isinstance(action, Sync) and state is not None:
                known = caches.pools[pods[key].pool or ""]
                require(action.source.config == known, "what is synced is the pool's config")
                again = _NODE.failed(state, now=now)
                require(now < again.due < NEVER, "what failed is tried again")
                state = _NODE.done(again)
    waits = value.get("backoff")
    if isinstance(waits, list) and len(waits) == 2 and all(isinstance(each, float) for each in waits):
        backoff = accepted(Backoff, *waits)
        require(
            backoff is None or backoff.first <= backoff.delay(3) <= backoff.longest, "a wait is bounded"
        )


def _register(data: bytes) -> None:
    state = WorkerState()
    try:
        found: WorkerRuntimes | CompatError | None = next(iter(workers_of(data).values()), None)
        parse_json(data)
    except CompatError as error:
        found = error
    for now in (0.0, 1.0, 400.0):
        state, action = _WORKER.decide(state, found, now=now)
        require(state.due > now, "the next decision is later")
        if isinstance(action, Register):
            require(action.runtimes == found, "what is registered is what the file says")
            failed = _WORKER.failed(state, now=now)
            require(failed.due > now, "what failed is tried later")
            state = _WORKER.registered(failed, action.runtimes, now=now, draw=0.5)


def _lines() -> Iterator[bytes]:
    (worker,) = (target for target in JSON_TARGETS if target.name == "worker")
    lines = [*worker.captures()]
    yield b"".join(lines)
    yield b"".join(lines[:3])
    # The first restores what the others cannot: they lack only features.
    masks = (FeatureSet(Architecture.AMD64, bits) for bits in (15, 7, 3))
    for_one = {f"w{mask.hex}": worker_of_features(mask) for mask in masks}
    yield "".join(dumps_worker(name, runtimes) for name, runtimes in for_one.items()).encode()


_NODE_SEED: Final = {
    "pods": {"uid-1": "general", "uid-2": "special", "uid-3": ""},
    "pools": {"general": "gvisor", "special": "none"},
    "configs": {"gvisor": "1"},
    "backoff": [1, 30],
}

TARGETS: Final = (
    Target("index", _index, _lines),
    Target("matrix", _matrix, _lines),
    Target("database", _database, lambda: (b"w0,w1,s\n" + lines for lines in _lines())),
    Target("registration", _registration, lambda: [json.dumps(_NODE_SEED).encode()]),
    Target("register", _register, _lines),
)
