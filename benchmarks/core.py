"""Group `core`: one restore verdict and what it is made of."""

import importlib
from collections.abc import Iterator, Mapping
from typing import Protocol

from benchmarks.bench import Bench
from benchmarks.data import accepted_pair, cpuinfo_of_256, identity, runtime
from benchmarks.figures import Figure
from benchmarks.measure import calls, first_call, interleaved
from substrate_compat.cpufeatures import FeatureSet, decode_cpu_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.match import matches
from substrate_compat.probe import parse_cpuinfo

__all__ = ["figures"]

_FRESH_PROCESSES = 7


def figures(bench: Bench) -> Iterator[Figure]:
    """The figures of this group."""
    worker, snapshot = accepted_pair()
    yield from _match(bench, worker, snapshot)
    yield from _decode(bench, snapshot)
    yield from _subset(bench, worker, snapshot)
    yield from _parse(bench)
    yield from _probe()
    yield from _import()


def _match(bench: Bench, worker: FeatureSet, snapshot: FeatureSet) -> Iterator[Figure]:
    offered, needed = runtime(identity(worker)), runtime(identity(snapshot))
    assert matches(offered, needed)
    names = {"matches": matches, "worker": offered, "snapshot": needed}
    least = interleaved(
        {
            "here": calls("matches(worker, snapshot)", names),
            "go": bench.go.match(identity(worker), identity(snapshot)),
        },
        bench.repeats,
    )
    yield Figure("matches, answering yes", least["here"], "Go: the scan's match", least["go"], 1.0)


def _decode(bench: Bench, features: FeatureSet) -> Iterator[Figure]:
    names = {
        "decode_cpu_features": decode_cpu_features,
        "text": features.hex,
        "amd64": Architecture.AMD64,
    }
    decoders, fastest = bench.go.decoders()
    least = interleaved(
        {
            "here": calls("decode_cpu_features(text, amd64)", names),
            "int": calls("int(text, 16)", names),
            **{name: bench.go.decode(name, features.hex) for name in decoders},
        },
        bench.repeats,
    )
    figure = "decode a mask of 64 digits"
    yield Figure(figure, least["here"], "int(text, 16)", least["int"], 6.0)
    for name in sorted(decoders, key=least.__getitem__):
        used = " (used by the match)" if name == fastest else ""
        yield Figure(figure, least["here"], f"Go: {name}{used}", least[name])


class _Microarchitecture(Protocol):
    def __ge__(self, other: "_Microarchitecture", /) -> bool: ...


def _subset(bench: Bench, worker: FeatureSet, snapshot: FeatureSet) -> Iterator[Figure]:
    targets: Mapping[str, _Microarchitecture] = importlib.import_module("archspec.cpu").TARGETS
    names = {
        "snapshot": snapshot,
        "worker": worker,
        "snapshot_names": frozenset(snapshot),
        "worker_names": frozenset(worker),
        "icelake": targets["icelake"],
        "skylake": targets["skylake"],
    }
    statements = {
        "here": "snapshot <= worker",
        "frozenset of names": "snapshot_names <= worker_names",
        "archspec: icelake >= skylake": "icelake >= skylake",
    }
    assert snapshot <= worker
    assert frozenset(snapshot) <= frozenset(worker)
    assert targets["icelake"] >= targets["skylake"]
    least = interleaved(
        {peer: calls(statement, names) for peer, statement in statements.items()}, bench.repeats
    )
    figure = f"FeatureSet <=, {len(snapshot)} names within {len(worker)}"
    for peer, bar in (("frozenset of names", 1 / 4), ("archspec: icelake >= skylake", 1 / 20)):
        yield Figure(figure, least["here"], peer, least[peer], bar)


def _parse(bench: Bench) -> Iterator[Figure]:
    text = cpuinfo_of_256()
    assert parse_cpuinfo(text).processors == 256
    repeat = calls("parse_cpuinfo(text)", {"parse_cpuinfo": parse_cpuinfo, "text": text})
    least = interleaved({"here": repeat}, max(5, bench.repeats // 10))
    yield Figure("parse a cpuinfo of 256 processors", least["here"], bar=0.010)


def _probe() -> Iterator[Figure]:
    least = interleaved(
        {
            "here": first_call("read_cpuinfo()", "from substrate_compat.probe import read_cpuinfo"),
            "archspec.cpu.host()": first_call("archspec.cpu.host()", "import archspec.cpu"),
            "cpuinfo.get_cpu_info()": first_call("cpuinfo.get_cpu_info()", "import cpuinfo"),
        },
        _FRESH_PROCESSES,
    )
    for peer, bar in (("archspec.cpu.host()", 1 / 5), ("cpuinfo.get_cpu_info()", 1 / 50)):
        yield Figure("read_cpuinfo(), first call", least["here"], peer, least[peer], bar)


def _import() -> Iterator[Figure]:
    least = interleaved(
        {
            "here": first_call("import substrate_compat.match"),
            "attrs": first_call("import attrs"),
        },
        3 * _FRESH_PROCESSES,
    )
    yield Figure("import substrate_compat.match", least["here"], "import attrs", least["attrs"], 1.5)
