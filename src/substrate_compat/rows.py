"""Identities, workers and snapshots as rows of texts and integers, and back.

A fleet has many workers and few distinct identities, so a database holds each identity once, under a key
that is computed from it, and workers and snapshots refer to the key. This module knows no database: the
rows fit every engine, and a file of rows as well.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from substrate_compat.cpufeatures import MASK_BITS
from substrate_compat.errors import InputError, quoted
from substrate_compat.identity import (
    ARCHITECTURE,
    CPU_FEATURES,
    SandboxRuntime,
    VersionedSandboxCompat,
    WorkerRuntimes,
)

__all__ = [
    "MAX_ID",
    "WORDS",
    "Cell",
    "attribute_rows",
    "identity_key",
    "mask_words",
    "runtime_from_rows",
    "runtime_row",
    "snapshot_row",
    "worker_rows",
]

Cell = str | int | None
"""What a row holds under a column's name."""

MAX_ID: Final = 512
"""The most characters of a worker's or a snapshot's id: an index of PostgreSQL holds no longer ones."""

_WORD_BITS: Final = 64
_SIGN: Final = 1 << _WORD_BITS - 1
_WORD: Final = (1 << _WORD_BITS) - 1
WORDS: Final = tuple(f"f{number}" for number in range(MASK_BITS // _WORD_BITS))
"""The columns of the mask: `f0` holds bits 0 to 63, `f5` bits 320 to 383."""


def identity_key(runtime: SandboxRuntime) -> str:
    """The key of an identity: 64 hex digits, equal exactly for equal identities; the name does not enter.

    It is the SHA-256 of the identity as compact JSON in UTF-8:
    `[sandbox_class, schema_version, [[key, value], ...]]`, the pairs sorted by key.

    >>> compat = VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": "1"})
    >>> identity_key(SandboxRuntime("gvisor", compat))[:16]
    '07959fa76a8fd5ea'
    """
    compat = runtime.compat_version
    parts = [runtime.sandbox_class, compat.schema_version, compat.attributes]
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def mask_words(bits: int) -> tuple[int, ...]:
    """A mask as six signed 64-bit integers in two's complement, the lowest bits first.

    SQL has no unsigned integers, and `&` does not mind the sign.

    >>> mask_words(1 | 1 << 63 | 1 << 64)
    (-9223372036854775807, 1, 0, 0, 0, 0)
    """
    words = (bits >> _WORD_BITS * number & _WORD for number in range(len(WORDS)))
    return tuple(word - (word >> _WORD_BITS - 1 << _WORD_BITS) for word in words)


def runtime_row(runtime: SandboxRuntime) -> dict[str, Cell]:
    """The row of an identity in the table `runtime`; the mask's words are None where it is unreadable.

    >>> compat = VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": "3"})
    >>> row = runtime_row(SandboxRuntime("gvisor", compat))
    >>> row["sandbox_class"], row["architecture"], row["f0"], row["f5"]
    ('gvisor', 'amd64', 3, 0)
    """
    compat = runtime.compat_version
    features = compat.features
    words = (None,) * len(WORDS) if features is None else mask_words(features.bits)
    return {
        "runtime_key": identity_key(runtime),
        "sandbox_class": runtime.sandbox_class,
        "schema_version": compat.schema_version,
        "architecture": compat.get(ARCHITECTURE),
        **dict(zip(WORDS, words, strict=True)),
    }


def attribute_rows(runtime: SandboxRuntime) -> list[dict[str, Cell]]:
    """The rows of an identity in the table `runtime_attribute`, sorted by key.

    These are the attributes that a match compares by equality. A `cpu_features` that cannot be read has no
    words, so its text is kept here: else it would look as if it had not been recorded.

    >>> compat = VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": "1"})
    >>> [row["key"] for row in attribute_rows(SandboxRuntime("gvisor", compat))]
    ['architecture']
    """
    compat = runtime.compat_version
    key = identity_key(runtime)
    return [
        {"runtime_key": key, "key": name, "value": value}
        for name, value in compat.attributes
        if name != CPU_FEATURES or compat.features is None
    ]


def runtime_from_rows(row: Mapping[str, Cell], attributes: Mapping[str, str]) -> SandboxRuntime:
    """The identity whose row in `runtime` is `row` and whose other attributes are `attributes`.

    It matches exactly as the one that was written. A mask comes back without leading zeros, so its
    `identity_key` may be another: keep the row's.

    Raises:
        InputError: what the rows hold is no identity.

    >>> compat = VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": "1"})
    >>> runtime = SandboxRuntime("gvisor", compat)
    >>> runtime_from_rows(runtime_row(runtime), {"architecture": "amd64"}) == runtime
    True
    """
    held = dict(attributes)
    words = [row[name] for name in WORDS]
    # With a part of its mask gone, a snapshot would seem to need less than it does.
    if any(word is not None for word in words):
        held[CPU_FEATURES] = f"{_bits(words):x}"
    compat = VersionedSandboxCompat.of(held, str(row["schema_version"]))
    return SandboxRuntime(str(row["sandbox_class"]), compat)


def worker_rows(worker_id: str, runtimes: WorkerRuntimes) -> list[dict[str, Cell]]:
    """The rows of a worker in the table `worker_runtime`, the default's first, at position 0.

    Raises:
        InputError: an id that is no Unicode text of 1 to 512 characters.

    >>> compat = VersionedSandboxCompat.of({"architecture": "amd64"})
    >>> [row["position"] for row in worker_rows("w1", WorkerRuntimes(SandboxRuntime("gvisor", compat)))]
    [0]
    """
    _check_id("worker id", worker_id)
    return [
        {"worker_id": worker_id, "position": position, "runtime_key": identity_key(runtime)}
        for position, runtime in enumerate(runtimes)
    ]


def snapshot_row(snapshot_id: str, snapshot: SandboxRuntime) -> dict[str, Cell]:
    """The row of a snapshot in the table `snapshot`.

    Raises:
        InputError: an id that is no Unicode text of 1 to 512 characters.

    >>> compat = VersionedSandboxCompat.of({"architecture": "amd64"})
    >>> sorted(snapshot_row("s1", SandboxRuntime("gvisor", compat)))
    ['runtime_key', 'snapshot_id']
    """
    _check_id("snapshot id", snapshot_id)
    return {"snapshot_id": snapshot_id, "runtime_key": identity_key(snapshot)}


def _bits(words: list[Cell]) -> int:
    bits = 0
    for number, word in enumerate(words):
        if type(word) is not int or not -_SIGN <= word < _SIGN:
            raise InputError(f"column f{number}", f"{quoted(str(word))} is no integer of 64 bits")
        bits |= (word & _WORD) << _WORD_BITS * number
    return bits


def _check_id(subject: str, text: str) -> None:
    if not 1 <= len(text) <= MAX_ID:
        raise InputError(subject, f"{len(text)} characters; 1 to {MAX_ID} are allowed")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(subject, f"{quoted(text)} has half a surrogate pair: it is no Unicode text")
