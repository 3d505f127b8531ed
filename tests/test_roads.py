"""gVisor's own verdicts between 160 real machines, by every road that leads to one of ours.

A road starts at what a machine tells in one form and ends at an answer for each of the 25,600 ordered
pairs of machines: a snapshot taken on one, restored on another. gVisor answers `1` (accepted), `0`
(refused for missing features) or `c` (refused for the size of the cache line alone); a road that carries
no cache line accepts `c` too. Which names are missing is worked out here from those of the listings.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import MetaData, create_engine

import vectors
from strategies import gvisor_runtimes, near_snapshots, sandbox_runtimes, worker_runtimes
from substrate_compat.cli import run
from substrate_compat.cpufeatures import FeatureSet, decode_cpu_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuid import common_features, parse_cpuid_dump
from substrate_compat.cpuinfo import CpuInfo
from substrate_compat.identity import SandboxRuntime, WorkerRuntimes
from substrate_compat.index import WorkerIndex
from substrate_compat.match import explain, explain_worker, matches, stamp
from substrate_compat.matrix import matrix, worker_of_features
from substrate_compat.pairs import restore_pairs
from substrate_compat.plan import Asset, SandboxConfig, SandboxVersion, plan_worker_runtimes
from substrate_compat.runsc import parse_cpu_features
from substrate_compat.tables import FleetTables, candidates, prepare, put_workers
from substrate_compat.wire import (
    dumps_identity,
    dumps_runtimes,
    dumps_worker,
    loads_identity,
    loads_runtimes,
    loads_worker,
    read_runtimes,
    write_runtimes,
)
from vectors import Host

AMD64: Final = Architecture.AMD64
KNOWN: Final = vectors.gvisor_hosts()
HOSTS: Final = KNOWN.hosts
BIT_OF: Final = {row.name: row.value for row in vectors.feature_table().amd64}
REGISTERS: Final = vectors.host_registers()
LATER: Final = vectors.later_than_the_listings()
HASHES: Final = ("sha256:" + "1" * 64, "sha256:" + "2" * 64)


@attrs.frozen
class Pair:
    """A snapshot of one machine on another, by their places, and gVisor's answer."""

    taken: int
    restored: int
    answer: str
    missing: tuple[str, ...]

    @property
    def features_suffice(self) -> bool:
        return self.answer in "1c"

    @property
    def accepted(self) -> bool:
        return self.answer == "1"


def pairs() -> Iterator[Pair]:
    names = [frozenset(host.listing.split(",")) for host in HOSTS]
    for taken, answers in enumerate(KNOWN.verdicts):
        for restored, answer in enumerate(answers):
            yield Pair(taken, restored, answer, tuple(sorted(names[taken] - names[restored])))


def accepted_by(taken: int) -> list[str]:
    """The machines on which gVisor restores the snapshot, in their order."""
    return [host.id for host, answer in zip(HOSTS, KNOWN.verdicts[taken], strict=True) if answer == "1"]


def test_there_are_25_600_pairs_and_the_answers_follow_from_the_machines() -> None:
    lines = [host.cache_line for host in HOSTS]
    counts = dict.fromkeys("10c", 0)
    for pair in pairs():
        assert pair.features_suffice is not bool(pair.missing)
        assert pair.accepted is (not pair.missing and lines[pair.taken] == lines[pair.restored])
        counts[pair.answer] += 1
    assert counts == {"1": 2368, "0": 21359, "c": 1873}


# From what a host tells of its features alone


def by_names(host: Host) -> FeatureSet:
    return parse_cpu_features(host.listing, AMD64)


def by_hex(host: Host) -> FeatureSet:
    return decode_cpu_features(f"{sum(1 << BIT_OF[name] for name in host.listing.split(',')):x}", AMD64)


def by_registers(host: Host) -> FeatureSet:
    return common_features(parse_cpuid_dump(vectors.cpuid_dump([REGISTERS[host.id]]))).features


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(by_names, id="names"),
        pytest.param(by_hex, id="hex"),
        pytest.param(by_registers, id="CPUID registers"),
    ],
)
def test_feature_sets(read: Callable[[Host], FeatureSet]) -> None:
    sets = [read(host) for host in HOSTS]
    for pair in pairs():
        snapshot, worker = sets[pair.taken], sets[pair.restored]
        assert (snapshot <= worker) is pair.features_suffice
        # The registers tell of two features more, which change no answer.
        assert (snapshot - worker - LATER).names == pair.missing


