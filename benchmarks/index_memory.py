"""Group `index_memory`: what an index of a fleet takes beyond the ids and the runtimes in it."""

import gc
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Final

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.fleets import (
    FleetWorker,
    all_hashes_differ,
    all_masks_differ,
    few_models,
    shared_runtimes,
)
from substrate_compat.index import WorkerIndex

__all__ = ["figures"]

_FLEET: Final = 100_000
_LARGE_FLEET: Final = 1_000_000


def figures(_bench: Bench) -> Iterator[Figure]:
    """The figures of this group."""
    taken = _bytes_taken([*few_models(_LARGE_FLEET)])
    yield _of_each(f"{_LARGE_FLEET:,} workers of 20 models", taken / _LARGE_FLEET, 150)
    for fleet, differ, bar in (
        (all_masks_differ, "all masks differ", 1024),
        (all_hashes_differ, "all runtime hashes differ", 3 * 1024),
    ):
        half, whole = (_bytes_taken([*fleet(workers)]) for workers in (_FLEET // 2, _FLEET))
        name = f"{_FLEET:,} workers, {differ}"
        yield _of_each(name, whole / _FLEET, bar)
        yield Figure(f"{name}: memory in all", whole, f"{_FLEET // 2:,} workers", half, 2.5, "bytes")


def _of_each(name: str, taken: float, bar: float) -> Figure:
    return Figure(f"{name}: memory for each, beyond id and runtimes", taken, bar=bar, unit="bytes")


def _bytes_taken(fleet: Sequence[FleetWorker]) -> int:
    """The bytes that an index of the fleet allocates."""
    offered = shared_runtimes(fleet)
    gc.collect()
    tracemalloc.start()
    try:
        index = WorkerIndex()
        for worker, each in zip(fleet, offered, strict=True):
            index.put(worker.worker_id, each)
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(index) == len(fleet)
    return taken
