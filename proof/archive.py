"""Files to and from a tar archive in memory, and a file that is written whole or not at all."""

import io
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["read_tar", "write_tar", "write_whole"]


def write_tar(files: Mapping[str, bytes]) -> bytes:
    """An archive of programs and files, all executable; equal files in equal order give equal bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o755
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def read_tar(archive: bytes) -> dict[str, bytes]:
    """The files of an archive; what follows its end is ignored."""
    files = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as reader:
        for member in reader:
            content = reader.extractfile(member)
            if content is not None:
                files[member.name.removeprefix("./")] = content.read()
    return files


def write_whole(path: Path, data: bytes, cache: Path) -> None:
    """Write a file by way of a temporary folder in `cache`, on the same disk."""
    with tempfile.TemporaryDirectory(dir=cache, prefix="tmp-") as folder:
        half = Path(folder) / path.name
        half.write_bytes(data)
        half.replace(path)
