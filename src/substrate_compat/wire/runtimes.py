"""What a worker offers as JSON: its `sandbox-runtimes.json`, and a line of a file of many workers."""

import os
from collections.abc import Mapping
from typing import Final

from cattrs import Converter

from substrate_compat.cpufeatures import decode_cpu_features, parse_architecture
from substrate_compat.errors import InputError, quoted
from substrate_compat.files import read_at_most, write_whole
from substrate_compat.identity import (
    ARCHITECTURE,
    CPU_FEATURES,
    SCHEMA_VERSION,
    SandboxRuntime,
    VersionedSandboxCompat,
    WorkerRuntimes,
    is_unicode,
    runtime_paths,
)
from substrate_compat.strictjson import MAX_BYTES, canonical_json, json_line, key_path, parse_json
from substrate_compat.wire.converter import OfferLayout, WorkerLayout, make_converter
from substrate_compat.wire.strict import structured

__all__ = [
    "dumps_runtimes",
    "dumps_worker",
    "loads_runtimes",
    "loads_worker",
    "read_runtimes",
    "write_runtimes",
]

_ALMOST_TOO_LONG: Final = MAX_BYTES // 8
"""Beyond so many characters (of at most 4 bytes) the text that is written may be over the limit, though the
one that was read is not: it has blanks."""


def dumps_runtimes(runtimes: WorkerRuntimes, converter: Converter | None = None) -> str:
    r"""The text of `sandbox-runtimes.json`: the same bytes (in UTF-8) for equal runtimes.

    Raises:
        InputError: what `loads_runtimes` would refuse: another schema than `v1`, a feature set that cannot
            be read, or more than 1 MiB.

    >>> compat = VersionedSandboxCompat.of({"sandbox_runtime_hash": "sha256:" + "a" * 64})
    >>> print(dumps_runtimes(WorkerRuntimes(SandboxRuntime("gvisor", compat))), end="")
    {
      "defaultRuntime": {
        "sandbox_runtime_hash": "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      }
    }
    """
    default, *restorable = _attributes(runtimes)
    layout = OfferLayout(default_runtime=default, restorable_runtimes=restorable)
    return _within_limit(canonical_json(_members(layout, converter)))


def loads_runtimes(
    data: bytes | str, sandbox_class: str, converter: Converter | None = None
) -> WorkerRuntimes:
    """The runtimes that the text of a `sandbox-runtimes.json` lists.

    Args:
        data: the text, or its bytes; at most 1 MiB.
        sandbox_class: the class of them all, which the file does not tell.
        converter: from `make_converter`.

    Raises:
        InputError: text that is not such a file; the subject is the path, such as
            `$.restorableRuntimes[1].cpu_features`.

    >>> loads_runtimes('{"defaultRuntime": {"cpu_model": 5}}', "microvm")
    Traceback (most recent call last):
    substrate_compat.errors.InputError: $.defaultRuntime.cpu_model: a number where a string must stand
    """
    layout = structured(parse_json(data), OfferLayout, converter or make_converter())
    runtimes = _runtimes(layout, sandbox_class)
    if len(data) > _ALMOST_TOO_LONG:
        dumps_runtimes(runtimes, converter)
    return runtimes


def write_runtimes(
    path: str | os.PathLike[str], runtimes: WorkerRuntimes, converter: Converter | None = None
) -> bool:
    """Writes a `sandbox-runtimes.json` whole; False if it already says so, and then it is not touched.

    A worker registers again whenever the file changes, so a rewrite that changes nothing would cost. Killed
    at any moment, the writer leaves the old or the new file (see `files.write_whole`).

    Raises:
        InputError: see `dumps_runtimes`.
        FileError: the file cannot be written.
    """
    return write_whole(path, dumps_runtimes(runtimes, converter).encode())


def read_runtimes(
    path: str | os.PathLike[str], sandbox_class: str, converter: Converter | None = None
) -> WorkerRuntimes:
    """The runtimes that a `sandbox-runtimes.json` lists (see `loads_runtimes`).

    Raises:
        FileNotFoundError: there is no such file.
        FileError: it cannot be read.
        InputError: its text is not such a file; the subject is its name and the path in it.
    """
    data = read_at_most(path, MAX_BYTES)
    try:
        return loads_runtimes(data, sandbox_class, converter)
    except InputError as error:
        raise InputError(f"{os.fspath(path)}: {error.subject}", error.problem, error.remedy) from None


