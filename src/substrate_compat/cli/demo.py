"""The verb `demo`: this host, and which of eight real servers can restore a snapshot of one of them."""

import json
from importlib import resources
from typing import Final

import click

from substrate_compat.cli.check import say_verdict
from substrate_compat.cli.fleets import Member, feature_sets
from substrate_compat.cli.inputs import Features
from substrate_compat.cli.level import say_level
from substrate_compat.cli.output import note, say
from substrate_compat.cli.probe import HOST_CPUINFO, host_features, print_notes, print_probed
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuinfo import read_cpuinfo
from substrate_compat.errors import CompatError
from substrate_compat.identity import (
    ARCHITECTURE,
    CPU_CACHE_LINE,
    CPU_FEATURES,
    GVISOR,
    GVISOR_CACHE_LINE,
    SANDBOX_RUNTIME_HASH,
    SandboxRuntime,
    VersionedSandboxCompat,
    WorkerRuntimes,
)
from substrate_compat.levels import choose_levels, offered
from substrate_compat.match import explain_worker, stamp
from substrate_compat.probe import probe
from substrate_compat.runsc import parse_cpu_features
from substrate_compat.runtime_hash import sandbox_runtime_hash

__all__ = ["VERBS", "demo_servers"]

_SNAPSHOT_HOST: Final = "AMD EPYC 7713 64-Core Processor"
_RUNTIME_HASH: Final = sandbox_runtime_hash({"gvisor": "5eed" * 16}, "pause@sha256:" + "cafe" * 16)


@click.command("demo")
def _demo() -> None:
    """Probe this host, then ask which of eight real servers can restore a snapshot taken on one of them."""
    servers = demo_servers()
    snapshot = stamp(servers[_SNAPSHOT_HOST])
    here = _probe_here()
    say(
        f"\nA snapshot of a gVisor sandbox, taken on the {_SNAPSHOT_HOST}: who can restore it?",
        style="bold",
    )
    able = 0
    for name, runtime in servers.items():
        verdict = explain_worker(WorkerRuntimes(runtime), snapshot)
        able += verdict.compatible
        say_verdict("snapshot", name, verdict)
    say(f"{able} of {len(servers)} servers can restore it.")
    if here is not None:
        say("\nAnd this host?", style="bold")
        say_verdict("snapshot", "this host", explain_worker(WorkerRuntimes(here), snapshot))
    say("\nThe level under which all of them restore each other's snapshots:", style="bold")
    sets = feature_sets(
        Member(name, "demo_hosts.json", WorkerRuntimes(runtime)) for name, runtime in servers.items()
    )
    (group,) = choose_levels(sets, 1).groups
    say_level(sets, group)


def demo_servers() -> dict[str, SandboxRuntime]:
    """What each of the bundled servers offers, by its model name; all run the same binaries."""
    text = resources.files("substrate_compat.cli").joinpath("demo_hosts.json").read_text()
    servers = {}
    for host in json.loads(text)["hosts"]:
        features = parse_cpu_features(host["features"], Architecture.AMD64)
        attributes = {
            ARCHITECTURE: Architecture.AMD64.value,
            CPU_CACHE_LINE: str(host["cache_line"]),
            CPU_FEATURES: offered(features).hex,
            SANDBOX_RUNTIME_HASH: _RUNTIME_HASH,
        }
        servers[host["brand"]] = SandboxRuntime(
            GVISOR.sandbox_class, VersionedSandboxCompat.of(attributes), host["brand"]
        )
    return servers


def _probe_here() -> SandboxRuntime | None:
    say("This host offers:", style="bold")
    try:
        cpu = read_cpuinfo(HOST_CPUINFO)
        found = Features(cpu.features, "the Features of cpuinfo") if cpu.features else host_features()
    except (CompatError, OSError) as error:
        note(f"this host cannot be probed: {error}")
        return None
    probed = probe(GVISOR_CACHE_LINE, cpu, found.features, _RUNTIME_HASH)
    print_probed(probed, found)
    print_notes(probed, found)
    return probed.runtime


VERBS: Final = (_demo,)
