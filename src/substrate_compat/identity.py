"""What a restore depends on: the identity that workers offer and snapshots carry.

An identity is a sandbox class and attributes, each a key with a text. One key is more than a text:
`cpu_features` is a mask in hex, read for the architecture that the identity names. It is read once,
when the identity is made, so that matching compares what is already in its best form.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Final, Self

import attrs

from substrate_compat.compact import COMPACT_BITS, compact
from substrate_compat.cpufeatures import (
    FeatureSet,
    decode_cpu_features,
    parse_architecture,
)
from substrate_compat.errors import InputError, quoted

__all__ = [
    "ARCHITECTURE",
    "CPU_CACHE_LINE",
    "CPU_FEATURES",
    "CPU_FLAGS_HASH",
    "CPU_MODEL",
    "CPU_VENDOR",
    "GVISOR",
    "GVISOR_CACHE_LINE",
    "MATCH_BITS",
    "MAX_RESTORABLE_RUNTIMES",
    "MAX_VALUE",
    "MICROVM",
    "PROFILES",
    "SANDBOX_RUNTIME_HASH",
    "SCHEMA_VERSION",
    "Profile",
    "SandboxRuntime",
    "VersionedSandboxCompat",
    "WorkerRuntimes",
    "is_unicode",
    "runtime_paths",
]

SCHEMA_VERSION: Final = "v1"
"""The version of the schema whose attributes this library knows."""

ARCHITECTURE: Final = "architecture"
CPU_FEATURES: Final = "cpu_features"
CPU_VENDOR: Final = "cpu_vendor"
CPU_MODEL: Final = "cpu_model"
CPU_CACHE_LINE: Final = "cpu_cache_line"
CPU_FLAGS_HASH: Final = "cpu_flags_hash"
SANDBOX_RUNTIME_HASH: Final = "sandbox_runtime_hash"

MAX_RESTORABLE_RUNTIMES: Final = 32
"""The most runtimes that a worker may list besides its default."""
MAX_VALUE: Final = 256
"""The most characters that an attribute's value may have."""
_HALF_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MAX_ATTRIBUTES: Final = 32
_MAX_KEY: Final = 128
_MAX_SANDBOX_CLASS: Final = 63
_MAX_SCHEMA_VERSION: Final = 64

# Two bits more make "is there a readable feature set?" part of the same subset test.
_READABLE: Final = 1 << COMPACT_BITS
_UNREADABLE: Final = 2 << COMPACT_BITS
MATCH_BITS: Final = (4 << COMPACT_BITS) - 1
"""Every bit that `needs` and `lacks` may have."""


@attrs.frozen
class Profile:
    """The attributes that a runtime of one sandbox class reports.

    Attributes:
        sandbox_class: `gvisor` or `microvm`.
        keys: the attribute keys, in the order of reporting.

    >>> GVISOR.keys
    ('architecture', 'cpu_features', 'sandbox_runtime_hash')
    """

    sandbox_class: str
    keys: tuple[str, ...]


GVISOR: Final = Profile("gvisor", (ARCHITECTURE, CPU_FEATURES, SANDBOX_RUNTIME_HASH))
GVISOR_CACHE_LINE: Final = Profile("gvisor", (*GVISOR.keys, CPU_CACHE_LINE))
"""GVISOR and what gVisor also compares on amd64, where no other verdict is certain."""
MICROVM: Final = Profile("microvm", (ARCHITECTURE, CPU_VENDOR, CPU_MODEL, SANDBOX_RUNTIME_HASH))
PROFILES: Final = (GVISOR, MICROVM)
"""The profile of each sandbox class."""


