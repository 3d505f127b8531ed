"""The verb `probe`: what does this host, or the host of the given captures, offer?"""

from typing import Final

import click

from substrate_compat.cli.inputs import Features, features_of_cpus, features_of_dump, read_text
from substrate_compat.cli.options import json_option
from substrate_compat.cli.output import note, say
from substrate_compat.cpuid import read_every_cpuid
from substrate_compat.cpuinfo import CpuInfo, parse_cpuinfo
from substrate_compat.identity import CPU_FEATURES, PROFILES, Profile
from substrate_compat.probe import ATTRIBUTE_KEYS, Probed, probe
from substrate_compat.runsc import parse_cpu_features, run_cpu_features
from substrate_compat.wire import dumps_identity
from substrate_compat.wording import describe

__all__ = ["HOST_CPUINFO", "VERBS", "host_features", "print_notes", "print_probed"]

HOST_CPUINFO: Final = "/proc/cpuinfo"
_BY_CLASS: Final = {profile.sandbox_class: profile for profile in PROFILES}


@click.command("probe")
@click.option(
    "--profile", "sandbox_class", type=click.Choice(list(_BY_CLASS)), default="gvisor", show_default=True
)
@click.option(
    "--with", "extra", multiple=True, type=click.Choice(ATTRIBUTE_KEYS), help="Report this key too."
)
@click.option("--cpuinfo", metavar="FILE", help="A capture of /proc/cpuinfo instead of this host's.")
@click.option("--runsc", metavar="PATH", help="Ask this runsc for the feature set.")
@click.option("--features", metavar="FILE", help="The output of `runsc cpu-features` on that host.")
@click.option("--cpuid", metavar="FILE", help="The output of `cpuid -r` on that host.")
@click.option(
    "--runtime-hash", metavar="HASH", help="The runtime hash, as `substrate-compat hash` prints it."
)
@click.option("--name", default="", help="A name for people; it takes no part in matching.")
@json_option
def _probe_verb(
    *,
    sandbox_class: str,
    extra: tuple[str, ...],
    cpuinfo: str | None,
    runsc: str | None,
    features: str | None,
    cpuid: str | None,
    runtime_hash: str | None,
    name: str,
    as_json: bool,
) -> None:
    """Print this host's identity, or that of the host of the given captures.

    The feature set of gVisor comes from runsc, from its listing, or from CPUID registers. Without any of
    them CPUID is executed here, unless the cpuinfo is another host's.
    """
    if len([way for way in (runsc, features, cpuid) if way is not None]) > 1:
        raise click.UsageError("give only one of --runsc, --features and --cpuid")
    profile = _BY_CLASS[sandbox_class]
    profile = Profile(sandbox_class, (*profile.keys, *(key for key in extra if key not in profile.keys)))
    cpu = parse_cpuinfo(read_text(cpuinfo or HOST_CPUINFO))
    wanted = CPU_FEATURES in profile.keys
    found = _features(cpu, cpuinfo is None, runsc, features, cpuid) if wanted else None
    probed = probe(profile, cpu, found.features if found else None, runtime_hash, name)
    if as_json:
        say(dumps_identity(probed.runtime).rstrip())
    else:
        print_probed(probed, found)
    print_notes(probed, found)


VERBS: Final = (_probe_verb,)


def _features(
    cpu: CpuInfo, of_this_host: bool, runsc: str | None, features: str | None, cpuid: str | None
) -> Features | None:
    if runsc is not None:
        return Features(run_cpu_features(runsc, cpu.architecture), f"`{runsc} cpu-features`")
    if features is not None:
        listed = parse_cpu_features(read_text(features), cpu.architecture)
        return Features(listed, f"the runsc listing {features}")
    if cpuid is not None:
        return features_of_dump(read_text(cpuid), f"the CPUID dump {cpuid}")
    if cpu.features is not None:
        return Features(cpu.features, "the Features of cpuinfo")
    return host_features() if of_this_host else None


def host_features() -> Features:
    """What gVisor will see on this amd64 host, from CPUID on each CPU that this process may use.

    Raises:
        HostError: the host does not execute or show CPUID.
    """
    return features_of_cpus(read_every_cpuid(), "CPUID of this host")


def print_probed(probed: Probed, found: Features | None) -> None:
    """Print an identity for a person: the attributes and the names behind the mask."""
    compat = probed.runtime.compat_version
    for key, value in compat.attributes:
        say(f"{key:<20}  {value}")
    if compat.features is not None and found is not None:
        say(f"{len(compat.features)} CPU features, from {found.source}: {' '.join(compat.features)}")


def print_notes(probed: Probed, found: Features | None) -> None:
    """Print to standard error what was left out and what a person should know."""
    for line in (*(found.notes if found else ()), *describe(probed).splitlines()):
        note(line)
