"""What a machine is asked to do, and what it answered: the files that go in, and those that come out.

A container counts, about ten times a second, under a token that it drew when it started. A restored one is
*alive* if it goes on: the same token, and the number after the last one before the checkpoint.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import attrs

__all__ = ["Checkpoint", "Job", "MachineAnswer", "Outcome", "ProofError", "pack", "unpack"]

ANNOTATION: Final = "dev.gvisor.internal.cpufeatures"
_COUNT: Final = re.compile(r"count ([0-9a-f-]{36}) ([0-9]+)")
_MISSING: Final = re.compile(r"incompatible FeatureSet: missing features: map\[([^\]]*)\]")
_COUNTER: Final = """\
cat /proc/cpuinfo
read token </proc/sys/kernel/random/uuid
i=0
while :; do
    i=$((i + 1))
    echo "count $token $i"
    sleep 0.1
done
"""


class ProofError(Exception):
    """A step of the proof could not be done; the text is for the person who runs it."""


@attrs.frozen
class Checkpoint:
    """A snapshot that runsc wrote, and the last line that the container had printed.

    Attributes:
        files: Names and contents of the image.
        token: What the container drew at its start.
        count: The last number before the checkpoint.
    """

    files: tuple[tuple[str, bytes], ...] = attrs.field(repr=False)
    token: str
    count: int


@attrs.frozen
class Job:
    """One thing to do with runsc.

    Attributes:
        action: Start and checkpoint; restore; restore and checkpoint again.
        checkpoint: What to restore.
        annotation: The CPU features that the sandbox may show, if not all.
    """

    action: Literal["take", "restore", "retake"]
    checkpoint: Checkpoint | None = None
    annotation: str | None = None


@attrs.frozen
class Outcome:
    """What became of a job.

    Attributes:
        alive: The container started, or went on where the checkpoint left it.
        missing: The CPU features for which gVisor refused a restore, sorted.
        error: The last words of runsc where something else went wrong.
        cpuinfo: `/proc/cpuinfo` as the container saw it when it was started cold.
        checkpoint: What was taken.
    """

    alive: bool
    missing: tuple[str, ...] = ()
    error: str = ""
    cpuinfo: str = ""
    checkpoint: Checkpoint | None = None


@attrs.frozen
class MachineAnswer:
    """All that a machine said of itself, and the outcome of each job by its label."""

    runsc: str
    kernel: str
    features: str
    cpuinfo: str
    outcomes: dict[str, Outcome]


def pack(jobs: Mapping[str, Job], busybox: bytes) -> dict[str, bytes]:
    """The files that `guest/jobs.sh` works on."""
    files = {
        "jobs": "".join(f"{job.action} {name} {label}\n" for name, label, job in _named(jobs)).encode()
    }
    for applet in ("cat", "sh", "sleep"):
        files[f"rootfs/bin/{applet}"] = busybox
    for name, _, job in _named(jobs):
        files[f"config/{name}.json"] = _config(job.annotation).encode()
        if job.checkpoint:
            for file, data in job.checkpoint.files:
                files[f"snapshots/{name}/{file}"] = data
    return files


def _named(jobs: Mapping[str, Job]) -> Iterator[tuple[str, str, Job]]:
    """The name that a job has on the machine, its label, and the job."""
    for number, (label, job) in enumerate(jobs.items()):
        yield f"job{number}", label, job


def _config(annotation: str | None) -> str:
    """An OCI runtime configuration: a read-only root, no network, and the counter."""
    namespaces = [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]
    return json.dumps(
        {
            "ociVersion": "1.0.0",
            "process": {
                "user": {"uid": 0, "gid": 0},
                "args": ["/bin/sh", "-c", _COUNTER],
                "env": ["PATH=/bin"],
                "cwd": "/",
            },
            "root": {"path": "rootfs", "readonly": True},
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
            "linux": {"namespaces": namespaces},
            "annotations": {} if annotation is None else {ANNOTATION: annotation},
        }
    )


def unpack(files: Mapping[str, bytes], jobs: Mapping[str, Job]) -> MachineAnswer:
    """Read the results of `jobs`.

    Raises:
        ProofError: Something that every machine writes is not there.
    """

    def text(name: str) -> str:
        if name not in files:
            raise ProofError(f"the machine wrote no {name!r}")
        return files[name].decode("utf-8", "replace").replace("\0", "")

    outcomes = {}
    for name, label, job in _named(jobs):
        taken = tuple(
            (path.rpartition("/")[2], data)
            for path, data in sorted(files.items())
            if path.startswith(f"{name}/image/")
        )
        saved = text(f"{name}/checkpointed").strip() if f"{name}/checkpointed" in files else ""
        started, output, stderr = (text(f"{name}/{file}") for file in ("started", "output", "stderr"))
        outcomes[label] = _outcome(job, _Left(started.strip(), saved, output, stderr, taken))
    return MachineAnswer(
        runsc=text("runsc").split("\n")[0].removeprefix("runsc version "),
        kernel=text("kernel").strip(),
        features=text("features").strip(),
        cpuinfo=text("cpuinfo"),
        outcomes=outcomes,
    )


@attrs.frozen
class _Left:
    """What a job left on the machine; the exit statuses are texts, empty where a step was not reached."""

    started: str
    checkpointed: str
    output: str
    stderr: str
    image: tuple[tuple[str, bytes], ...]


def _outcome(job: Job, left: _Left) -> Outcome:
    said = left.stderr.strip().split("\n")[-1]
    if left.started != "0":
        refused = _MISSING.search(left.stderr)
        if refused:
            return Outcome(False, tuple(sorted(re.findall(r"(\S+?):\{\}", refused[1]))))
        return Outcome(False, error=f"exit status {left.started}: {said}")
    counts = [(found[1], int(found[2])) for found in _COUNT.finditer(left.output)]
    error = _broken(counts, job.checkpoint)
    if error:
        return Outcome(False, error=error)
    if job.action == "restore":
        return Outcome(True)
    if left.checkpointed != "0" or not left.image:
        return Outcome(False, error=f"checkpoint: exit status {left.checkpointed or '?'}: {said}")
    taken = Checkpoint(left.image, *counts[-1])
    return Outcome(True, cpuinfo=left.output.partition("count ")[0], checkpoint=taken)


def _broken(counts: Sequence[tuple[str, int]], before: Checkpoint | None) -> str:
    """Why these lines are not those of a counter that goes on; empty if they are."""
    if len(counts) < 2:
        return f"the container printed {len(counts)} numbers in 30 s"
    token, last = (before.token, before.count) if before else (counts[0][0], 0)
    expected = [(token, last + step) for step in range(1, len(counts) + 1)]
    if list(counts) != expected:
        return f"after {token} {last} the container went on with {counts[0][0]} {counts[0][1]}"
    return ""
