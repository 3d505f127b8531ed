"""The proof program's parts that ask a machine and read its answer; a script stands where QEMU does."""

import asyncio
import json
import struct
import textwrap
from pathlib import Path

import pytest

from proof.archive import read_tar, write_tar
from proof.build import Guest, cpio
from proof.campaign import Laboratory
from proof.jobs import Checkpoint, Job, Outcome, ProofError, pack, unpack
from proof.machine import Emulator, Machines
from proof.needs import Need, install_line, is_static, missing
from substrate_compat.cpufeatures_table import Architecture

DRAWN = "00000000-0000-4000-8000-000000000000"
ANOTHER = "11111111-0000-4000-8000-000000000000"


# What a machine is asked and what it answers.


def _answer(**left: str) -> dict[str, bytes]:
    files = {
        "runsc": "runsc version v1\n",
        "kernel": "6.1\n",
        "features": "fpu\n",
        "cpuinfo": "processor: 0\n",
    }
    defaults = {"started": "0\n", "output": "", "stderr": ""}
    job = {f"job0/{name}": text for name, text in {**defaults, **left}.items()}
    return {name: text.encode() for name, text in {**files, **job}.items()}


def _counts(token: str, *numbers: int) -> str:
    return "".join(f"count {token} {number}\n" for number in numbers)


BEFORE = Checkpoint((("checkpoint.img", b"\0\1"),), DRAWN, 7)


@pytest.mark.parametrize(
    ("job", "left", "outcome"),
    [
        (Job("restore", BEFORE), {"output": "\0\0" + _counts(DRAWN, 8, 9, 10)}, Outcome(True)),
        (
            Job("restore", BEFORE),
            {
                "started": "128\n",
                "stderr": "restoring: incompatible FeatureSet: missing features: map[avx2:{} aes:{}]\n",
            },
            Outcome(False, ("aes", "avx2")),
        ),
        (
            Job("restore", BEFORE),
            {"started": "124\n", "stderr": "first\nlast\n"},
            Outcome(False, error="exit status 124: last"),
        ),
        (
            Job("restore", BEFORE),
            {"output": _counts(DRAWN, 1, 2, 3)},
            Outcome(False, error=f"after {DRAWN} 7 the container went on with {DRAWN} 1"),
        ),
        (
            Job("restore", BEFORE),
            {"output": _counts(ANOTHER, 8, 9)},
            Outcome(False, error=f"after {DRAWN} 7 the container went on with {ANOTHER} 8"),
        ),
        (
            Job("restore", BEFORE),
            {"output": _counts(DRAWN, 8)},
            Outcome(False, error="the container printed 1 numbers in 30 s"),
        ),
        (
            Job("take"),
            {"output": "flags: fpu\n" + _counts(DRAWN, 1, 2, 3), "checkpointed": "0", "image/a": "x"},
            Outcome(True, cpuinfo="flags: fpu\n", checkpoint=Checkpoint((("a", b"x"),), DRAWN, 3)),
        ),
        (
            Job("take"),
            {"output": _counts(DRAWN, 1, 2, 3), "checkpointed": "1", "stderr": "no room\n"},
            Outcome(False, error="checkpoint: exit status 1: no room"),
        ),
        (
            Job("take"),
            {"output": _counts(DRAWN, 1, 2, 3)},
            Outcome(False, error="checkpoint: exit status ?: "),
        ),
    ],
    ids=[
        "went on", "refused", "timed out", "started anew", "other token", "stood still",
        "taken", "not checkpointed", "never checkpointed",
    ],
)  # fmt: skip
def test_outcome_of_a_job(job: Job, left: dict[str, str], outcome: Outcome) -> None:
    answer = unpack(_answer(**left), {"a job": job})
    assert answer.outcomes == {"a job": outcome}
    assert (answer.runsc, answer.kernel, answer.features) == ("v1", "6.1", "fpu")


def test_answer_without_a_file_names_it() -> None:
    files = _answer()
    del files["features"]
    with pytest.raises(ProofError, match="wrote no 'features'"):
        unpack(files, {"a job": Job("restore", BEFORE)})


def test_jobs_go_in_with_their_checkpoints_and_annotations() -> None:
    jobs = {"take max": Job("take", annotation="avx,fpu"), "restore max,-avx2": Job("retake", BEFORE)}
    files = read_tar(write_tar(pack(jobs, b"busybox")))
    assert files["jobs"] == b"take job0 take max\nretake job1 restore max,-avx2\n"
    assert json.loads(files["config/job0.json"])["annotations"] == {
        "dev.gvisor.internal.cpufeatures": "avx,fpu"
    }
    assert json.loads(files["config/job1.json"])["annotations"] == {}
    assert files["snapshots/job1/checkpoint.img"] == b"\0\1"
    assert files["rootfs/bin/sh"] == b"busybox"


