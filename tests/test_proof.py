"""The proof program's recorded campaigns as vectors, and its check, which can fail."""

from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from proof.__main__ import main
from proof.campaign import FLEET, MODELS
from proof.jobs import ProofError
from proof.record import Record, Restore, dumps_record, loads_record
from proof.report import report, summary
from proof.verdicts import disagreements, judge_chain, judge_level, judge_restores, workers
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.identity import CPU_FEATURES, SandboxRuntime, VersionedSandboxCompat

ROOT = Path(__file__).parents[1]
RECORDED = sorted((ROOT / "tests/data").glob("proof-*.json"))


def _recorded(architecture: Architecture) -> Record:
    return loads_record((ROOT / f"tests/data/proof-{architecture}.json").read_text("utf-8"))


AMD64 = _recorded(Architecture.AMD64)


# The recorded campaigns.


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_library_agrees_with_gvisor_on_every_recorded_restore(path: Path) -> None:
    record = loads_record(path.read_text("utf-8"))
    assert not list(disagreements(record, workers(record)))
    assert not record.not_run
    models = [machine.model for machine in record.machines]
    pairs = {(restore.snapshot, restore.worker) for restore in record.restores}
    assert pairs == {(taken, worker) for taken in models for worker in models}
    assert [restore.alive for restore in record.chain] == [True, True]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_record_is_written_as_it_was_read(path: Path) -> None:
    text = path.read_text("utf-8")
    assert dumps_record(loads_record(text)) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "not a record: Expecting"), ("{}", "required field missing @ \\$.architecture")],
    ids=["no JSON", "no record"],
)
def test_something_else_is_no_record(text: str, words: str) -> None:
    with pytest.raises(ProofError, match=words):
        loads_record(text)


def test_page_is_that_of_the_records() -> None:
    records = [loads_record(path.read_text("utf-8")) for path in RECORDED]
    assert report(records) == (ROOT / "docs/proof.md").read_text("utf-8")


def test_default_campaign_was_recorded_and_decides_both_ways() -> None:
    assert tuple(machine.model for machine in AMD64.machines) == MODELS[Architecture.AMD64]
    offered = workers(AMD64)
    judged = list(judge_restores(AMD64, offered))
    firm = [each for each in judged if not each.doubtful]
    assert {each.verdict.compatible for each in firm} == {True, False}
    assert all(each.verdict.certain for each in judged if each.verdict.compatible)
    assert all(each.verdict.compatible == each.restore.alive for each in firm)
    assert AMD64.level.fleet == FLEET[Architecture.AMD64]
    levelled = list(judge_level(AMD64, offered))
    assert len(levelled) == len(AMD64.level.fleet) ** 2
    assert all(each.restore.alive and each.verdict.compatible for each in levelled)
    assert len(list(judge_chain(AMD64, offered))) == 2


# The check can fail.


def _judge(folder: Path, record: Record) -> tuple[int, str]:
    """What the program makes of a record."""
    (folder / "record.json").write_text(dumps_record(record), "utf-8")
    result = CliRunner().invoke(main, ["judge", str(folder / "record.json")])
    return result.exit_code, result.output.replace("\n", " ")


def test_program_approves_of_what_was_recorded(tmp_path: Path) -> None:
    status, said = _judge(tmp_path, AMD64)
    assert status == 0
    assert "Disagreements: 0." in said


def test_program_reports_a_worker_with_one_feature_too_many(tmp_path: Path) -> None:
    machines = tuple(
        attrs.evolve(each, features=each.features + ",avx2") if each.model == "max,-avx2" else each
        for each in AMD64.machines
    )
    status, said = _judge(tmp_path, attrs.evolve(AMD64, machines=machines))
    assert status == 1
    assert "DISAGREEMENT max -> max,-avx2: the verdict is yes, but the restore failed" in said


def test_program_does_not_call_a_campaign_with_gaps_a_success(tmp_path: Path) -> None:
    status, said = _judge(tmp_path, attrs.evolve(AMD64, not_run={"Opteron_G5": "it hung"}))
    assert status == 3
    assert "Not run: Opteron_G5: it hung" in said