@attrs.frozen
class VersionedSandboxCompat:
    """A schema version and attributes with unique keys.

    Attributes:
        schema_version: 1 to 64 characters.
        attributes: 1 to 32 pairs of a key (1 to 128 characters) and a value (1 to 256), sorted by
            key; they may be given in any order.
        equalities: the pairs that a match compares by equality: all but `cpu_features`.
        features: the set that `cpu_features` stands for; None where it is absent or unreadable, be
            it for its text or for want of a readable `architecture`.
        needs: the bits that a worker must have to restore this: the compact mask, and a bit of our own
            that every worker with a readable set has; no worker has what an unreadable set needs.
        lacks: the bits that this worker does not have. Its features suffice exactly if
            `snapshot.needs & worker.lacks == 0`.

    Raises:
        InputError: a limit is broken; the subject is the path, such as `$.attributes[1].key`.

    >>> compat = VersionedSandboxCompat.of({"cpu_features": "1", "architecture": "amd64"})
    >>> compat.attributes, compat.features.names
    ((('architecture', 'amd64'), ('cpu_features', '1')), ('pni',))
    """

    schema_version: str
    attributes: tuple[tuple[str, str], ...]
    equalities: frozenset[tuple[str, str]] = attrs.field(init=False, eq=False, repr=False)
    features: FeatureSet | None = attrs.field(init=False, eq=False, repr=False)
    needs: int = attrs.field(init=False, eq=False, repr=False)
    lacks: int = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _check_text("$.schemaVersion", self.schema_version, _MAX_SCHEMA_VERSION)
        _check_attributes(self.attributes)
        values = dict(self.attributes)
        features = _readable_features(values)
        needs = 0
        lacks = MATCH_BITS
        if features is not None:
            needs = compact(features.bits) | _READABLE
            lacks ^= needs
        elif CPU_FEATURES in values:
            needs = _UNREADABLE
        # Fleets repeat the same few values in every identity: interned, each is in memory once and
        # compared by address.
        pairs = tuple(sorted([(sys.intern(key), sys.intern(value)) for key, value in values.items()]))
        put = object.__setattr__
        put(self, "attributes", pairs)
        put(self, "equalities", frozenset([pair for pair in pairs if pair[0] != CPU_FEATURES]))
        put(self, "features", features)
        put(self, "needs", needs)
        put(self, "lacks", lacks)

    @classmethod
    def of(cls, attributes: Mapping[str, str], schema_version: str = SCHEMA_VERSION) -> Self:
        """The compat of a mapping from key to value."""
        return cls(schema_version, tuple(attributes.items()))

    def get(self, key: str) -> str | None:
        """The value of `key`, or None.

        >>> VersionedSandboxCompat.of({"cpu_model": "EPYC"}).get("cpu_model")
        'EPYC'
        """
        return next((value for held, value in self.attributes if held == key), None)


@attrs.frozen
class SandboxRuntime:
    """A sandbox class and what its sandboxes depend on; carried by workers and by snapshots.

    Attributes:
        sandbox_class: 1 to 63 characters; `gvisor` and `microvm` are known.
        compat_version: the attributes.
        name: for people only; takes no part in `==`, hash and matching.
        same: one text for all that a match compares by equality: equal texts, equal parts. It is
            interned, so that equal texts are nearly always one object.
        cpu_features: the attribute of that name, interned too; None where it is absent. With `same` it
            stands for all but the name: `==` and hash look at these two.
        needs: as in `compat_version`.
        lacks: as in `compat_version`.

    Raises:
        InputError: a limit is broken; the subject is the path.

    >>> compat = VersionedSandboxCompat.of({"sandbox_runtime_hash": "sha256:" + "a" * 64})
    >>> SandboxRuntime("gvisor", compat, "v1") == SandboxRuntime("gvisor", compat, "v2")
    True
    """

    sandbox_class: str = attrs.field(eq=False)
    compat_version: VersionedSandboxCompat = attrs.field(eq=False)
    name: str = attrs.field(default="", eq=False)
    same: str = attrs.field(init=False, repr=False)
    cpu_features: str | None = attrs.field(init=False, repr=False)
    needs: int = attrs.field(init=False, eq=False, repr=False)
    lacks: int = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _check_text("$.sandboxClass", self.sandbox_class, _MAX_SANDBOX_CLASS)
        compat = self.compat_version
        if type(compat) is not VersionedSandboxCompat or type(self.name) is not str:
            raise TypeError("a SandboxRuntime takes a VersionedSandboxCompat and a str")
        if not is_unicode(self.name):
            raise InputError(
                "$.name", f"{quoted(self.name)} has half a surrogate pair: it is no Unicode text"
            )
        parts = (self.sandbox_class, compat.schema_version, *sorted(compat.equalities))
        put = object.__setattr__
        put(self, "same", sys.intern(repr(parts)))
        put(self, "cpu_features", compat.get(CPU_FEATURES))
        put(self, "needs", compat.needs)
        put(self, "lacks", compat.lacks)


