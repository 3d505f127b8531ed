"""What several verbs read: the workers of a fleet, from files and from lines.

Each argument is `[NAME=]FILE`. A file holds one worker (a runsc listing, a mask, the output of `cpuid -r`,
an identity or a `sandbox-runtimes.json`), or a worker in each line, as JSON with its name.
"""

from collections.abc import Iterable, Iterator

import attrs

from substrate_compat.cli.inputs import (
    Features,
    named_path,
    names_workers,
    parse_features,
    parse_worker,
    parse_workers,
    read_bytes,
)
from substrate_compat.cli.output import note
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import InputError, quoted, shortened
from substrate_compat.identity import GVISOR, WorkerRuntimes
from substrate_compat.matrix import worker_of_features

__all__ = ["Member", "feature_sets", "offers", "read_fleet"]


@attrs.frozen
class Member:
    """A worker of a fleet: what it offers, or only its feature set.

    Attributes:
        name: what a person calls it; no two of a fleet have the same.
        where: the file.
        known: what was read.
    """

    name: str
    where: str
    known: WorkerRuntimes | Features


def read_fleet(
    arguments: Iterable[str], architecture: Architecture | None, sandbox_class: str | None
) -> tuple[Member, ...]:
    """The workers in the files that `arguments` name, in that order.

    Raises:
        FileError: a file cannot be read.
        InputError: one is not understood, or two workers have the same name; the file is named.
    """
    members: dict[str, Member] = {}
    for argument in arguments:
        for member in _members(argument, architecture, sandbox_class):
            if member.name in members:
                raise InputError(
                    member.where,
                    f"the name {quoted(member.name)} is already that of "
                    f"{shortened(members[member.name].where)}",
                    "give each its own: NAME=FILE",
                )
            members[member.name] = member
            for line in member.known.notes if isinstance(member.known, Features) else ():
                note(f"{member.name}: {line}")
    return tuple(members.values())


def feature_sets(fleet: Iterable[Member]) -> dict[str, FeatureSet]:
    """The feature set of each worker, by name: of its default runtime, if it is known with its runtimes.

    Raises:
        InputError: a worker of another class than gvisor, or without readable features.
    """
    found = {}
    for member in fleet:
        if isinstance(member.known, Features):
            found[member.name] = member.known.features
            continue
        runtime = member.known.default_runtime
        if runtime.sandbox_class != GVISOR.sandbox_class:
            raise InputError(
                member.where,
                f"its sandbox class is {quoted(runtime.sandbox_class)}; only gVisor has levels",
            )
        if runtime.compat_version.features is None:
            raise InputError(member.where, "its default runtime has no readable cpu_features")
        found[member.name] = runtime.compat_version.features
    return found


def offers(fleet: Iterable[Member]) -> dict[str, WorkerRuntimes]:
    """What each worker offers, by name; one of which only the features are known is a gVisor worker."""
    return {
        member.name: worker_of_features(member.known.features)
        if isinstance(member.known, Features)
        else member.known
        for member in fleet
    }


def _members(
    argument: str, architecture: Architecture | None, sandbox_class: str | None
) -> Iterator[Member]:
    name, path = named_path(argument)
    data = read_bytes(path)
    if not names_workers(data):
        yield Member(name, path, _one(data, path, architecture, sandbox_class))
        return
    if argument != path:
        raise InputError(path, "each of its lines has a name", f"leave {quoted(name)} out")
    for worker in parse_workers(data, path):
        yield Member(worker.name, path, worker.runtimes)


def _one(
    data: bytes, path: str, architecture: Architecture | None, sandbox_class: str | None
) -> WorkerRuntimes | Features:
    try:
        if data.lstrip().startswith(b"{"):
            return parse_worker(data, path, sandbox_class)
        return parse_features(data.decode(errors="backslashreplace"), architecture)
    except InputError as error:
        subject = error.subject if error.subject == path else f"{path}: {error.subject}"
        raise InputError(subject, error.problem, error.remedy) from None
