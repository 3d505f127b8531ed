"""Group `index`: which workers of a fleet can take a snapshot now, beside the control plane's scan.

A snapshot's figure is the least of a few repeats, and a row has the median over snapshots, or the one whose
ratio is worst. A change cannot be repeated, so its figure is a mean over many, in processor time: what else
the machine does does not count.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from statistics import median
from time import perf_counter, process_time
from typing import Final

import attrs

from benchmarks.bench import CACHE, Bench
from benchmarks.data import gvisor_masks, identity, runtime
from benchmarks.figures import Figure
from benchmarks.fleets import (
    FleetWorker,
    all_masks_differ,
    few_models,
    kinds,
    runtimes,
    shared_runtimes,
    write_fleet,
)
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.identity import SandboxRuntime, WorkerRuntimes
from substrate_compat.index import WorkerIndex

__all__ = ["figures"]

_FLEET: Final = 100_000
_LARGE_FLEET: Final = 1_000_000
_SMALL_FLEET: Final = 10_000
_CALLS: Final = 100_000
_REPLACEMENTS: Final = 160_000
_STEPS: Final = 200_000
_FIRST: Final = 100
_SNAPSHOTS: Final = 60
_REPEATS: Final = 5
_SCANS: Final = 2
_BATCH: Final = 1000
_STEPS_PER_QUERY: Final = 200

_NO_HOST_HAS: Final = FeatureSet.from_names(Architecture.AMD64, ["avx512_bf16"])
_SCAN: Final = "Go: a scan of all workers"

_Query = Callable[[WorkerIndex, SandboxRuntime], object]


def figures(bench: Bench) -> Iterator[Figure]:
    """The figures of this group."""
    yield from _few_models(bench)
    yield from _all_masks_differ(bench)
    yield from _large_fleet()


def _count(index: WorkerIndex, snapshot: SandboxRuntime) -> object:
    return index.count(snapshot)


def _first(index: WorkerIndex, snapshot: SandboxRuntime) -> object:
    return list(islice(index.candidates(snapshot), _FIRST))


def _why_none(index: WorkerIndex, snapshot: SandboxRuntime) -> object:
    why = index.why_none(snapshot)
    assert why is not None
    return why


def _few_models(bench: Bench) -> Iterator[Figure]:
    fleet = list(few_models(_FLEET))
    snapshots = [each.identities[0] for each in kinds(fleet)]
    index, put = _filled(fleet)
    _load(bench, fleet)
    name = f"{_FLEET:,} workers of 20 models"
    rows = [_Row.taken(bench, index, each) for each in snapshots]
    yield _beside(f"{name}: count", rows, lambda row: row.count, 1 / 2000)
    yield _beside(f"{name}: first {_FIRST}", rows, lambda row: row.first, 1 / 500)
    yield Figure(
        f"{name}: first {_FIRST}",
        median(row.first for row in rows),
        f"Go: a scan that stops at {_FIRST}",
        median(row.short_scan for row in rows),
    )
    beyond = [_and_more(each) for each in snapshots]
    yield Figure(
        f"{name}: why none", median(_least(index, runtime(each), _why_none) for each in beyond), bar=1e-3
    )
    yield Figure(f"{name}: put", put, bar=20e-6)
    others = [*fleet[1:], fleet[0]]
    yield Figure(f"{name}: put, replacing", _replace(index, fleet, others), bar=20e-6)
    yield Figure(f"{name}: remove", _remove(index, fleet), bar=10e-6)


def _all_masks_differ(bench: Bench) -> Iterator[Figure]:
    fleet = list(all_masks_differ(_FLEET + _REPLACEMENTS))
    fleet, fresh = fleet[:_FLEET], fleet[_FLEET:]
    draw = random.Random(1)
    index, put = _filled(fleet)
    _load(bench, fleet)
    name = f"{_FLEET:,} workers that all differ"
    rows = [_Row.taken(bench, index, each.identities[0]) for each in draw.sample(fleet, _SNAPSHOTS)]
    yield from _beside_and_worst(f"{name}: count", rows, lambda row: row.count)
    yield from _beside_and_worst(f"{name}: first {_FIRST}", rows, lambda row: row.first)
    beyond = [_and_more(each.identities[0]) for each in draw.sample(fleet, 10)]
    yield Figure(
        f"{name}: why none",
        median(_least(index, runtime(each), _why_none, 2) for each in beyond),
        _SCAN,
        median(_scan(bench, each) for each in beyond),
        2.0,
    )
    yield Figure(f"{name}: put", put, bar=100e-6)
    replaced = [draw.choice(fleet) for _ in fresh]
    yield Figure(
        f"{name}: put, {_REPLACEMENTS:,} random replacements", _replace(index, replaced, fresh), bar=100e-6
    )
    yield Figure(f"{name}: remove", _remove(index, fleet), bar=100e-6)


def _large_fleet() -> Iterator[Figure]:
    fleet = list(few_models(_LARGE_FLEET))
    snapshots = [runtime(each.identities[0]) for each in kinds(fleet)]
    # One object for the runtimes of each model: making a million apart takes minutes.
    shared = shared_runtimes(fleet)
    small, index = WorkerIndex(), WorkerIndex()
    for each, offered in zip(fleet, shared, strict=True):
        if len(small) < _SMALL_FLEET:
            small.put(each.worker_id, offered)
        index.put(each.worker_id, offered)
    name = f"{_LARGE_FLEET:,} workers of 20 models"
    peer = f"here: {_SMALL_FLEET:,} workers"

    def beside(what: str, query: _Query, bar: float) -> Figure:
        here, there = [], []
        for snapshot in snapshots:
            there.append(_least(small, snapshot, query, 50))
            here.append(_least(index, snapshot, query, 50))
        return Figure(f"{name}{what}", median(here), peer, median(there), bar)

    yield beside(": count", _count, 2.0)
    yield beside(f": first {_FIRST}", _first, 2.0)
    oldest = len(fleet) * 9 // 10
    for each in fleet[:oldest]:
        index.remove(each.worker_id)
    yield beside(f", the oldest 90 % removed: first {_FIRST}", _first, 3.0)
    here = _stepping(index, [each.worker_id for each in fleet[oldest:]], shared, snapshots)
    there = _stepping(small, [each.worker_id for each in fleet[:_SMALL_FLEET]], shared, snapshots)
    steps = f", {_STEPS:,} steps of remove-oldest and put-new: first {_FIRST}"
    yield Figure(f"{name}{steps}", here, peer, there, 3.0)


def _stepping(
    index: WorkerIndex,
    queue: list[str],
    offered: Sequence[WorkerRuntimes],
    snapshots: Sequence[SandboxRuntime],
) -> float:
    """The median seconds of the first candidates, asked once every few steps, right after a change."""
    taken: list[float] = []
    for step, runtimes_of_new in enumerate(offered[:_STEPS]):
        index.remove(queue[step])
        queue.append(f"new-{step:07}")
        index.put(queue[-1], runtimes_of_new)
        if not step % _STEPS_PER_QUERY:
            snapshot = snapshots[len(taken) % len(snapshots)]
            taken.append(_least(index, snapshot, _first, 1))
    return median(taken)


@attrs.frozen
class _Row:
    """The seconds that a snapshot takes, here and in the scans."""

    count: float
    first: float
    scan: float
    short_scan: float

    @classmethod
    def taken(cls, bench: Bench, index: WorkerIndex, attributes: Mapping[str, str]) -> "_Row":
        snapshot = runtime(attributes)
        scans = [bench.go.count(attributes) for _ in range(_SCANS)]
        short = [bench.go.count(attributes, _FIRST) for _ in range(_SCANS)]
        assert {count for _, count in scans} == {index.count(snapshot)}
        return cls(
            _least(index, snapshot, _count),
            _least(index, snapshot, _first),
            min(seconds for seconds, _ in scans),
            min(seconds for seconds, _ in short),
        )


def _beside(name: str, rows: list[_Row], of: Callable[[_Row], float], bar: float) -> Figure:
    return Figure(name, median(map(of, rows)), _SCAN, median(row.scan for row in rows), bar)


def _beside_and_worst(name: str, rows: list[_Row], of: Callable[[_Row], float]) -> Iterator[Figure]:
    yield _beside(name, rows, of, 1 / 20)
    worst = max(rows, key=lambda row: of(row) / row.scan)
    yield _beside(f"{name}, worst snapshot", [worst], of, 1 / 8)


def _scan(bench: Bench, attributes: Mapping[str, str]) -> float:
    return min(bench.go.count(attributes)[0] for _ in range(_SCANS))


def _least(index: WorkerIndex, snapshot: SandboxRuntime, query: _Query, repeats: int = _REPEATS) -> float:
    taken = []
    for _ in range(repeats):
        start = perf_counter()
        query(index, snapshot)
        taken.append(perf_counter() - start)
    return min(taken)


def _filled(fleet: list[FleetWorker]) -> tuple[WorkerIndex, float]:
    """An index of the fleet, and the mean seconds of a put."""
    index = WorkerIndex()
    return index, _replace(index, fleet, fleet)


def _replace(index: WorkerIndex, workers: list[FleetWorker], by: list[FleetWorker]) -> float:
    """The mean seconds of putting each worker with the runtimes of another, read from their own message."""
    seconds = 0.0
    for start in range(0, len(workers), _BATCH):
        batch = [
            (each.worker_id, runtimes(other))
            for each, other in zip(workers[start : start + _BATCH], by[start : start + _BATCH], strict=True)
        ]
        begin = process_time()
        for worker_id, each in batch:
            index.put(worker_id, each)
        seconds += process_time() - begin
    return seconds / len(workers)


def _remove(index: WorkerIndex, fleet: list[FleetWorker]) -> float:
    """The mean seconds of removing every worker, in random order."""
    worker_ids = [each.worker_id for each in fleet]
    random.Random(1).shuffle(worker_ids)
    begin = process_time()
    for worker_id in worker_ids:
        index.remove(worker_id)
    return (process_time() - begin) / len(worker_ids)


def _load(bench: Bench, fleet: list[FleetWorker]) -> None:
    path = CACHE / "fleet.jsonl"
    write_fleet(path, fleet)
    assert bench.go.load(path) == len(fleet)


def _and_more(attributes: Mapping[str, str]) -> Mapping[str, str]:
    """A snapshot that needs one feature more, which no host of the fleets has."""
    mask = FeatureSet.from_hex(Architecture.AMD64, attributes["cpu_features"])
    assert not any(host >= _NO_HOST_HAS for host in gvisor_masks())
    return identity(mask | _NO_HOST_HAS, attributes["sandbox_runtime_hash"])