def test_initramfs_holds_what_was_put_in() -> None:
    data = cpio({"init": b"#!", "bin/runsc": b"12345"})
    found = {}
    while data:
        size, length = int(data[54:62], 16), int(data[94:102], 16)
        name = data[110 : 110 + length - 1].decode()
        start = (110 + length + 3) // 4 * 4
        found[name] = (int(data[14:22], 16), data[start : start + size])
        data = data[start + (size + 3) // 4 * 4 :]
    assert found["init"] == (0o100755, b"#!")
    assert found["bin/runsc"] == (0o100755, b"12345")
    assert found["proc"] == (0o040755, b"")
    assert list(found)[-1] == "TRAILER!!!"


# What must be there.


def test_missing_needs_are_in_one_line() -> None:
    found = [
        Need("a", "package-a", lambda: False),
        Need("b", "package-b", lambda: True),
        Need("c", "package-c package-d", lambda: False),
    ]
    assert [need.what for need in missing(found)] == ["a", "c"]
    assert install_line(missing(found))[-3:] == ["package-a", "package-c", "package-d"]


@pytest.mark.parametrize(("kind", "static"), [(1, True), (3, False)], ids=["static", "dynamic"])
def test_static_program(tmp_path: Path, kind: int, static: bool) -> None:
    head = b"\x7fELF\x02\x01" + bytes(26) + struct.pack("<Q", 64) + bytes(14) + struct.pack("<HH", 56, 2)
    segments = struct.pack("<I", 1) + bytes(52) + struct.pack("<I", kind) + bytes(52)
    (tmp_path / "program").write_bytes(head.ljust(64, b"\0") + segments)
    assert is_static(tmp_path / "program") is static


def test_script_and_absent_program_are_not_static(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    assert not is_static(tmp_path / "script")
    assert not is_static(tmp_path / "absent")


# Machines: here a program of our own stands where QEMU does.


def _machines(folder: Path, program: str, boot_seconds: float = 60, silent_seconds: float = 60) -> Machines:
    """Machines of a program that gets QEMU's arguments."""
    for name in ("cache", "answers"):
        (folder / name).mkdir()
    emulator = folder / "emulator"
    emulator.write_text("#!/bin/sh\n" + textwrap.dedent(program))
    emulator.chmod(0o755)
    (folder / "busybox").write_bytes(b"busybox")
    guest = Guest(
        Architecture.AMD64, folder / "kernel", folder / "initramfs", folder / "busybox", "d", "e", "f"
    )
    return Machines(
        Emulator(str(emulator), "board", "tty", boot_seconds, silent_seconds), guest, folder / "cache"
    )


def _run(machines: Machines) -> tuple[bytes, float]:
    return asyncio.run(machines.run("model", b"jobs", lambda _: None))


@pytest.mark.parametrize(
    ("program", "limits", "words"),
    [
        (
            "echo $$ >$0.pid; exec sleep 1000",
            (3, 60),
            "it hung: 'boot' took more than 3 s; it printed nothing",
        ),
        (
            "echo $$ >$0.pid; echo 'proof: up'; echo 'proof: take max'; exec sleep 1000",
            (60, 1),
            "it hung: 'take max' took more than 1 s; last line: 'proof: take max'",
        ),
        (
            "echo $$ >$0.pid; echo 'Kernel panic' >&2; exit 1",
            (60, 60),
            "it stopped before its results were written; last line: 'Kernel panic'",
        ),
    ],
    ids=["boot", "job", "panic"],
)
def test_machine_that_hangs_or_fails_leaves_nothing(
    tmp_path: Path, program: str, limits: tuple[float, float], words: str
) -> None:
    machines = _machines(tmp_path, program, *limits)
    with pytest.raises(ProofError) as raised:
        _run(machines)
    assert str(raised.value) == words
    assert not list(machines.cache.iterdir())
    assert not Path(f"/proc/{(tmp_path / 'emulator.pid').read_text().strip()}").exists()


def test_interrupted_machine_leaves_nothing(tmp_path: Path) -> None:
    machines = _machines(tmp_path, "echo $$ >$0.pid; echo 'proof: up'; exec sleep 1000")

    async def interrupted() -> None:
        up = asyncio.Event()
        task = asyncio.create_task(machines.run("model", b"jobs", lambda _: up.set()))
        await up.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert not list(machines.cache.iterdir())
    assert not Path(f"/proc/{(tmp_path / 'emulator.pid').read_text().strip()}").exists()


class _Quiet:
    """A watcher that remembers what was not run."""

    def __init__(self) -> None:
        self.failed: dict[str, str] = {}

    def phase(self, title: str, machines: int) -> None:
        pass

    def step(self, model: str, step: str) -> None:
        pass

    def ended(self, model: str, reason: str) -> None:
        if reason:
            self.failed[model] = reason


def test_campaign_goes_on_from_what_it_had(tmp_path: Path) -> None:
    answer = _answer(output=_counts(DRAWN, 1, 2, 3), checkpointed="0", **{"image/a": "x"})
    (tmp_path / "answer.tar").write_bytes(write_tar(answer))
    machines = _machines(
        tmp_path,
        """
        cd "${0%/*}"
        for argument; do
            case $previous in -cpu) model=$argument ;; esac
            case $argument in *id=outbox,*) outbox=${argument##*file=} ;; esac
            previous=$argument
        done
        echo "$model" >>starts
        [ "$model" = good ] || [ -e repaired ] || exit 1
        cp answer.tar "$outbox"
        echo "proof: written"
        """,
    )
    jobs = {model: {f"take {model}": Job("take")} for model in ("good", "bad")}

    def phase() -> tuple[set[str], dict[str, str]]:
        watcher = _Quiet()
        laboratory = Laboratory(machines, "1.0", tmp_path / "answers", watcher, asyncio.Semaphore(2))
        answers = asyncio.run(laboratory.phase("snapshots", jobs))
        assert laboratory.not_run == watcher.failed
        return set(answers), laboratory.not_run

    assert phase() == ({"good"}, {"bad": "it stopped before its results were written; it printed nothing"})
    (tmp_path / "repaired").touch()
    assert phase() == ({"good", "bad"}, {})
    assert phase() == ({"good", "bad"}, {})
    assert sorted((tmp_path / "starts").read_text().split()) == ["bad", "bad", "good"]
    assert not list(machines.cache.iterdir())
