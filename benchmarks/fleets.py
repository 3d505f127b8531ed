"""Seeded fleets: what a scheduler's index and the Go scan are measured on.

A worker is kept as plain attributes, so that the library and the peer each make their own of it.
"""

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from benchmarks.data import RUNTIME_HASHES, SANDBOX_CLASS, gvisor_masks, identity, runtime
from substrate_compat.cpufeatures import MASK_BITS, FeatureSet
from substrate_compat.identity import SandboxRuntime, WorkerRuntimes

__all__ = [
    "FleetWorker",
    "all_hashes_differ",
    "all_masks_differ",
    "few_models",
    "kinds",
    "runtimes",
    "shared_runtimes",
    "snapshot",
    "write_fleet",
]

_MODELS: Final = 20
_MOST_FEATURES_LESS: Final = 12


@attrs.frozen
class FleetWorker:
    """One worker.

    Attributes:
        worker_id: unique in its fleet.
        identities: the attributes of each runtime, the default's first.
    """

    worker_id: str
    identities: tuple[Mapping[str, str], ...]


def few_models(workers: int, seed: int = 1) -> Iterator[FleetWorker]:
    """20 real machine models, each with a default and two restorable runtimes: 60 identities."""
    draw = random.Random(seed)
    models = draw.sample(gvisor_masks(), _MODELS)
    identities = [_identities(model, RUNTIME_HASHES) for model in models]
    for worker in range(workers):
        yield FleetWorker(_name(worker), draw.choice(identities))


def all_masks_differ(workers: int, seed: int = 1) -> Iterator[FleetWorker]:
    """Real sets less 1 to 12 features, no two alike; the same three runtime hashes everywhere."""
    for worker, features in enumerate(_distinct_sets(workers, random.Random(seed))):
        yield FleetWorker(_name(worker), _identities(features, RUNTIME_HASHES))


def all_hashes_differ(workers: int, seed: int = 1) -> Iterator[FleetWorker]:
    """As `all_masks_differ`, and no two runtimes of the fleet have the same hash."""
    draw = random.Random(seed)
    for worker, features in enumerate(_distinct_sets(workers, draw)):
        hashes = [f"sha256:{draw.getrandbits(256):064x}" for _ in RUNTIME_HASHES]
        yield FleetWorker(_name(worker), _identities(features, hashes))


def runtimes(worker: FleetWorker) -> WorkerRuntimes:
    """The worker's runtimes, for the library."""
    default, *restorable = (runtime(each) for each in worker.identities)
    return WorkerRuntimes(default, tuple(restorable))


def kinds(fleet: Iterable[FleetWorker]) -> list[FleetWorker]:
    """One worker for each set of identities: for each model where the fleet has few."""
    return list({id(worker.identities): worker for worker in fleet}.values())


def shared_runtimes(fleet: Sequence[FleetWorker]) -> list[WorkerRuntimes]:
    """The runtimes of each worker, for the library: one object for all workers of a kind."""
    of_kind = {id(worker.identities): runtimes(worker) for worker in kinds(fleet)}
    return [of_kind[id(worker.identities)] for worker in fleet]


def snapshot(worker: FleetWorker) -> SandboxRuntime:
    """The identity of a snapshot that was taken on the worker, for the library."""
    return runtime(worker.identities[0])


def write_fleet(path: Path, fleet: Iterable[FleetWorker]) -> None:
    """Writes a fleet as JSON Lines, for the peer."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as lines:
        for worker in fleet:
            default, *restorable = worker.identities
            line = {
                "worker": worker.worker_id,
                "sandboxClass": SANDBOX_CLASS,
                "defaultRuntime": default,
                "restorableRuntimes": restorable,
            }
            lines.write(json.dumps(line) + "\n")


def _name(worker: int) -> str:
    return f"worker-{worker:07}"


def _identities(features: FeatureSet, hashes: Iterable[str]) -> tuple[Mapping[str, str], ...]:
    return tuple(identity(features, runtime_hash) for runtime_hash in hashes)


def _distinct_sets(count: int, draw: random.Random) -> Iterator[FeatureSet]:
    models = gvisor_masks()
    features = {model: [1 << bit for bit in range(MASK_BITS) if model.bits >> bit & 1] for model in models}
    seen: set[int] = set()
    while len(seen) < count:
        model = draw.choice(models)
        bits = model.bits - sum(draw.sample(features[model], draw.randint(1, _MOST_FEATURES_LESS)))
        if bits not in seen:
            seen.add(bits)
            yield FeatureSet(model.architecture, bits)
