"""The campaign: a snapshot on every machine, each restored on every machine; the level; the chain."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import attrs

from proof.archive import read_tar, write_tar, write_whole
from proof.jobs import Checkpoint, Job, MachineAnswer, ProofError, pack, unpack
from proof.machine import Machines
from proof.record import Level, Machine, Record, Restore
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.levels import annotation, common_level
from substrate_compat.probe import parse_cpu_features, parse_cpuinfo

__all__ = ["FLEET", "MODELS", "Laboratory", "Watcher", "run_campaign"]

MODELS: Final = {
    Architecture.AMD64: (
        *("Opteron_G3", "Nehalem", "Westmere", "SandyBridge", "IvyBridge", "Haswell-noTSX"),
        *("Broadwell-noTSX", "Skylake-Server-noTSX-IBRS", "EPYC", "EPYC-Rome", "EPYC-Milan", "max"),
        *("max,-avx2", "max,-aes", "max,-fsgsbase", "max,-xsave"),
    ),
    Architecture.ARM64: ("cortex-a53", "cortex-a72", "cortex-a76", "neoverse-n1", "max", "max,sve=off"),
}
FLEET: Final = {
    Architecture.AMD64: (
        "Haswell-noTSX",
        "Broadwell-noTSX",
        "Skylake-Server-noTSX-IBRS",
        "EPYC",
        "EPYC-Milan",
    ),
    Architecture.ARM64: MODELS[Architecture.ARM64],
}
"""The models whose common level is tried."""


class Watcher(Protocol):
    """Who is told how the campaign goes."""

    def phase(self, title: str, machines: int) -> None:
        """A phase of so many machines begins."""

    def step(self, model: str, step: str) -> None:
        """A machine began a step."""

    def ended(self, model: str, reason: str) -> None:
        """A machine ended; with a reason, it did not run."""


@attrs.frozen
class Laboratory:
    """Runs machines, some at once, and keeps what each answered, so that nothing is run twice.

    Attributes:
        machines: What they are.
        qemu: The version of QEMU; what was answered under another is run again.
        answers: Where answers are kept, each under the digest of all that it depends on.
        watcher: Who is told.
        at_once: How many machines run at once.
        not_run: Models that did not run, and why.
        used: The answers of this campaign, and the seconds that the machine of each ran.
    """

    machines: Machines
    qemu: str
    answers: Path
    watcher: Watcher
    at_once: asyncio.Semaphore
    not_run: dict[str, str] = attrs.field(factory=dict)
    used: dict[Path, float] = attrs.field(factory=dict)

    async def phase(self, title: str, jobs: Mapping[str, Mapping[str, Job]]) -> dict[str, MachineAnswer]:
        """Boot a machine of each model for its jobs; a machine that fails is noted and left out."""
        todo = {model: each for model, each in jobs.items() if model not in self.not_run}
        self.watcher.phase(title, len(todo))
        async with asyncio.TaskGroup() as group:
            tasks = {model: group.create_task(self._answer(model, each)) for model, each in todo.items()}
        answers = {model: task.result() for model, task in tasks.items()}
        return {model: answer for model, answer in answers.items() if answer}

    async def _answer(self, model: str, jobs: Mapping[str, Job]) -> MachineAnswer | None:
        async with self.at_once:
            packed = write_tar(pack(jobs, self.machines.guest.busybox.read_bytes()))
            depends_on = "\0".join([self.machines.guest.digest, self.qemu, model, ""]).encode() + packed
            kept = self.answers / f"{hashlib.sha256(depends_on).hexdigest()[:32]}.tar"
            try:
                files = read_tar(kept.read_bytes()) if kept.exists() else await self._run(model, packed)
                answer = unpack(files, jobs)
            except ProofError as error:
                self.not_run[model] = str(error)
                self.watcher.ended(model, str(error))
                return None
        if not kept.exists():
            write_whole(kept, write_tar(files), self.machines.cache)
        self.used[kept] = float(files["seconds"])
        self.watcher.ended(model, "")
        return answer

    async def _run(self, model: str, packed: bytes) -> dict[str, bytes]:
        def progress(step: str) -> None:
            self.watcher.step(model, step)

        progress("boot")
        results, seconds = await self.machines.run(model, packed, progress)
        return {**read_tar(results), "seconds": f"{seconds:.1f}".encode()}


async def run_campaign(laboratory: Laboratory, models: Sequence[str], fleet: Sequence[str]) -> Record:
    """Run all three phases: snapshots; restores of each on each; restores under the level.

    What was kept of an earlier run that was broken off is not run again.
    """
    architecture = laboratory.machines.guest.architecture
    first = await laboratory.phase("snapshots", {model: {f"take {model}": Job("take")} for model in models})
    taken = _checkpoints("take", first)
    for model in first.keys() - taken.keys():
        laboratory.not_run[model] = f"no snapshot: {first[model].outcomes[f'take {model}'].error}"
    if not taken:
        raise ProofError(
            f"no machine took a snapshot; {'; '.join(map(': '.join, laboratory.not_run.items()))}"
        )
    sets = {model: parse_cpu_features(first[model].features, architecture) for model in taken}
    fleet = [model for model in fleet if model in sets]
    allowed = _annotation(architecture, {model: sets[model] for model in fleet})
    chain = _chain(sets, fleet)

    todo: dict[str, dict[str, Job]] = {}
    for model in taken:
        todo[model] = {f"restore {name}": Job("restore", taken[name]) for name in taken}
        if model in fleet:
            todo[model][f"level {model}"] = Job("take", annotation=allowed)
        if chain and model == chain[1]:
            todo[model][f"chain {chain[0]}"] = Job("retake", taken[chain[0]])
    second = await laboratory.phase("restores", todo)

    levelled, retaken = _checkpoints("level", second), _checkpoints("chain", second)
    todo = {model: {} for model in fleet}
    for model in levelled:
        todo[model] = {
            f"level {name}": Job("restore", levelled[name], annotation=allowed) for name in levelled
        }
    if chain and retaken:
        todo.setdefault(chain[0], {})[f"back {chain[1]}"] = Job("restore", retaken[chain[0]])
    third = await laboratory.phase("level and chain", {model: jobs for model, jobs in todo.items() if jobs})

    one = next(iter(first.values()))
    return Record(
        architecture=architecture,
        versions={"runsc": one.runsc, "QEMU": laboratory.qemu, "Linux": one.kernel},
        runsc_digest=laboratory.machines.guest.runsc_digest,
        image_digest=laboratory.machines.guest.busybox_digest,
        machine_seconds=round(sum(laboratory.used.values())),
        machines=tuple(Machine(name, first[name].features, first[name].cpuinfo) for name in taken),
        not_run=laboratory.not_run,
        restores=_restores("restore", second),
        level=_level(fleet, allowed, second, third),
        chain=(*_restores("chain", second), *_restores("back", third)),
    )


def _checkpoints(kind: str, answers: Mapping[str, MachineAnswer]) -> dict[str, Checkpoint]:
    """The checkpoints of jobs of this kind, by the model in the label."""
    return {
        label.removeprefix(f"{kind} "): outcome.checkpoint
        for answer in answers.values()
        for label, outcome in answer.outcomes.items()
        if label.startswith(f"{kind} ") and outcome.checkpoint
    }


def _restores(kind: str, answers: Mapping[str, MachineAnswer]) -> tuple[Restore, ...]:
    return tuple(
        Restore(label.removeprefix(f"{kind} "), worker, outcome.alive, outcome.missing, outcome.error)
        for worker, answer in answers.items()
        for label, outcome in answer.outcomes.items()
        if label.startswith(f"{kind} ")
    )


def _annotation(architecture: Architecture, fleet: Mapping[str, FeatureSet]) -> str:
    if not fleet:
        return ""
    if architecture is Architecture.ARM64:
        # The library makes none here, since no sandbox would start; this shows that none does.
        return ",".join(min(fleet.values(), key=len).names)
    return annotation(common_level(fleet).features)


def _chain(sets: Mapping[str, FeatureSet], fleet: Sequence[str]) -> tuple[str, str] | None:
    """The first of the fleet that another machine surpasses, and the richest such machine."""
    for model in fleet:
        richer = [name for name, features in sets.items() if sets[model] < features]
        if richer:
            return model, max(richer, key=lambda name: len(sets[name]))
    return None


def _level(
    fleet: Sequence[str],
    allowed: str,
    second: Mapping[str, MachineAnswer],
    third: Mapping[str, MachineAnswer],
) -> Level:
    cold = {model: second[model].outcomes[f"level {model}"] for model in fleet if model in second}
    return Level(
        fleet=tuple(fleet),
        annotation=allowed,
        guests={
            model: " ".join(sorted(parse_cpuinfo(outcome.cpuinfo).flags))
            for model, outcome in cold.items()
            if outcome.alive
        },
        restores=_restores("level", third),
        refused={model: outcome.error for model, outcome in cold.items() if not outcome.alive},
    )
