"""Group `services`: placements by the example scheduler, asked from this process over the loopback."""

import http.client
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Final

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.fleets import FleetWorker, all_masks_differ, few_models, runtimes, snapshot
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat
from substrate_compat.wire import dumps_identity, dumps_worker, make_converter

__all__ = ["figures"]

_ROOT: Final = Path(__file__).parent.parent
_WORKERS: Final = 10_000
_PLACEMENTS: Final = 4_000
_UNPLACEABLE: Final = 0.05
_BAR: Final = 0.005
_PATIENCE: Final = 30.0


def figures(bench: Bench) -> Iterator[Figure]:
    """The figures of this group; the more repeats of fast calls, the more placements."""
    placements = max(100, _PLACEMENTS * bench.repeats // 300)
    for name, fleet in (("few models", few_models), ("all masks differ", all_masks_differ)):
        workers = list(fleet(_WORKERS))
        with _scheduler() as connection:
            _register(connection, workers)
            seconds = _place(connection, _snapshots(workers, placements))
        cuts = quantiles(seconds, n=100)
        where = f"POST /placements, {_WORKERS:,} workers, {name}"
        yield Figure(f"{where}: median", cuts[49])
        yield Figure(f"{where}: 95 % within", cuts[94], bar=_BAR)
        yield Figure(f"{where}: 99 % within", cuts[98])


@contextmanager
def _scheduler() -> Iterator[http.client.HTTPConnection]:
    """A scheduler in a process of its own, and a connection to it that stays open."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    command = [sys.executable, "-m", "examples.scheduler", "--port", str(port)]
    with subprocess.Popen(command, cwd=_ROOT, stderr=subprocess.DEVNULL) as process:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
        try:
            _connect(connection)
            yield connection
        finally:
            connection.close()
            process.kill()


def _connect(connection: http.client.HTTPConnection) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.connect()
        except ConnectionError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


def _register(connection: http.client.HTTPConnection, workers: list[FleetWorker]) -> None:
    converter = make_converter()
    for worker in workers:
        body = dumps_worker(worker.worker_id, runtimes(worker), converter)
        connection.request("PUT", f"/workers/{worker.worker_id}", body.encode())
        with connection.getresponse() as response:
            response.read()
            assert response.status == 204


def _snapshots(workers: list[FleetWorker], count: int) -> Iterator[tuple[bytes, int]]:
    """Snapshots of the fleet's workers, and some that nobody can restore; with the status of the answer."""
    draw, converter = random.Random(1), make_converter()
    for _ in range(count):
        taken = snapshot(draw.choice(workers))
        status = 409 if draw.random() < _UNPLACEABLE else 200
        if status == 409:
            attributes = {
                **dict(taken.compat_version.attributes),
                "sandbox_runtime_hash": "sha256:" + "f" * 64,
            }
            taken = SandboxRuntime(taken.sandbox_class, VersionedSandboxCompat.of(attributes))
        yield dumps_identity(taken, converter).encode(), status


def _place(connection: http.client.HTTPConnection, snapshots: Iterator[tuple[bytes, int]]) -> list[float]:
    seconds = []
    for body, status in snapshots:
        start = time.perf_counter()
        connection.request("POST", "/placements", body)
        with connection.getresponse() as response:
            response.read()
            seconds.append(time.perf_counter() - start)
            assert response.status == status
    return seconds
