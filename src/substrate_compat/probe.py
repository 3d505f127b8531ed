"""The identity of a host: its attributes, from what was read about it.

Each attribute has one function here that reads it, or says why it cannot. A profile names the attributes
that a sandbox class reports; what cannot be read is left out and named, never guessed.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import attrs

from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpuinfo import CpuInfo, cpu_flags_hash, parse_cpuinfo, read_cpuinfo
from substrate_compat.errors import InputError, quoted
from substrate_compat.guest import XSAVE_NOTE, claimed, offered
from substrate_compat.identity import (
    ARCHITECTURE,
    CPU_CACHE_LINE,
    CPU_FEATURES,
    CPU_FLAGS_HASH,
    CPU_MODEL,
    CPU_VENDOR,
    GVISOR,
    MAX_VALUE,
    SANDBOX_RUNTIME_HASH,
    Profile,
    SandboxRuntime,
    VersionedSandboxCompat,
)
from substrate_compat.runsc import parse_cpu_features, run_cpu_features
from substrate_compat.runtime_hash import asset_digest

__all__ = [
    "ATTRIBUTE_KEYS",
    "CpuInfo",
    "Probed",
    "cpu_flags_hash",
    "parse_cpu_features",
    "parse_cpuinfo",
    "probe",
    "read_cpuinfo",
    "run_cpu_features",
]


@attrs.frozen
class Probed:
    """What probing a host gave.

    Attributes:
        runtime: the identity.
        left_out: the profile's keys that could not be read, each with the reason.
        notes: what a person should know about the identity.
    """

    runtime: SandboxRuntime
    left_out: Mapping[str, str]
    notes: tuple[str, ...]


@attrs.frozen
class _Host:
    """All that the attributes are read from."""

    cpu: CpuInfo
    features: FeatureSet | None
    runtime_hash: str | None


def _model(host: _Host) -> str | None:
    return None if host.cpu.looks_like_gvisor else host.cpu.model


# How each attribute is read, and what it means that it could not be.
_READERS: Final[Mapping[str, tuple[Callable[[_Host], str | None], str]]] = {
    ARCHITECTURE: (lambda host: host.cpu.architecture.value, "cpuinfo names no architecture"),
    CPU_FEATURES: (
        lambda host: None if host.features is None else host.features.hex,
        "no feature set was given, and on amd64 cpuinfo does not tell what gVisor sees",
    ),
    CPU_VENDOR: (lambda host: host.cpu.vendor, "cpuinfo names no vendor for every processor"),
    CPU_MODEL: (_model, "cpuinfo names no model of the host's for every processor"),
    SANDBOX_RUNTIME_HASH: (lambda host: host.runtime_hash, "no runtime hash was given"),
    CPU_CACHE_LINE: (
        lambda host: None if host.cpu.cache_line is None else str(host.cpu.cache_line),
        "cpuinfo has no clflush size that every processor shares",
    ),
    CPU_FLAGS_HASH: (lambda host: cpu_flags_hash(host.cpu.flags), "cpuinfo lists no flags"),
}

ATTRIBUTE_KEYS: Final = tuple(_READERS)
"""Every attribute key that can be probed."""


def probe(
    profile: Profile,
    cpu: CpuInfo,
    features: FeatureSet | None = None,
    runtime_hash: str | None = None,
    name: str = "",
) -> Probed:
    r"""The identity of a host under `profile`.

    Args:
        profile: the sandbox class and the keys to report.
        cpu: what the host's cpuinfo tells.
        features: what runsc reports there, or CPUID gives; on arm64 cpuinfo serves where it is None.
        runtime_hash: see `sandbox_runtime_hash`.
        name: for people only.

    Raises:
        InputError: a key that cannot be probed, features of another architecture than `cpu`, a runtime
            hash that is none, or a profile of which nothing could be read.

    For class gvisor `cpu_features` is what a worker may safely offer (see `guest.offered`).

    >>> cpu = parse_cpuinfo("processor : 0\nFeatures : fp asimd aes\n")
    >>> probed = probe(GVISOR, cpu)
    >>> probed.runtime.compat_version.attributes
    (('architecture', 'arm64'), ('cpu_features', 'b'))
    >>> probed.left_out
    {'sandbox_runtime_hash': 'no runtime hash was given'}
    """
    if features is not None and features.architecture is not cpu.architecture:
        raise InputError("features", f"they are of {features.architecture}, the host is {cpu.architecture}")
    if runtime_hash is not None and asset_digest(runtime_hash, "runtime hash") != runtime_hash:
        raise InputError("runtime hash", f"{quoted(runtime_hash)} does not begin with `sha256:`")
    seen = cpu.features if features is None else features
    notes = [*_notes(cpu)]
    if seen is not None and profile.sandbox_class == GVISOR.sandbox_class:
        if claimed(seen) != offered(seen):
            notes.append(XSAVE_NOTE)
        seen = offered(seen)
    host = _Host(cpu, seen, runtime_hash)
    attributes: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for key in profile.keys:
        if key not in _READERS:
            known = ", ".join(ATTRIBUTE_KEYS)
            raise InputError("profile", f"{quoted(key)} cannot be probed", f"known are {known}")
        read, unread = _READERS[key]
        value = read(host)
        if value is None:
            left_out[key] = unread
        elif len(value) > MAX_VALUE:
            left_out[key] = f"its {len(value)} characters are more than the {MAX_VALUE} of an attribute"
        else:
            attributes[key] = value
    runtime = SandboxRuntime(profile.sandbox_class, VersionedSandboxCompat.of(attributes), name)
    return Probed(runtime, left_out, tuple(notes))


def _notes(cpu: CpuInfo) -> Iterator[str]:
    if cpu.looks_like_gvisor:
        yield "this cpuinfo looks like gVisor's own: probe the host itself, not a sandbox on it"
    if cpu.varying_flags:
        names = ", ".join(sorted(cpu.varying_flags))
        yield f"not every processor has these flags, so the host does not count as having them: {names}"