# From an identity, with the cache line


def identity(host: Host, runtime_hash: str = HASHES[0]) -> SandboxRuntime:
    """The identity that another program wrote as JSON, read."""
    recorded = {
        "architecture": "amd64",
        "cpu_cache_line": str(host.cache_line),
        "cpu_features": by_hex(host).hex,
        "sandbox_runtime_hash": runtime_hash,
    }
    attributes = [{"key": key, "value": value} for key, value in recorded.items()]
    compat = {"schemaVersion": "v1", "attributes": attributes}
    return loads_identity(json.dumps({"sandboxClass": "gvisor", "name": "", "compatVersion": compat}))


IDENTITIES: Final = [identity(host) for host in HOSTS]


def test_json_identities() -> None:
    read = [loads_identity(dumps_identity(runtime)) for runtime in IDENTITIES]
    for pair in pairs():
        snapshot, worker = read[pair.taken], read[pair.restored]
        assert matches(worker, snapshot) is pair.accepted
        verdict = explain(worker, snapshot)
        assert verdict.compatible is verdict.certain is pair.accepted
        named = tuple(name for mismatch in verdict.mismatches for name in mismatch.features)
        assert named == pair.missing


def test_all_pairs_at_once() -> None:
    runtimes = {host.id: runtime for host, runtime in zip(HOSTS, IDENTITIES, strict=True)}
    assert set(restore_pairs(runtimes, runtimes)) == {
        (HOSTS[pair.restored].id, HOSTS[pair.taken].id) for pair in pairs() if pair.accepted
    }


def by_file(folder: Path) -> list[WorkerRuntimes]:
    offers = []
    for host, runtime in zip(HOSTS, IDENTITIES, strict=True):
        path = folder / host.id
        assert write_runtimes(path, WorkerRuntimes(runtime))
        offers.append(read_runtimes(path, "gvisor"))
    return offers


def by_line(folder: Path) -> list[WorkerRuntimes]:
    path = folder / "workers.jsonl"
    offers = zip(HOSTS, map(WorkerRuntimes, IDENTITIES), strict=True)
    path.write_text("".join(dumps_worker(host.id, runtimes) for host, runtimes in offers))
    return [loads_worker(line)[1] for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    "through", [pytest.param(by_file, id="sandbox-runtimes.json"), pytest.param(by_line, id="JSON Lines")]
)
def test_files(through: Callable[[Path], list[WorkerRuntimes]], tmp_path: Path) -> None:
    offers = through(tmp_path)
    for pair in pairs():
        snapshot = offers[pair.taken].default_runtime
        assert any(matches(runtime, snapshot) for runtime in offers[pair.restored]) is pair.accepted


def two_versions() -> dict[str, WorkerRuntimes]:
    """Half of the machines have a restorable runtime of other binaries beside the default."""
    return {
        host.id: WorkerRuntimes(runtime, (identity(host, HASHES[1]),) if number % 2 else ())
        for number, (host, runtime) in enumerate(zip(HOSTS, IDENTITIES, strict=True))
    }


def test_the_index() -> None:
    index, workers = WorkerIndex(), two_versions()
    for worker_id, runtimes in workers.items():
        index.put(worker_id, runtimes)
    for taken, host in enumerate(HOSTS):
        accepted = accepted_by(taken)
        assert list(index.candidates(IDENTITIES[taken])) == accepted
        restorable = [each for each in accepted if workers[each].restorable_runtimes]
        assert list(index.candidates(identity(host, HASHES[1]))) == restorable
        assert index.count(IDENTITIES[taken]) == len(accepted)


def test_the_database() -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        tables = FleetTables.on(MetaData())
        prepare(connection, tables)
        put_workers(connection, tables, two_versions())
        for taken, snapshot in enumerate(IDENTITIES):
            found = connection.execute(candidates(tables, snapshot, len(HOSTS), "sqlite")).all()
            assert [worker_id for worker_id, _ in found] == sorted(accepted_by(taken))
    engine.dispose()


# By the command line


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """A file with a worker in each line."""
    by_line(tmp_path)
    return tmp_path / "workers.jsonl"