# An index looks a worker's runtimes up at each change; the hash of all their texts is worth keeping.
@attrs.frozen(cache_hash=True)
class WorkerRuntimes:
    """What one worker can restore.

    Attributes:
        default_runtime: what cold starts and new snapshots use.
        restorable_runtimes: at most 32 others that snapshots can still be restored under; all of
            the default's sandbox class, none listed twice.

    Raises:
        InputError: a limit is broken; the subject is the path.

    >>> v1, v2 = (
    ...     SandboxRuntime("gvisor", VersionedSandboxCompat.of({"sandbox_runtime_hash": text}))
    ...     for text in ("sha256:" + "1" * 64, "sha256:" + "2" * 64)
    ... )
    >>> list(WorkerRuntimes(v2, (v1,))) == [v2, v1]
    True
    """

    default_runtime: SandboxRuntime
    restorable_runtimes: tuple[SandboxRuntime, ...] = ()

    def __attrs_post_init__(self) -> None:
        if type(self.restorable_runtimes) is not tuple:
            raise TypeError("a WorkerRuntimes takes a tuple of restorable runtimes")
        count = len(self.restorable_runtimes)
        if count > MAX_RESTORABLE_RUNTIMES:
            raise InputError(
                "$.restorableRuntimes",
                f"{count} runtimes; {MAX_RESTORABLE_RUNTIMES} are the most",
                "drop the ones that no snapshot needs any more",
            )
        seen: dict[SandboxRuntime, str] = {}
        for path, runtime in zip(runtime_paths(count), self, strict=True):
            if type(runtime) is not SandboxRuntime:
                raise TypeError("a WorkerRuntimes takes SandboxRuntimes")
            if runtime.sandbox_class != self.default_runtime.sandbox_class:
                raise InputError(
                    path,
                    f"its sandbox class is {quoted(runtime.sandbox_class)}, the default's is "
                    f"{quoted(self.default_runtime.sandbox_class)}",
                    "a worker has one sandbox class",
                )
            if runtime in seen:
                raise InputError(path, f"the same runtime as {seen[runtime]}", "list it once")
            seen[runtime] = path

    def __iter__(self) -> Iterator[SandboxRuntime]:
        yield self.default_runtime
        yield from self.restorable_runtimes


def runtime_paths(restorable: int) -> Iterator[str]:
    """The paths of a worker's runtimes in JSON, the default's first.

    >>> list(runtime_paths(1))
    ['$.defaultRuntime', '$.restorableRuntimes[0]']
    """
    yield "$.defaultRuntime"
    for position in range(restorable):
        yield f"$.restorableRuntimes[{position}]"


def _check_attributes(attributes: tuple[tuple[str, str], ...]) -> None:
    if not 1 <= len(attributes) <= _MAX_ATTRIBUTES:
        raise InputError(
            "$.attributes", f"{len(attributes)} attributes; 1 to {_MAX_ATTRIBUTES} are allowed"
        )
    seen: dict[str, int] = {}
    for position, (key, value) in enumerate(attributes):
        if not (_is_plain(key, _MAX_KEY) and _is_plain(value, MAX_VALUE)):
            _check_text(f"$.attributes[{position}].key", key, _MAX_KEY)
            _check_text(f"$.attributes[{position}].value", value, MAX_VALUE)
        if seen.setdefault(key, position) != position:
            problem = f"{quoted(key)} is already the key of $.attributes[{seen[key]}]"
            raise InputError(f"$.attributes[{position}].key", problem)


def _is_plain(text: str, longest: int) -> bool:
    """Whether a text is surely within the limits: the usual case, told without making its path."""
    return type(text) is str and 0 < len(text) <= longest and text.isascii()


def is_unicode(text: str) -> bool:
    r"""Whether UTF-8 can carry a text: it has no half of a surrogate pair.

    >>> is_unicode("\u00e9"), is_unicode("\ud800")
    (True, False)
    """
    return text.isascii() or _HALF_SURROGATE.search(text) is None


def _check_text(path: str, text: str, longest: int) -> None:
    if type(text) is not str:
        raise TypeError(f"{path} must be a str")
    if not 1 <= len(text) <= longest:
        raise InputError(path, f"{len(text)} characters; 1 to {longest} are allowed")
    if not is_unicode(text):
        raise InputError(path, f"{quoted(text)} has half a surrogate pair: it is no Unicode text")


def _readable_features(values: Mapping[str, str]) -> FeatureSet | None:
    if CPU_FEATURES not in values or ARCHITECTURE not in values:
        return None
    try:
        return decode_cpu_features(values[CPU_FEATURES], parse_architecture(values[ARCHITECTURE]))
    except InputError:
        return None
