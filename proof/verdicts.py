"""The library's verdict on each restore of a campaign, held against what gVisor did."""

from collections.abc import Iterator, Mapping

import attrs

from proof.record import Machine, Record, Restore
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.identity import GVISOR, GVISOR_CACHE_LINE, SandboxRuntime
from substrate_compat.levels import guest_flags, levelled
from substrate_compat.match import Reason, Verdict, explain, stamp
from substrate_compat.probe import parse_cpu_features, parse_cpuinfo, probe
from substrate_compat.runtime_hash import sandbox_runtime_hash

__all__ = [
    "Judgement",
    "disagreements",
    "features",
    "judge_chain",
    "judge_level",
    "judge_restores",
    "workers",
]


@attrs.frozen
class Judgement:
    """A verdict and what happened.

    Attributes:
        restore: What gVisor did.
        verdict: What the library says.
        doubtful: A worker without usable XSAVE, where gVisor itself decides from run to run: there
            the library may say no to what goes on, but never yes to what does not.
        disagreement: In what the two differ; empty if in nothing.
    """

    restore: Restore
    verdict: Verdict
    doubtful: bool
    disagreement: str


def features(machine: Machine, architecture: Architecture) -> FeatureSet:
    """The set that runsc printed on a machine."""
    return parse_cpu_features(machine.features, architecture)


def workers(record: Record) -> dict[str, SandboxRuntime]:
    """The identity that a worker on each machine offers, probed from what was captured there."""
    profile = GVISOR_CACHE_LINE if record.architecture is Architecture.AMD64 else GVISOR
    runtime_hash = sandbox_runtime_hash(
        {"runsc": record.runsc_digest}, f"proof/busybox@sha256:{record.image_digest}"
    )
    return {
        machine.model: probe(
            profile,
            parse_cpuinfo(machine.cpuinfo, record.architecture),
            features(machine, record.architecture),
            runtime_hash,
        ).runtime
        for machine in record.machines
    }


def judge_restores(record: Record, offered: Mapping[str, SandboxRuntime]) -> Iterator[Judgement]:
    """The matrix: each snapshot on each worker."""
    for restore in record.restores:
        snapshot = stamp(offered[restore.snapshot])
        yield _judge(record, restore, explain(offered[restore.worker], snapshot))


def judge_level(record: Record, offered: Mapping[str, SandboxRuntime]) -> Iterator[Judgement]:
    """The snapshots that were taken under the annotation: every one must go on everywhere in the fleet."""
    for restore in record.level.restores:
        allowed = parse_cpu_features(record.level.annotation, record.architecture)
        snapshot = stamp(offered[restore.snapshot], level=allowed)
        yield _must_live(_judge(record, restore, explain(offered[restore.worker], snapshot)))


def judge_chain(record: Record, offered: Mapping[str, SandboxRuntime]) -> Iterator[Judgement]:
    """The chain: each restore must go on. It ends where the verdict is no: what follows has no parent."""
    parent = None
    for restore in record.chain:
        parent = stamp(offered[restore.snapshot], parent=parent)
        judgement = _must_live(_judge(record, restore, explain(offered[restore.worker], parent)))
        yield judgement
        if not judgement.verdict.compatible:
            return


def disagreements(record: Record, offered: Mapping[str, SandboxRuntime]) -> Iterator[str]:
    """All that speaks against the library, a line each, with the pair."""
    for where, judgements in (
        ("", judge_restores(record, offered)),
        (" under the level", judge_level(record, offered)),
        (" in the chain", judge_chain(record, offered)),
    ):
        for judgement in judgements:
            if judgement.disagreement:
                pair = f"{judgement.restore.snapshot} -> {judgement.restore.worker}"
                yield f"{pair}{where}: {judgement.disagreement}"
    yield from _wrong_guests(record)


def _wrong_guests(record: Record) -> Iterator[str]:
    if record.architecture is not Architecture.AMD64:
        for machine in record.machines:
            if not record.level.refused.get(machine.model):
                yield f"{machine.model}: a sandbox started under the annotation"
        return
    allowed = parse_cpu_features(record.level.annotation, record.architecture)
    machines = {machine.model: features(machine, record.architecture) for machine in record.machines}
    for model, flags in record.level.guests.items():
        expected = guest_flags(levelled(machines[model], allowed))
        if expected != frozenset(flags.split()):
            differ = " ".join(sorted(expected ^ frozenset(flags.split())))
            yield f"{model}: the guest's flags under the level differ from the library's in: {differ}"
    for model, error in record.level.refused.items():
        yield f"{model}: no sandbox started under the level: {error}"


def _judge(record: Record, restore: Restore, verdict: Verdict) -> Judgement:
    machine = next(each for each in record.machines if each.model == restore.worker)
    doubtful = record.architecture is Architecture.AMD64 and "osxsave" not in features(
        machine, record.architecture
    )
    return Judgement(restore, verdict, doubtful, _disagreement(restore, verdict, doubtful))


def _disagreement(restore: Restore, verdict: Verdict, doubtful: bool) -> str:
    happened = restore.error or f"refused for {' '.join(restore.missing)}"
    if verdict.compatible:
        return "" if restore.alive else f"the verdict is yes, but the restore failed: {happened}"
    if doubtful:
        return ""
    if restore.alive:
        return "the verdict is no, but the sandbox went on"
    named = tuple(
        name
        for mismatch in verdict.mismatches
        if mismatch.reason is Reason.MISSING_FEATURES
        for name in mismatch.features
    )
    if restore.missing != named:
        return f"the verdict names {' '.join(named) or 'nothing'} as missing, gVisor {happened}"
    return ""


def _must_live(judgement: Judgement) -> Judgement:
    if judgement.restore.alive or judgement.disagreement:
        return judgement
    failed = judgement.restore.error or f"refused for {' '.join(judgement.restore.missing)}"
    return attrs.evolve(judgement, disagreement=f"it should go on, but was {failed}")
