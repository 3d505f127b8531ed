"""The machines that benchmarks draw from: the vectors of the tests."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypedDict

from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat

__all__ = [
    "RUNTIME_HASHES",
    "SANDBOX_CLASS",
    "accepted_pair",
    "cpuinfo_of_256",
    "gvisor_masks",
    "identity",
    "runtime",
]

_DATA: Final = Path(__file__).parent.parent / "tests" / "data"

SANDBOX_CLASS: Final = "gvisor"
RUNTIME_HASHES: Final = tuple(f"sha256:{digit * 64}" for digit in "123")


class _Host(TypedDict):
    features: str


class _Hosts(TypedDict):
    hosts: list[_Host]
    verdicts: list[str]


def _hosts() -> _Hosts:
    hosts: _Hosts = json.loads((_DATA / "gvisor_hosts.json").read_text())
    return hosts


def gvisor_masks() -> list[FeatureSet]:
    """The distinct feature sets of real machines that can restore what they took."""
    sets = [_features(host) for host in _hosts()["hosts"]]
    return list(dict.fromkeys(each for each in sets if "lm" in each and "osxsave" in each))


def accepted_pair() -> tuple[FeatureSet, FeatureSet]:
    """A worker's and a snapshot's features: of two machines, about 100 names and 64 digits each.

    gVisor's own check accepts the restore. The pair is the one whose sets are nearest to 100 names.
    """
    known = _hosts()
    sets = [_features(host) for host in known["hosts"]]
    pairs = [
        (worker, snapshot)
        for snapshot, verdicts in zip(sets, known["verdicts"], strict=True)
        for worker, verdict in zip(sets, verdicts, strict=True)
        if verdict == "1" and worker != snapshot and len(worker.hex) == len(snapshot.hex) == 64
    ]
    return min(pairs, key=lambda pair: sum(abs(len(each) - 100) for each in pair))


def identity(features: FeatureSet, runtime_hash: str = RUNTIME_HASHES[0]) -> dict[str, str]:
    """The three attributes of a gVisor identity."""
    return {
        "architecture": features.architecture.value,
        "cpu_features": features.hex,
        "sandbox_runtime_hash": runtime_hash,
    }


def runtime(attributes: Mapping[str, str]) -> SandboxRuntime:
    """The identity as if read from a message of its own: it shares no text with another's."""
    copied: dict[str, str] = json.loads(json.dumps(attributes))
    return SandboxRuntime(SANDBOX_CLASS, VersionedSandboxCompat.of(copied))


def cpuinfo_of_256() -> str:
    """A `/proc/cpuinfo` of 256 processors, each with every flag that any capture has."""
    captures = [path.read_text() for path in sorted((_DATA / "cpuinfo").glob("amd64-*.txt"))]
    flags = sorted({flag for capture in captures for flag in _line(capture, "flags").split()})
    block = captures[0].split("\n\n", 1)[0].split("\n", 1)[1]
    block = block.replace(_line(captures[0], "flags"), " ".join(flags))
    return "".join(f"processor\t: {number}\n{block}\n\n" for number in range(256))


def _line(capture: str, key: str) -> str:
    start = capture.index(f"\n{key}\t") + 1
    return capture[start : capture.index("\n", start)].split(": ", 1)[1]


def _features(host: _Host) -> FeatureSet:
    return FeatureSet.from_names(Architecture.AMD64, host["features"].split(","))