def test_the_command_line(lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {}
    for snapshot in {*IDENTITIES}:
        path = tmp_path / "snapshot.json"
        path.write_text(dumps_identity(snapshot))
        assert run(["check", "--workers", str(lines), str(path), "--json"]) == 0
        found[snapshot] = json.loads(capsys.readouterr().out)["workers"]
    for pair in pairs():
        worker = found[IDENTITIES[pair.taken]][pair.restored]
        assert worker["worker"] == HOSTS[pair.restored].id
        assert worker["compatible"] is pair.accepted
        (only,) = worker["runtimes"]
        assert [name for each in only["mismatches"] for name in each["missingFeatures"]] == [*pair.missing]


def test_the_command_line_as_a_program_of_its_own(lines: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "substrate_compat", "check", "--workers", lines, "-"],
        input=dumps_identity(IDENTITIES[-1]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    yes = [line for line in done.stdout.splitlines() if line.startswith("snapshot -> ") and ": yes" in line]
    assert [line.split(" ")[2].rstrip(":") for line in yes] == accepted_by(len(HOSTS) - 1)


# Where a worker without usable XSAVE offers less than it has, and its snapshots need more


USABLE_XSAVE: Final = ["osxsave" in host.features for host in HOSTS]


def assert_never_wrong(pair: Pair, *, compatible: bool) -> None:
    """The features decide; where XSAVE is not usable on one of the two, only a yes must be gVisor's."""
    if USABLE_XSAVE[pair.taken] and USABLE_XSAVE[pair.restored]:
        assert compatible is pair.features_suffice
    else:
        assert not compatible or pair.features_suffice


def test_the_matrix() -> None:
    view = matrix({host.id: worker_of_features(by_names(host)) for host in HOSTS})
    place = {name: n for n, names in enumerate(view.groups) for name in names}
    assert (view.workers, len(view.groups)) == (160, 100)
    for pair in pairs():
        cell = view.rows[place[HOSTS[pair.taken].id]][place[HOSTS[pair.restored].id]]
        assert_never_wrong(pair, compatible=cell.compatible)


RUNSC: Final = Asset(AMD64, "gvisor", "https://bucket.example/runsc", "a" * 64)
CONFIG: Final = SandboxConfig(
    "pool", "gvisor", "v1", (SandboxVersion("v1", True, "pause@sha256:" + "b" * 64, (RUNSC,)),)
)


def planned(host: Host) -> WorkerRuntimes:
    """What a node plans for its workers, as they read it."""
    cpu = CpuInfo(
        architecture=AMD64,
        flags=frozenset(host.features),
        varying_flags=frozenset(),
        vendor=host.vendor,
        model=host.brand,
        cache_line=host.cache_line,
        processors=1,
        looks_like_gvisor=False,
    )
    plan = plan_worker_runtimes(CONFIG, cpu, {RUNSC.sha256: by_names(host)})
    return loads_runtimes(dumps_runtimes(plan.runtimes), "gvisor")


def test_from_the_plan_of_a_node_to_the_stamp_of_a_snapshot() -> None:
    offers = [planned(host) for host in HOSTS]
    snapshots = [loads_identity(dumps_identity(stamp(offer.default_runtime))) for offer in offers]
    for pair in pairs():
        compatible = matches(offers[pair.restored].default_runtime, snapshots[pair.taken])
        assert_never_wrong(pair, compatible=compatible)


# The law behind the roads


@given(st.data(), worker_runtimes() | worker_runtimes(gvisor_runtimes()))
def test_every_way_to_ask_gives_one_answer(data: st.DataObject, runtimes: WorkerRuntimes) -> None:
    offered: Sequence[SandboxRuntime] = [*runtimes]
    snapshot = data.draw(st.sampled_from(offered).flatmap(near_snapshots) | sandbox_runtimes)
    answer = any(matches(runtime, snapshot) for runtime in offered)
    index = WorkerIndex()
    index.put("worker", runtimes)
    assert explain_worker(runtimes, snapshot).compatible is answer
    assert any(explain(runtime, snapshot).compatible for runtime in offered) is answer
    assert list(index.candidates(snapshot)) == ["worker"] * answer
    assert index.count(snapshot) == answer
    assert (index.why_none(snapshot) is None) is answer
    keyed = {f"runtime {position}": runtime for position, runtime in enumerate(offered)}
    assert bool([*restore_pairs(keyed, {"snapshot": snapshot})]) is answer
