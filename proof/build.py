"""runsc from the Go module, and the initramfs of the machines; both are kept in the cache folder."""

import hashlib
import lzma
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from proof.archive import write_whole
from proof.jobs import ProofError
from substrate_compat.cpufeatures_table import Architecture

__all__ = ["GUEST", "RUNSC_VERSION", "Guest", "build_guest", "build_runsc", "call", "cpio", "sha256"]

RUNSC_VERSION: Final = "v0.0.0-20260905035102-160fafc42237"
_MODULE: Final = "gvisor.dev/gvisor"
GUEST: Final = Path(__file__).parent / "guest"
_MODULES: Final = (
    "virtio/virtio_ring",
    "virtio/virtio",
    "virtio/virtio_pci_legacy_dev",
    "virtio/virtio_pci_modern_dev",
    "virtio/virtio_pci",
    "block/virtio_blk",
)


@attrs.frozen
class Guest:
    """What an emulated machine boots.

    Attributes:
        architecture: Of the kernel and the programs.
        kernel: The kernel image.
        initramfs: busybox, runsc, the kernel's modules and the two scripts.
        busybox: A statically linked busybox, also the container's root.
        digest: SHA-256 over the kernel and the initramfs, in hex.
        runsc_digest: SHA-256 of runsc, in hex.
        busybox_digest: SHA-256 of busybox, in hex.
    """

    architecture: Architecture
    kernel: Path
    initramfs: Path
    busybox: Path
    digest: str
    runsc_digest: str
    busybox_digest: str


def build_runsc(cache: Path, architecture: Architecture) -> Path:
    """Build runsc once: about two minutes and 83 MB; it is linked statically.

    A dynamically linked runsc cannot start its own helpers inside its chroot.
    """
    runsc = cache / f"runsc-{RUNSC_VERSION}-{architecture.value}"
    if runsc.exists():
        return runsc
    environment = dict(os.environ, CGO_ENABLED="0", GOARCH=architecture.value, GOTOOLCHAIN="auto")
    with tempfile.TemporaryDirectory(dir=cache, prefix="tmp-") as folder:
        here = Path(folder)
        version = f"-X {_MODULE}/runsc/version.version={RUNSC_VERSION}"
        run = (
            ["go", "mod", "init", "proof"],
            ["go", "get", f"{_MODULE}/runsc@{RUNSC_VERSION}"],
            ["go", "build", "-ldflags", f"-s -w {version}", "-o", "runsc", f"{_MODULE}/runsc"],
        )
        for command in run:
            call(command, here, environment)
        (here / "runsc").replace(runsc)
    return runsc


def call(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program to its end; its output, or an error with its last words."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        words = done.stderr.strip().split("\n")[-3:]
        raise ProofError(f"`{' '.join(command)}` failed: {' '.join(words)}")
    return done.stdout


def build_guest(cache: Path, root: Path, architecture: Architecture, runsc: Path) -> Guest:
    """Make the initramfs from the kernel and the busybox under `root` and from `runsc`."""
    kernel, modules = find_kernel(root, architecture)
    busybox = root / "bin/busybox"
    files = {
        "init": GUEST / "init.sh",
        "jobs.sh": GUEST / "jobs.sh",
        "bin/busybox": busybox,
        "bin/runsc": runsc,
    }
    for module in _MODULES:
        source = modules / f"kernel/drivers/{module}.ko"
        files[f"modules/{source.name}"] = source
    contents = {name: _read(path) for name, path in files.items()}
    data = cpio(contents)
    digest = hashlib.sha256(kernel.read_bytes() + data).hexdigest()
    initramfs = cache / f"guest-{architecture.value}-{digest[:16]}.cpio"
    if not initramfs.exists():
        for old in cache.glob(f"guest-{architecture.value}-*.cpio"):
            old.unlink()
        write_whole(initramfs, data, cache)
    return Guest(architecture, kernel, initramfs, busybox, digest, sha256(runsc), sha256(busybox))


def sha256(path: Path) -> str:
    """The digest of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def find_kernel(root: Path, architecture: Architecture) -> tuple[Path, Path]:
    """The newest cloud kernel under `root`, and the folder of its modules."""
    found = list((root / "boot").glob(f"vmlinuz-*-cloud-{architecture.value}"))
    if not found:
        raise ProofError(f"no cloud kernel for {architecture.value} in {root / 'boot'}")
    kernel = max(found, key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)])
    return kernel, root / "lib/modules" / kernel.name.removeprefix("vmlinuz-")


def _read(path: Path) -> bytes:
    """A file, or the one that Debian keeps compressed beside it."""
    packed = path.with_name(path.name + ".xz")
    if not path.exists() and packed.exists():
        return lzma.decompress(packed.read_bytes())
    return path.read_bytes()


def cpio(files: Mapping[str, bytes]) -> bytes:
    """An initramfs in the kernel's "newc" form with these programs, and the empty mount points."""
    entries = [(name, 0o040755, b"") for name in ("bin", "dev", "modules", "proc", "root")]
    entries += [(name, 0o040755, b"") for name in ("run", "sys", "tmp")]
    entries += [(name, 0o100755, data) for name, data in files.items()]
    entries.append(("TRAILER!!!", 0, b""))
    return b"".join(part for entry in entries for part in _entry(*entry))


def _entry(name: str, mode: int, data: bytes) -> Iterable[bytes]:
    path = name.encode() + b"\0"
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + path
    yield head + b"\0" * (-len(head) % 4)
    yield data + b"\0" * (-len(data) % 4)
