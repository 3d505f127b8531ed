"""Debian's arm64 kernel and busybox, unpacked into the cache folder; nothing is installed on the host."""

import re
import tempfile
from pathlib import Path
from typing import Final

from proof.build import call

__all__ = ["unpack_arm64"]

_KERNEL: Final = "linux-image-cloud-arm64"


def unpack_arm64(cache: Path) -> Path:
    """Download and unpack the two packages once; the folder has `boot`, `lib/modules` and `bin`.

    apt works on lists of its own, so the host need not know the architecture.
    """
    root = cache / "debian-arm64"
    if root.exists():
        return root
    with tempfile.TemporaryDirectory(dir=cache, prefix="tmp-") as folder:
        here = Path(folder)
        for name in ("state/lists/partial", "cache/archives/partial", "root"):
            (here / name).mkdir(parents=True)
        (here / "state/status").touch()
        options = [
            *("-o", "APT::Architecture=arm64", "-o", "APT::Architectures=arm64"),
            *("-o", f"Dir::State={here}/state", "-o", f"Dir::State::status={here}/state/status"),
            *("-o", f"Dir::Cache={here}/cache", "-o", "APT::Sandbox::User=root"),
        ]
        call(["apt-get", *options, "update"], here)
        about = call(["apt-cache", *options, "show", "--no-all-versions", _KERNEL], here)
        kernel = re.search(r"^Depends: (linux-image-\S+)", about, re.MULTILINE)
        packages = ["busybox-static", kernel[1] if kernel else _KERNEL]
        call(["apt-get", *options, "download", *packages], here)
        for package in here.glob("*.deb"):
            call(["dpkg-deb", "--extract", str(package), "root"], here)
        (here / "root").replace(root)
    return root
