"""What a worker offers, from the `SandboxConfig` of its pool and from its host.

A config lists versions, each a set of binaries. A worker starts new sandboxes under the default version and
can still restore snapshots under the other enabled ones, so that a pool which rolls a new version out keeps
its warm snapshots. `plan_worker_runtimes` is pure: what was asked of the host is an argument.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import attrs

from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpuinfo import CpuInfo
from substrate_compat.errors import ConfigError, InputError, quoted
from substrate_compat.identity import (
    GVISOR,
    MAX_RESTORABLE_RUNTIMES,
    PROFILES,
    WorkerRuntimes,
)
from substrate_compat.probe import Probed, probe
from substrate_compat.runtime_hash import asset_digest, sandbox_runtime_hash
from substrate_compat.sandbox_config import Asset, SandboxConfig, SandboxVersion

__all__ = [
    "RUNSC_ASSET",
    "Asset",
    "LeftOut",
    "LeftOutReason",
    "Plan",
    "SandboxConfig",
    "SandboxVersion",
    "plan_worker_runtimes",
]

RUNSC_ASSET: Final = "gvisor"
"""The name of the asset that is runsc."""

_PROFILE_OF: Final = {profile.sandbox_class: profile for profile in PROFILES}
_HOPELESS: Final = "no worker can start anything, and trying again cannot help: correct the SandboxConfig"
_UNASKED: Final = ", or tell what its runsc reports on the host"


class LeftOutReason(StrEnum):
    """Why a plan does not offer something."""

    SAME_RUNTIME = "same_runtime"
    NO_ASSETS = "no_assets"
    NOT_PINNED = "not_pinned"
    NO_FEATURES = "no_features"
    TOO_MANY = "too_many"
    UNREAD_KEY = "unread_key"


@attrs.frozen
class LeftOut:
    """Something that a plan does not offer.

    Attributes:
        name: the version, or for `unread_key` the attribute key that no runtime of the plan has.
        reason: the kind of reason.
        problem: the reason in words.
    """

    name: str
    reason: LeftOutReason
    problem: str


@attrs.frozen
class Plan:
    """What a worker offers, and why not more.

    Attributes:
        runtimes: the default version's runtime, and the restorable ones in the order of the config.
        left_out: the keys that could not be read, then the versions in the order of the config.
        versions: the way back: for each runtime hash of `runtimes`, the version whose assets must be
            fetched to restore under it.
        notes: what a person should know about the host.
    """

    runtimes: WorkerRuntimes
    left_out: tuple[LeftOut, ...]
    versions: Mapping[str, SandboxVersion] = attrs.field(hash=False)
    notes: tuple[str, ...] = ()


def plan_worker_runtimes(config: SandboxConfig, cpu: CpuInfo, features: Mapping[str, FeatureSet]) -> Plan:
    r"""What a worker on a host offers under `config`.

    Args:
        config: what the pool runs.
        cpu: what the host's cpuinfo tells.
        features: for class gvisor, what each runsc reports on this host, by its SHA-256 digest with or
            without `sha256:`. On arm64 cpuinfo serves for a digest that is not here.

    Raises:
        ConfigError: the default version cannot be offered: it is not listed, is disabled, or has one of
            the faults for which another version is left out.
        InputError: a key of `features` that is no digest or stands there twice, or a set of another
            architecture than the host's.

    >>> from substrate_compat.cpufeatures_table import Architecture
    >>> from substrate_compat.probe import parse_cpuinfo
    >>> cpu = parse_cpuinfo("processor : 0\nFeatures : fp asimd aes\n")
    >>> runsc = Asset(Architecture.ARM64, "gvisor", "https://bucket.example/runsc", "a" * 64)
    >>> versions = (
    ...     SandboxVersion("v2", True, "pause@sha256:" + "b" * 64, (runsc,)),
    ...     SandboxVersion("v1", True, "pause:latest", (runsc,)),
    ... )
    >>> plan = plan_worker_runtimes(SandboxConfig("pool", "gvisor", "v2", versions), cpu, {})
    >>> plan.runtimes.default_runtime.name, [left.name for left in plan.left_out]
    ('v2', ['v1'])
    """
    host = _Host(cpu, {asset_digest(digest, "features"): each for digest, each in features.items()})
    if len(host.features) != len(features):
        raise InputError("features", "a digest is given twice", "give each with or without `sha256:`")
    default = _default_version(config)
    first = _offer(config, default, host)
    if isinstance(first, LeftOut):
        problem = f"version {quoted(default.name)} cannot be the default: {first.problem}"
        unasked = first.reason is LeftOutReason.NO_FEATURES
        raise ConfigError("$.spec.defaultVersion", problem, _HOPELESS + (_UNASKED if unasked else ""))
    offered = {first.runtime_hash: first}
    unread = first.probed.left_out.items()
    left_out = [LeftOut(key, LeftOutReason.UNREAD_KEY, problem) for key, problem in unread]
    for version in config.versions:
        if version is default or not version.enabled:
            continue
        offer = _offer(config, version, host)
        if isinstance(offer, LeftOut):
            left_out.append(offer)
        elif offer.runtime_hash in offered:
            earlier = offered[offer.runtime_hash].version
            problem = f"its binaries are those of version {quoted(earlier.name)}"
            left_out.append(LeftOut(version.name, LeftOutReason.SAME_RUNTIME, problem))
        elif len(offered) > MAX_RESTORABLE_RUNTIMES:
            problem = f"a worker has at most {MAX_RESTORABLE_RUNTIMES} restorable runtimes"
            left_out.append(LeftOut(version.name, LeftOutReason.TOO_MANY, problem))
        else:
            offered[offer.runtime_hash] = offer
    default_runtime, *restorable = (offer.probed.runtime for offer in offered.values())
    return Plan(
        WorkerRuntimes(default_runtime, tuple(restorable)),
        tuple(left_out),
        {runtime_hash: offer.version for runtime_hash, offer in offered.items()},
        tuple(dict.fromkeys(note for offer in offered.values() for note in offer.probed.notes)),
    )


@attrs.frozen
class _Offer:
    version: SandboxVersion
    runtime_hash: str
    probed: Probed


@attrs.frozen
class _Host:
    cpu: CpuInfo
    features: Mapping[str, FeatureSet]


def _default_version(config: SandboxConfig) -> SandboxVersion:
    name = config.default_version
    version = next((each for each in config.versions if each.name == name), None)
    if version is None:
        raise ConfigError("$.spec.defaultVersion", f"no version is named {quoted(name)}", _HOPELESS)
    if not version.enabled:
        problem = f"version {quoted(name)} cannot be the default: it is disabled"
        raise ConfigError("$.spec.defaultVersion", problem, _HOPELESS)
    return version


def _offer(config: SandboxConfig, version: SandboxVersion, host: _Host) -> _Offer | LeftOut:
    """What `version` is on the host, or why it cannot be offered there."""
    architecture = host.cpu.architecture
    assets = version.asset_digests(architecture)
    if not assets:
        problem = f"it has no assets for {architecture}"
        return LeftOut(version.name, LeftOutReason.NO_ASSETS, problem)
    try:
        runtime_hash = sandbox_runtime_hash(assets, version.pause_image)
    except InputError as error:
        return LeftOut(version.name, LeftOutReason.NOT_PINNED, str(error))
    profile = _PROFILE_OF[config.sandbox_class]
    features = None
    if profile is GVISOR:
        runsc = assets.get(RUNSC_ASSET)
        if runsc is None:
            problem = (
                f"it has no asset `{RUNSC_ASSET}` for {architecture}, so it is not known what runsc sees"
            )
            return LeftOut(version.name, LeftOutReason.NO_FEATURES, problem)
        runsc = asset_digest(runsc)
        features = host.features.get(runsc, host.cpu.features)
        if features is None:
            problem = f"it is not known which features its runsc reports on this host ({runsc})"
            return LeftOut(version.name, LeftOutReason.NO_FEATURES, problem)
    probed = probe(profile, host.cpu, features, runtime_hash, version.name)
    return _Offer(version, runtime_hash, probed)
