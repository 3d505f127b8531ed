"""What a proof needs of the host; what is missing is named with the line that installs it."""

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import attrs

from proof.build import call
from proof.jobs import ProofError
from proof.machine import EMULATORS
from substrate_compat.cpufeatures_table import Architecture

__all__ = ["Need", "check", "install", "install_line", "missing", "needs"]

OLDEST_GO: Final = (1, 21)
_GO: Final = "Go 1.26.3 or newer, or any from 1.21 on that may fetch it"


@attrs.frozen
class Need:
    """One thing that must be there.

    Attributes:
        what: Its name for a person.
        package: The Debian package that brings it.
        there: Whether it is there.
    """

    what: str
    package: str
    there: Callable[[], bool]


def needs(architecture: Architecture | None) -> Sequence[Need]:
    """All needs of a campaign for an architecture; of the proof on this host for None."""
    found = [
        Need("busybox, statically linked", "busybox-static", lambda: is_static(Path("/bin/busybox"))),
        Need(_GO, "golang-go", _program("go")),
    ]
    if architecture:
        emulator = EMULATORS[architecture].program
        package = "qemu-system-x86" if architecture is Architecture.AMD64 else "qemu-system-arm"
        found.append(Need(emulator, package, _program(emulator)))
    if architecture is Architecture.AMD64:
        kernels = Path("/boot").glob
        found.append(
            Need(
                "Debian's cloud kernel",
                "linux-image-cloud-amd64",
                lambda: any(kernels("vmlinuz-*-cloud-amd64")),
            )
        )
    if architecture is Architecture.ARM64:
        found.append(
            Need("apt-get and dpkg-deb, to unpack arm64 packages", "apt dpkg", _program("dpkg-deb"))
        )
    return found


def _program(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name) is not None


def is_static(program: Path) -> bool:
    """Whether a 64-bit little-endian ELF file needs no interpreter; False where there is none."""
    if not program.exists():
        return False
    data = program.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        return False
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    interpreter = 3
    return all(
        struct.unpack_from("<I", data, offset + number * size)[0] != interpreter for number in range(count)
    )


def missing(found: Sequence[Need]) -> list[Need]:
    """Those that are not there."""
    return [need for need in found if not need.there()]


def install_line(absent: Sequence[Need]) -> list[str]:
    """The command that installs these."""
    packages = [package for need in absent for package in need.package.split()]
    return ["apt-get", "install", "--yes", "--no-install-recommends", *packages]


def install(architecture: Architecture | None) -> None:
    """Install what is missing; the installer's output goes to the terminal."""
    absent = missing(needs(architecture))
    if absent:
        sudo = [] if os.geteuid() == 0 else ["sudo"]
        for line in (["apt-get", "update", "--quiet"], install_line(absent)):
            if subprocess.run([*sudo, *line], check=False).returncode:
                raise ProofError(f"`{' '.join([*sudo, *line])}` failed")
    check(architecture)


def check(architecture: Architecture | None) -> None:
    """Raise an error that names all that is missing, and the way out."""
    absent = missing(needs(architecture))
    if absent:
        names = "; ".join(need.what for need in absent)
        raise ProofError(
            f"missing: {names}. Run `make proof-setup` (with the same PROOF=), "
            f"which does: {' '.join(install_line(absent))}"
        )
    version = re.search(r"go([0-9]+)\.([0-9]+)", call(["go", "version"], Path.cwd()))
    if version is None or (int(version[1]), int(version[2])) < OLDEST_GO:
        raise ProofError(f"go is too old: {_GO}, from https://go.dev/dl/")
