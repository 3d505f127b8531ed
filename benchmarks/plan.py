"""Group `plan`: what a worker offers, from its config, and the file that says so."""

import hashlib
import json
from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.data import accepted_pair
from benchmarks.figures import Figure
from benchmarks.measure import call, interleaved
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuinfo import parse_cpuinfo
from substrate_compat.plan import Asset, SandboxConfig, SandboxVersion, plan_worker_runtimes
from substrate_compat.wire import dumps_runtimes, loads_runtimes, make_converter

__all__ = ["figures"]

_PLAN_SECONDS = 2e-3
_LOAD_SECONDS = 1e-3
_CPU = parse_cpuinfo("processor : 0\nvendor_id : AuthenticAMD\nflags : fpu lm sse2\n")


def figures(bench: Bench) -> Iterator[Figure]:
    """The figures of this group."""
    features, _ = accepted_pair()
    yield from _plan(bench, features)
    yield from _file(bench, features)


def _plan(bench: Bench, features: FeatureSet) -> Iterator[Figure]:
    config = _config(32)
    names = {
        "plan_worker_runtimes": plan_worker_runtimes,
        "config": config,
        "cpu": _CPU,
        "features": _reported(config, features),
    }
    least = interleaved({"here": call("plan_worker_runtimes(config, cpu, features)", names)}, bench.repeats)
    yield Figure("plan a config of 32 versions", least["here"], bar=_PLAN_SECONDS)


def _file(bench: Bench, features: FeatureSet) -> Iterator[Figure]:
    config = _config(33)
    runtimes = plan_worker_runtimes(config, _CPU, _reported(config, features)).runtimes
    text = dumps_runtimes(runtimes)
    names = {
        "dumps_runtimes": dumps_runtimes,
        "loads_runtimes": loads_runtimes,
        "json": json,
        "runtimes": runtimes,
        "text": text,
        "converter": make_converter(),
    }
    least = interleaved(
        {
            "loads": call("loads_runtimes(text, 'gvisor', converter)", names),
            "cold": call("loads_runtimes(text, 'gvisor')", names),
            "dumps": call("dumps_runtimes(runtimes, converter)", names),
            "json loads": call("json.loads(text)", names),
            "json dumps": call("json.dumps(value, indent=2)", {"json": json, "value": json.loads(text)}),
        },
        bench.repeats,
    )
    yield Figure("load a file of 33 runtimes, warm converter", least["loads"], bar=_LOAD_SECONDS)
    yield Figure("load it", least["loads"], "json.loads, unchecked", least["json loads"])
    yield Figure(
        "load it, converter made on the way", least["cold"], "json.loads, unchecked", least["json loads"]
    )
    yield Figure("write its text", least["dumps"], "json.dumps of the same", least["json dumps"])


def _config(versions: int) -> SandboxConfig:
    """A gvisor config with so many versions, each of two binaries for both architectures."""
    pause_image = "registry.example/pause:3.10@sha256:" + _digest("pause")
    each = tuple(
        SandboxVersion(
            f"v{number}",
            True,
            pause_image,
            tuple(
                Asset(
                    architecture,
                    name,
                    f"https://bucket.example/{name}",
                    _digest(f"{architecture}{name}{number}"),
                )
                for architecture in Architecture
                for name in ("gvisor", "shim")
            ),
        )
        for number in range(versions)
    )
    return SandboxConfig("pool", "gvisor", each[0].name, each)


def _reported(config: SandboxConfig, features: FeatureSet) -> dict[str, FeatureSet]:
    return {version.asset_digests(Architecture.AMD64)["gvisor"]: features for version in config.versions}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
