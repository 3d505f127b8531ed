"""One emulated machine: boot it, give it jobs, take its results, and leave nothing behind."""

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Self

import attrs

from proof.build import Guest
from proof.jobs import ProofError
from substrate_compat.cpufeatures_table import Architecture

__all__ = ["EMULATORS", "Emulator", "Machines"]

_RESULTS_DISK: Final = 32 << 20


@attrs.frozen
class Emulator:
    """How QEMU emulates a machine of an architecture, by software alone (TCG).

    Attributes:
        program: The QEMU program.
        board: `-machine`.
        console: The kernel's serial console.
        boot_seconds: How long a machine may take until it asks for jobs.
        silent_seconds: How long one job may take.
    """

    program: str
    board: str
    console: str
    boot_seconds: float
    silent_seconds: float

    def patient(self, times: float) -> Self:
        """The same with longer time limits."""
        boot, silent = self.boot_seconds * times, self.silent_seconds * times
        return attrs.evolve(self, boot_seconds=boot, silent_seconds=silent)


EMULATORS: Final = {
    Architecture.AMD64: Emulator("qemu-system-x86_64", "q35", "ttyS0", 180, 300),
    Architecture.ARM64: Emulator("qemu-system-aarch64", "virt", "ttyAMA0", 300, 600),
}


@attrs.frozen
class Machines:
    """The machines that an emulator makes.

    Attributes:
        emulator: How.
        guest: What they boot.
        cache: Where the temporary folder of each is.
    """

    emulator: Emulator
    guest: Guest
    cache: Path

    async def run(self, model: str, jobs: bytes, progress: Callable[[str], None]) -> tuple[bytes, float]:
        """Boot one machine of a CPU model with an archive of jobs.

        Returns:
            The archive of results, and the seconds that the machine ran.

        Raises:
            ProofError: It did not boot, hung or failed; the others may go on. With the reason in words.
        """
        with tempfile.TemporaryDirectory(dir=self.cache, prefix="tmp-") as folder:
            inbox, outbox = Path(folder) / "jobs.tar", Path(folder) / "results.tar"
            inbox.write_bytes(jobs)
            with outbox.open("wb") as disk:
                # Not sparse: a full disk shows here, and not as a write that fails inside the machine.
                os.posix_fallocate(disk.fileno(), 0, _RESULTS_DISK)
            started = time.monotonic()
            async with _process(self._command(model, inbox, outbox)) as qemu:
                lines = await _watch(qemu, self.emulator, progress)
            if "proof: written" not in lines:
                raise ProofError(f"it stopped before its results were written; {_last_words(lines)}")
            return outbox.read_bytes(), time.monotonic() - started

    def _command(self, model: str, inbox: Path, outbox: Path) -> Sequence[str]:
        # A write error is reported to the machine: by default QEMU would pause it, which looks like a hang.
        drive = "if=none,format=raw,cache=unsafe,werror=report"
        return (
            *("setpriv", "--pdeathsig", "KILL"),
            self.emulator.program,
            *("-machine", self.emulator.board, "-accel", "tcg", "-cpu", model, "-m", "1024"),
            *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"),
            *("-kernel", str(self.guest.kernel), "-initrd", str(self.guest.initramfs)),
            *("-append", f"console={self.emulator.console} panic=-1 quiet"),
            *("-drive", f"{drive},id=inbox,readonly=on,file={inbox}"),
            *("-drive", f"{drive},id=outbox,file={outbox}"),
            *("-device", "virtio-blk-pci,drive=inbox", "-device", "virtio-blk-pci,drive=outbox"),
        )


@asynccontextmanager
async def _process(command: Sequence[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program that does not outlive the block, however that is left."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                # Not process.kill(), which may reap the process before asyncio does.
                os.kill(process.pid, signal.SIGKILL)
        await process.wait()


async def _watch(
    qemu: asyncio.subprocess.Process, emulator: Emulator, progress: Callable[[str], None]
) -> Sequence[str]:
    """Read the console to its end; each step has its time limit."""
    if qemu.stdout is None:
        raise TypeError("the process has no pipe")
    lines: list[str] = []
    step, limit = "boot", emulator.boot_seconds
    deadline = time.monotonic() + limit
    while True:
        try:
            raw = await asyncio.wait_for(qemu.stdout.readline(), deadline - time.monotonic())
        except TimeoutError:
            raise ProofError(
                f"it hung: {step!r} took more than {limit:.0f} s; {_last_words(lines)}"
            ) from None
        if not raw:
            return lines
        lines.append(raw.decode("utf-8", "replace").strip())
        if lines[-1].startswith("proof: "):
            step, limit = lines[-1].removeprefix("proof: "), emulator.silent_seconds
            deadline = time.monotonic() + limit
            progress(step)


def _last_words(lines: Sequence[str]) -> str:
    said = [line for line in lines if line and "doesn't support requested feature" not in line]
    return f"last line: {said[-1]!r}" if said else "it printed nothing"