def _with_features(runtime: SandboxRuntime, bits: int) -> SandboxRuntime:
    attributes = dict(runtime.compat_version.attributes)
    attributes[CPU_FEATURES] = f"{bits:x}"
    return attrs.evolve(runtime, compat_version=VersionedSandboxCompat.of(attributes))


@pytest.mark.parametrize(
    ("model", "feature"),
    [("Haswell-noTSX", "clfushopt"), ("SandyBridge", "avx2"), ("EPYC", "avx2"), ("max", "rdtscp")],
)
def test_one_feature_bit_set_wrong_is_reported_with_its_pairs(model: str, feature: str) -> None:
    offered = workers(AMD64)
    honest = offered[model].compat_version.features
    assert honest is not None
    flipped = honest.bits ^ FeatureSet.from_names(Architecture.AMD64, [feature]).bits
    found = list(disagreements(AMD64, {**offered, model: _with_features(offered[model], flipped)}))
    assert found
    assert all(f"{model}" in line.partition(": ")[0] for line in found)


@pytest.mark.parametrize(
    ("restore", "words"),
    [
        (
            Restore("EPYC", "EPYC", False, error="exit status 1: boom"),
            "the verdict is yes, but the restore failed: exit status 1: boom",
        ),
        (
            Restore("EPYC", "EPYC", False, ("avx2",)),
            "the verdict is yes, but the restore failed: refused for avx2",
        ),
        (Restore("Haswell-noTSX", "IvyBridge", True), "the verdict is no, but the sandbox went on"),
        (
            Restore("Haswell-noTSX", "IvyBridge", False, ("avx2",)),
            "the verdict names abm avx2 bmi1 bmi2 fma movbe as missing, gVisor refused for avx2",
        ),
        (
            Restore("Haswell-noTSX", "IvyBridge", False, error="exit status 1: boom"),
            "the verdict names abm avx2 bmi1 bmi2 fma movbe as missing, gVisor exit status 1: boom",
        ),
    ],
    ids=["yes, failed", "yes, refused", "no, went on", "no, other names", "no, other reason"],
)
def test_restore_that_went_otherwise_is_reported(restore: Restore, words: str) -> None:
    pair = (restore.snapshot, restore.worker)
    restores = tuple(restore if (each.snapshot, each.worker) == pair else each for each in AMD64.restores)
    assert restores != AMD64.restores
    (found,) = disagreements(attrs.evolve(AMD64, restores=restores), workers(AMD64))
    assert found == f"{restore.snapshot} -> {restore.worker}: {words}"


def test_worker_without_usable_xsave_may_do_either_where_the_verdict_is_no() -> None:
    doubtful = [each for each in judge_restores(AMD64, workers(AMD64)) if each.doubtful]
    assert {each.restore.worker for each in doubtful} == {"Opteron_G3", "Nehalem", "Westmere", "max,-xsave"}
    either = tuple(
        attrs.evolve(each, alive=alive)
        for each in AMD64.restores
        for alive in (True, False)
        if each.worker == "Nehalem"
    )
    assert not list(disagreements(attrs.evolve(AMD64, restores=either), workers(AMD64)))


def test_guest_that_saw_more_than_the_level_is_reported() -> None:
    level = AMD64.level
    guests = {**level.guests, "EPYC": level.guests["EPYC"] + " sse4a"}
    (found,) = disagreements(attrs.evolve(AMD64, level=attrs.evolve(level, guests=guests)), workers(AMD64))
    assert found.startswith("EPYC: ")
    assert found.endswith(" in: sse4a")


def test_failed_level_and_failed_chain_are_reported() -> None:
    dead = tuple(attrs.evolve(each, alive=False, error="boom") for each in AMD64.chain)
    level = attrs.evolve(AMD64.level, guests={}, restores=(), refused={"EPYC": "boom"})
    found = list(disagreements(attrs.evolve(AMD64, level=level, chain=dead), workers(AMD64)))
    assert len(found) == 3
    assert "Disagreements: 3." in summary(attrs.evolve(AMD64, level=level, chain=dead))