def dumps_worker(worker: str, runtimes: WorkerRuntimes, converter: Converter | None = None) -> str:
    r"""What a worker offers, as one line of a JSON Lines file, its newline included.

    Raises:
        InputError: a name that is empty or no Unicode text, or see `dumps_runtimes`.

    >>> compat = VersionedSandboxCompat.of({"architecture": "arm64"})
    >>> dumps_worker("w1", WorkerRuntimes(SandboxRuntime("gvisor", compat)))
    '{"defaultRuntime":{"architecture":"arm64"},"sandboxClass":"gvisor","worker":"w1"}\n'
    """
    _require_name(worker)
    default, *restorable = _attributes(runtimes)
    layout = WorkerLayout(
        worker=worker,
        sandbox_class=runtimes.default_runtime.sandbox_class,
        default_runtime=default,
        restorable_runtimes=restorable,
    )
    return _within_limit(json_line(_members(layout, converter)))


def loads_worker(data: bytes | str, converter: Converter | None = None) -> tuple[str, WorkerRuntimes]:
    """The name of a worker and what it offers, from one line of a JSON Lines file.

    Raises:
        InputError: a line that is none; the subject is the path, such as `$.defaultRuntime.architecture`.

    >>> line = '{"worker": "w1", "sandboxClass": "gvisor", "defaultRuntime": {"architecture": "arm64"}}'
    >>> loads_worker(line)[0]
    'w1'
    """
    layout = structured(parse_json(data), WorkerLayout, converter or make_converter())
    _require_name(layout.worker)
    runtimes = _runtimes(layout, layout.sandbox_class)
    if len(data) > _ALMOST_TOO_LONG:
        dumps_worker(layout.worker, runtimes, converter)
    return layout.worker, runtimes


def _members(layout: OfferLayout, converter: Converter | None) -> Mapping[str, object]:
    members: dict[str, object] = (converter or make_converter()).unstructure(layout)
    if not layout.restorable_runtimes:
        del members["restorableRuntimes"]
    return members


def _attributes(runtimes: WorkerRuntimes) -> list[dict[str, str]]:
    """The attributes of each runtime, the default's first, if all of them can be read again."""
    compats = [runtime.compat_version for runtime in runtimes]
    for path, compat in zip(runtime_paths(len(compats) - 1), compats, strict=True):
        if compat.schema_version != SCHEMA_VERSION:
            problem = (
                f"its schema version is {quoted(compat.schema_version)}; the file is of {SCHEMA_VERSION}"
            )
            raise InputError(path, problem)
        _require_readable_features(path, compat)
    return [dict(compat.attributes) for compat in compats]


def _runtimes(layout: OfferLayout, sandbox_class: str) -> WorkerRuntimes:
    runtimes = [layout.default_runtime, *layout.restorable_runtimes]
    default, *restorable = (
        SandboxRuntime(sandbox_class, _compat(path, attributes))
        for path, attributes in zip(runtime_paths(len(runtimes) - 1), runtimes, strict=True)
    )
    return WorkerRuntimes(default, tuple(restorable))


def _compat(path: str, attributes: Mapping[str, str]) -> VersionedSandboxCompat:
    try:
        compat = VersionedSandboxCompat.of(attributes)
    except InputError as error:
        # It counts the attributes, which here are members.
        for position, key in enumerate(attributes):
            if error.subject.startswith(f"$.attributes[{position}]."):
                path += key_path(key)
        raise InputError(path, error.problem, error.remedy) from None
    _require_readable_features(path, compat)
    return compat


def _require_readable_features(path: str, compat: VersionedSandboxCompat) -> None:
    mask = None if compat.features is not None else compat.get(CPU_FEATURES)
    if mask is None:
        return
    architecture = compat.get(ARCHITECTURE)
    if architecture is None:
        raise InputError(
            f"{path}.{ARCHITECTURE}", f"missing beside {CPU_FEATURES}", "say whose features they are"
        )
    try:
        decode_cpu_features(mask, parse_architecture(architecture))
    except InputError as error:
        raise InputError(f"{path}.{error.subject}", error.problem, error.remedy) from None


def _require_name(worker: str) -> None:
    if not worker:
        raise InputError("$.worker", "the name is empty")
    if not is_unicode(worker):
        raise InputError("$.worker", f"{quoted(worker)} has half a surrogate pair: it is no Unicode text")


def _within_limit(text: str) -> str:
    if len(text.encode()) > MAX_BYTES:
        raise InputError("$", f"longer than {MAX_BYTES} bytes", "shorten or drop attributes")
    return text
