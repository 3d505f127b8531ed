"""What the verbs read: files and standard input, made into values.

A person should not have to say what a file holds where its text says it itself. Where it does not, the
verb asks for the option that says it; nothing is guessed.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from substrate_compat.cpufeatures import FeatureSet, decode_cpu_features, known_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuid import Registers, common_features, made_by_32_bit_program, parse_cpuid_dump
from substrate_compat.errors import FileError, InputError, quoted
from substrate_compat.identity import SandboxRuntime, WorkerRuntimes
from substrate_compat.runsc import parse_cpu_features
from substrate_compat.strictjson import parse_json
from substrate_compat.wire import loads_identity, loads_runtimes, loads_worker, make_converter

__all__ = [
    "MOST_WORKERS",
    "STANDARD_INPUT",
    "Features",
    "Worker",
    "architecture_of",
    "features_of_cpus",
    "features_of_dump",
    "is_literal",
    "named_path",
    "names_workers",
    "parse_features",
    "parse_worker",
    "parse_workers",
    "read_bytes",
    "read_features",
    "read_snapshot",
    "read_text",
    "read_worker",
    "read_workers",
]

STANDARD_INPUT: Final = "-"
MOST_WORKERS: Final = 1 << 15
"""The most workers of one JSON Lines file, which are read in about two seconds."""
_MOST_BYTES: Final = 8 << 20
_MASK: Final = re.compile(r"[0-9a-f]+")
_LITERAL: Final = re.compile(r"[0-9A-Za-z_,-]+")


@attrs.frozen
class Features:
    """A feature set and where it came from.

    Attributes:
        features: the set.
        source: what it was read from, in words.
        notes: what a person should know about it.
        identity: the identity that it is part of, if any.
    """

    features: FeatureSet
    source: str
    notes: tuple[str, ...] = ()
    identity: SandboxRuntime | None = None


@attrs.frozen
class Worker:
    """A worker as the verbs know it.

    Attributes:
        name: what a person calls it.
        runtimes: what it offers.
    """

    name: str
    runtimes: WorkerRuntimes


def read_bytes(path: str) -> bytes:
    """The bytes of the file `path`, or of standard input where it is `-`; at most 8 MiB.

    Raises:
        FileError: it cannot be read or is larger.
    """
    try:
        if path == STANDARD_INPUT:
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        strerror = error.strerror if isinstance(error, OSError) else None
        raise FileError(path, strerror or "no system has such a path") from error
    if len(data) > _MOST_BYTES:
        raise FileError(path, f"it has more than {_MOST_BYTES >> 20} MiB")
    return data


def read_text(path: str) -> str:
    r"""The text of the file `path`, or of standard input; a byte that is not UTF-8 becomes `\xNN`.

    Raises:
        FileError: it cannot be read or is larger than 8 MiB.
    """
    return read_bytes(path).decode(errors="backslashreplace")


def named_path(argument: str) -> tuple[str, str]:
    """The name and the path in `[NAME=]FILE`; without a name, the file's own without its ending."""
    name, equals, path = argument.partition("=")
    if equals and name and path:
        return name, path
    return ("standard input" if argument == STANDARD_INPUT else Path(argument).stem), argument


def architecture_of(names: Iterable[str]) -> Architecture:
    """The architecture whose names these are.

    Raises:
        InputError: they are known on both architectures, or on none.
    """
    wanted = set(names)
    known = {
        architecture: len(wanted & {feature.name for feature in known_features(architecture)})
        for architecture in Architecture
    }
    whole = [architecture for architecture, count in known.items() if count == len(wanted)]
    if len(whole) > 1:
        raise InputError(
            "feature names",
            f"{quoted(','.join(sorted(wanted)))} may be of {' or '.join(whole)}",
            "say which with --arch",
        )
    # An unknown name is refused by the architecture that most of the names are of.
    return whole[0] if whole else max(known, key=lambda architecture: known[architecture])


def parse_features(text: str, architecture: Architecture | None) -> Features:
    """The feature set in a runsc listing, a mask, the output of `cpuid -r` or an identity's JSON.

    Args:
        text: the text; its form tells what it is.
        architecture: what `--arch` said; a mask needs it.

    Raises:
        InputError: it is none of these, or of another architecture than was said.
    """
    stripped = text.strip()
    if stripped.startswith("{"):
        found = _features_of_identity(loads_identity(text))
    elif "eax=" in stripped:
        found = features_of_dump(stripped)
    elif _MASK.fullmatch(stripped):
        found = _features_of_mask(stripped, architecture)
    else:
        names = stripped.split(",")
        listed = parse_cpu_features(stripped, architecture or architecture_of(names))
        found = Features(listed, "runsc listing")
    if architecture is not None and found.features.architecture is not architecture:
        raise InputError(
            found.source, f"it is of {found.features.architecture}, not of {architecture} as --arch says"
        )
    return found


