"""Can this worker restore this snapshot, and if not, exactly why not?

`matches` answers, fast; `explain` gives the same answer with every reason. What a verdict says yes to,
gVisor's own check says yes to, as far as both sides recorded what it looks at; what was not recorded is
named as unchecked.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Final, cast

import attrs

from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import InputError
from substrate_compat.guest import claimed, levelled
from substrate_compat.identity import (
    ARCHITECTURE,
    CPU_CACHE_LINE,
    CPU_FEATURES,
    GVISOR,
    MICROVM,
    PROFILES,
    SANDBOX_RUNTIME_HASH,
    SCHEMA_VERSION,
    SandboxRuntime,
    VersionedSandboxCompat,
    WorkerRuntimes,
)

__all__ = [
    "Mismatch",
    "Reason",
    "Unchecked",
    "Verdict",
    "WorkerVerdict",
    "explain",
    "explain_worker",
    "matches",
    "matches_compat",
    "stamp",
]

_CPU: Final = "cpu_"
_FIRST_REASONS: Final = (ARCHITECTURE, SANDBOX_RUNTIME_HASH)


class Reason(StrEnum):
    """Why a worker cannot restore a snapshot."""

    NO_WORKER = "no_worker"
    SANDBOX_CLASS = "sandbox_class"
    SCHEMA_VERSION = "schema_version"
    MISSING_KEY = "missing_key"
    DIFFERENT_VALUE = "different_value"
    MISSING_FEATURES = "missing_features"
    UNREADABLE_FEATURES = "unreadable_features"


class Unchecked(StrEnum):
    """What a verdict could not look at, besides the attribute keys that a snapshot lacks."""

    IDENTITY = "identity"
    SANDBOX_CLASS = "sandbox_class"
    SCHEMA_VERSION = "schema_version"
    BEYOND_HWCAP = "beyond_hwcap"
    TSC_RATE = "tsc_rate"


@attrs.frozen
class Mismatch:
    """One reason why a worker cannot restore a snapshot.

    Attributes:
        reason: of which kind.
        key: the attribute key, or the name of the field that differs; empty where there is no worker.
        worker: the worker's value; None where it has none.
        snapshot: the snapshot's value; None where it has none.
        features: the names of the features that the worker lacks, sorted, for `MISSING_FEATURES`.
    """

    reason: Reason
    key: str
    worker: str | None
    snapshot: str | None
    features: tuple[str, ...] = ()


@attrs.frozen
class Verdict:
    """Whether one runtime can restore a snapshot.

    Attributes:
        mismatches: every reason against it, in the order class, schema, architecture, runtime hash, CPU
            keys, other keys.
        unchecked: what could not be looked at: attribute keys and members of `Unchecked`.
    """

    mismatches: tuple[Mismatch, ...]
    unchecked: tuple[str, ...]

    @property
    def compatible(self) -> bool:
        """Nothing that was recorded speaks against the restore."""
        return not self.mismatches

    @property
    def certain(self) -> bool:
        """Compatible, and nothing that gVisor would look at was left unchecked."""
        return not self.mismatches and not self.unchecked


@attrs.frozen
class WorkerVerdict:
    """Whether any runtime of a worker can restore a snapshot.

    Attributes:
        runtime: the first that matches, the default first; None where none does.
        verdicts: the verdict of each runtime, the default's first, then in order.
    """

    runtime: SandboxRuntime | None
    verdicts: tuple[Verdict, ...]

    @property
    def compatible(self) -> bool:
        """The worker can restore the snapshot."""
        return any(verdict.compatible for verdict in self.verdicts)

    @property
    def certain(self) -> bool:
        """The first runtime that matches does so with nothing left unchecked."""
        first = next((verdict for verdict in self.verdicts if verdict.compatible), None)
        return first is not None and first.certain


def _or_none(
    match: Callable[[SandboxRuntime, SandboxRuntime], bool],
) -> Callable[[SandboxRuntime | None, SandboxRuntime | None], bool]:
    """Say of `matches` that it takes None too, which its body meets as an AttributeError."""
    return cast("Callable[[SandboxRuntime | None, SandboxRuntime | None], bool]", match)


@_or_none
def matches(worker: SandboxRuntime, snapshot: SandboxRuntime) -> bool:
    """Whether `worker` can restore `snapshot`.

    A snapshot of None puts no constraint; a worker of None can restore nothing else.

    >>> compat = VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": "3"})
    >>> worker = SandboxRuntime("gvisor", compat)
    >>> matches(worker, stamp(worker))
    False
    >>> matches(worker, worker), matches(None, worker), matches(worker, None)
    (True, False, True)
    """
    # Nearly every call ends in the second line. None has no attributes, and asking for it first would cost
    # every other call a tenth. Equal texts that are two objects, as after unpickling, take the longer way.
    try:
        if worker.same is snapshot.same:
            return not snapshot.needs & worker.lacks
    except AttributeError:
        pass
    return _matches(worker, snapshot)


def _matches(worker: SandboxRuntime | None, snapshot: SandboxRuntime | None) -> bool:
    if snapshot is None or worker is None:
        return snapshot is None
    if worker.sandbox_class != snapshot.sandbox_class:
        return False
    return matches_compat(worker.compat_version, snapshot.compat_version)


def matches_compat(worker: VersionedSandboxCompat | None, snapshot: VersionedSandboxCompat | None) -> bool:
    """Whether the attributes of `worker` satisfy those of `snapshot`; False if either is None.

    >>> worker = VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": "3"})
    >>> snapshot = VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": "1"})
    >>> matches_compat(worker, snapshot), matches_compat(snapshot, worker)
    (True, False)
    """
    return (
        worker is not None
        and snapshot is not None
        and worker.schema_version == snapshot.schema_version
        and snapshot.equalities <= worker.equalities
        and not snapshot.needs & worker.lacks
    )


def explain(worker: SandboxRuntime | None, snapshot: SandboxRuntime | None) -> Verdict:
    """The answer of `matches`, with every reason and with what could not be checked.

    >>> compat = VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": "3"})
    >>> less = VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": "1"})
    >>> verdict = explain(SandboxRuntime("gvisor", less), SandboxRuntime("gvisor", compat))
    >>> verdict.compatible, verdict.mismatches[0].features
    (False, ('pclmulqdq',))
    """
    if snapshot is None:
        return Verdict((), (Unchecked.IDENTITY,))
    unchecked = _unchecked(snapshot)
    if worker is None:
        return Verdict((Mismatch(Reason.NO_WORKER, "", None, None),), unchecked)
    mismatches = [
        Mismatch(reason, reason.value, offered, needed)
        for reason, offered, needed in (
            (Reason.SANDBOX_CLASS, worker.sandbox_class, snapshot.sandbox_class),
            (
                Reason.SCHEMA_VERSION,
                worker.compat_version.schema_version,
                snapshot.compat_version.schema_version,
            ),
        )
        if offered != needed
    ]
    mismatches.extend(_attribute_mismatches(worker.compat_version, snapshot.compat_version))
    return Verdict(tuple(mismatches), unchecked)


def explain_worker(runtimes: WorkerRuntimes, snapshot: SandboxRuntime | None) -> WorkerVerdict:
    """Whether a worker can restore `snapshot` under any of its runtimes, the default first.

    >>> compat = VersionedSandboxCompat.of({"sandbox_runtime_hash": "sha256:" + "1" * 64})
    >>> runtime = SandboxRuntime("gvisor", compat)
    >>> explain_worker(WorkerRuntimes(runtime), runtime).runtime == runtime
    True
    """
    verdicts = tuple(explain(runtime, snapshot) for runtime in runtimes)
    first = (runtime for runtime, verdict in zip(runtimes, verdicts, strict=True) if verdict.compatible)
    return WorkerVerdict(next(first, None), verdicts)


def stamp(
    runtime: SandboxRuntime,
    level: FeatureSet | None = None,
    parent: SandboxRuntime | None = None,
) -> SandboxRuntime:
    """The identity that a new snapshot carries.

    Args:
        runtime: what the sandbox runs under: the worker's default if it was started cold, the runtime
            that matched `parent` if it was restored.
        level: what gVisor was told to show at a cold start; the guest saw no more (gVisor class, amd64).
        parent: the snapshot that the sandbox was restored from. gVisor freezes the feature set at the
            first start, so the new snapshot keeps what its parent recorded, and `level` changes nothing.

    Raises:
        InputError: a runtime that does not match `parent`, or a level that cannot be in force there.

    >>> compat = VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": "1"})
    >>> stamp(SandboxRuntime("gvisor", compat)).compat_version.features.names
    ('pni', 'xsave')
    """
    if parent is not None:
        if not matches(runtime, parent):
            raise InputError(
                "runtime",
                "it does not match the parent: the sandbox cannot have been restored under it",
                "give the runtime that `explain_worker` names for the parent",
            )
        return _with_cpu_features(runtime, parent.compat_version.get(CPU_FEATURES))
    seen = runtime.compat_version.features
    if runtime.sandbox_class != GVISOR.sandbox_class:
        if level is not None:
            raise InputError("level", f"a sandbox of class {runtime.sandbox_class!a} has no level")
        return runtime
    if seen is None:
        recorded = runtime.compat_version.get(CPU_FEATURES)
        if level is not None or recorded is not None:
            raise InputError(
                "runtime",
                "its cpu_features are " + ("not recorded" if recorded is None else "unreadable"),
                "probe the worker again with the feature set that its runsc reports",
            )
        return runtime
    if level is not None:
        seen = levelled(seen, level)
    return _with_cpu_features(runtime, claimed(seen).hex)


def _with_cpu_features(runtime: SandboxRuntime, mask: str | None) -> SandboxRuntime:
    compat = runtime.compat_version
    attributes = dict(compat.attributes)
    attributes.pop(CPU_FEATURES, None)
    if mask is not None:
        attributes[CPU_FEATURES] = mask
    changed = VersionedSandboxCompat.of(attributes, compat.schema_version)
    return attrs.evolve(runtime, compat_version=changed)


def _rank(attribute: tuple[str, str]) -> tuple[int, str]:
    """The place of an attribute among the reasons."""
    key, _ = attribute
    if key in _FIRST_REASONS:
        return _FIRST_REASONS.index(key), key
    return len(_FIRST_REASONS) + (not key.startswith(_CPU)), key


def _attribute_mismatches(
    worker: VersionedSandboxCompat, snapshot: VersionedSandboxCompat
) -> Iterator[Mismatch]:
    values = dict(worker.attributes)
    architectures = {worker.get(ARCHITECTURE), snapshot.get(ARCHITECTURE)} - {None}
    for key, needed in sorted(snapshot.attributes, key=_rank):
        offered = values.get(key)
        if key.startswith(_CPU) and len(architectures) > 1:
            continue
        if offered is None:
            yield Mismatch(Reason.MISSING_KEY, key, None, needed)
        elif key != CPU_FEATURES:
            if offered != needed:
                yield Mismatch(Reason.DIFFERENT_VALUE, key, offered, needed)
        elif snapshot.features is None or worker.features is None:
            yield Mismatch(Reason.UNREADABLE_FEATURES, key, offered, needed)
        elif not snapshot.features <= worker.features:
            missing = (snapshot.features - worker.features).names
            yield Mismatch(Reason.MISSING_FEATURES, key, offered, needed, missing)


def _unchecked(snapshot: SandboxRuntime) -> tuple[str, ...]:
    compat = snapshot.compat_version
    if compat.schema_version != SCHEMA_VERSION:
        return (Unchecked.SCHEMA_VERSION,)
    profile = next((each for each in PROFILES if each.sandbox_class == snapshot.sandbox_class), None)
    if profile is None:
        return (Unchecked.SANDBOX_CLASS,)
    unchecked = [key for key in profile.keys if compat.get(key) is None]
    if profile is MICROVM:
        unchecked.append(Unchecked.TSC_RATE)
    elif compat.get(ARCHITECTURE) == Architecture.ARM64:
        unchecked.append(Unchecked.BEYOND_HWCAP)
    elif compat.get(CPU_CACHE_LINE) is None:
        unchecked.append(CPU_CACHE_LINE)
    return tuple(unchecked)