def _features_of_identity(identity: SandboxRuntime) -> Features:
    features = identity.compat_version.features
    if features is None:
        raise InputError("identity", "it has no readable cpu_features")
    return Features(features, "identity", identity=identity)


def features_of_dump(text: str, source: str = "CPUID dump") -> Features:
    """The feature set in the output of `cpuid -r`, with what a person should know about it."""
    return features_of_cpus(parse_cpuid_dump(text), source)


def features_of_cpus(cpus: Sequence[Mapping[tuple[int, int], Registers]], source: str) -> Features:
    """The feature set that the CPUs of one machine share, with what a person should know about it."""
    common = common_features(cpus)
    notes = []
    if common.varying:
        notes.append(f"not every CPU has {', '.join(common.varying)}: left out")
    if made_by_32_bit_program(common.features):
        notes.append(
            "it has `lm` without `syscall`: a 32-bit program made it, and runsc will see `syscall` too"
        )
    return Features(common.features, f"{source} ({len(cpus)} CPUs)", tuple(notes))


def _features_of_mask(text: str, architecture: Architecture | None) -> Features:
    if architecture is None:
        raise InputError("mask", f"{quoted(text)} does not say of which architecture", "say it with --arch")
    if any(text == feature.name for feature in known_features(architecture)):
        raise InputError(
            "mask", f"{quoted(text)} is both a mask and a feature's name", f"write the mask as 0{text}"
        )
    return Features(decode_cpu_features(text, architecture), "mask")


def read_features(argument: str, architecture: Architecture | None) -> Features:
    """The feature set in a file, on standard input, or in the argument itself.

    Raises:
        FileError: there is no such file, and the argument is neither a mask nor names.
        InputError: see `parse_features`.
    """
    if is_literal(argument):
        return parse_features(argument, architecture)
    return parse_features(read_text(argument), architecture)


def is_literal(argument: str) -> bool:
    """Whether an argument is itself a mask or a list of names, and not the path of a file."""
    return _LITERAL.fullmatch(argument) is not None and argument != STANDARD_INPUT and not _exists(argument)


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:
        # A list of names is soon longer than a file's name may be.
        return False


def read_snapshot(path: str) -> SandboxRuntime | None:
    """The identity that a snapshot carries; None where the file is empty or says `null`."""
    data = read_bytes(path)
    return None if data.strip() in {b"", b"null"} else loads_identity(data)


def read_worker(argument: str, sandbox_class: str | None) -> Worker:
    """A worker from `[NAME=]FILE`: the JSON of its identity, or its `sandbox-runtimes.json`.

    Raises:
        FileError: it cannot be read.
        InputError: see `parse_worker`.
    """
    name, path = named_path(argument)
    return Worker(name, parse_worker(read_bytes(path), path, sandbox_class))


def read_workers(path: str) -> Iterator[Worker]:
    """The workers of a JSON Lines file; blank lines are skipped.

    Raises:
        FileError: it cannot be read.
        InputError: a line is not understood; the subject names it. Or there are more than 32,768 workers.
    """
    return parse_workers(read_bytes(path), path)


def parse_worker(data: bytes, path: str, sandbox_class: str | None) -> WorkerRuntimes:
    """What a worker offers: the JSON of its identity, or its `sandbox-runtimes.json`.

    Args:
        data: the text.
        path: where it was read.
        sandbox_class: what `--sandbox-class` said; a `sandbox-runtimes.json` needs it.

    Raises:
        InputError: it is neither, or the class was not said.
    """
    if "defaultRuntime" not in _members(data):
        return WorkerRuntimes(loads_identity(data))
    if sandbox_class is None:
        raise InputError(
            path, "a sandbox-runtimes.json does not name its sandbox class", "say it with --sandbox-class"
        )
    return loads_runtimes(data, sandbox_class)


def parse_workers(data: bytes, path: str) -> Iterator[Worker]:
    """The workers of the text of a JSON Lines file, which was read from `path`.

    Raises:
        InputError: a line is not understood, or there are more than 32,768 workers.
    """
    converter = make_converter()
    lines = data.split(b"\n")
    if sum(map(bool, map(bytes.strip, lines))) > MOST_WORKERS:
        raise InputError(path, f"more than {MOST_WORKERS} workers", "split it into several files")
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield Worker(*loads_worker(line, converter))
            except InputError as error:
                subject = f"{path} line {number}: {error.subject}"
                raise InputError(subject, error.problem, error.remedy) from error


def names_workers(data: bytes) -> bool:
    """Whether this is the text of a JSON Lines file: its first line is a worker with its name."""
    return "worker" in _members(data.lstrip().partition(b"\n")[0])


def _members(data: bytes) -> frozenset[str]:
    """The members of a JSON object; of any other text none."""
    try:
        value = parse_json(data)
    except InputError:
        return frozenset()
    return frozenset(value) if isinstance(value, dict) else frozenset()
