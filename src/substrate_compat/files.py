"""Small files that other programs read at any moment: replaced whole or not at all.

A new file is written beside the old one, brought to disk and renamed over it, so that a reader, or a host
after a power failure, finds the one or the other. Writers of one folder take turns by a lock on the folder,
which the kernel lifts when its holder dies. So there is never more than one temporary file, and whoever
writes next removes what a killed writer left.
"""

import fcntl
import os
import stat
from pathlib import Path

from substrate_compat.errors import FileError

__all__ = ["read_at_most", "write_whole"]


def read_at_most(path: str | os.PathLike[str], longest: int) -> bytes:
    """The first `longest` bytes of a file and one more, if it has as many.

    Raises:
        FileNotFoundError: there is no such file.
        FileError: it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(longest + 1)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise _file_error(path, "read", error) from error


def write_whole(path: str | os.PathLike[str], content: bytes) -> bool:
    """Makes `content` the content of a file; False if it already was, and then the file is not touched.

    The file keeps its permissions; a symbolic link stays one, and what it leads to is replaced. The folder
    must be one that can be locked (`flock`), as every local file system's can.

    Raises:
        FileError: it cannot be written. Up to the rename the old file is what it was.
    """
    try:
        target = Path(os.path.realpath(path))
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            return _replace(folder, target.name, content)
        finally:
            os.close(folder)
    except (OSError, ValueError) as error:
        raise _file_error(path, "written", error) from error


def _replace(folder: int, name: str, content: bytes) -> bool:
    temporary = f".{name}.tmp"
    _remove(folder, temporary)
    mode = _mode(folder, name)
    if mode is not None and _holds(folder, name, content):
        return False
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=folder)
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(descriptor, mode)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        _remove(folder, temporary)
    return True


def _holds(folder: int, name: str, content: bytes) -> bool:
    with os.fdopen(os.open(name, os.O_RDONLY, dir_fd=folder), "rb") as file:
        return file.read(len(content) + 1) == content


def _mode(folder: int, name: str) -> int | None:
    """The permission bits of a regular file; None if there is no such name."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise OSError(f"{name} is not a regular file")
    return stat.S_IMODE(mode)


def _remove(folder: int, name: str) -> None:
    if _mode(folder, name) is not None:
        os.unlink(name, dir_fd=folder)


def _file_error(path: str | os.PathLike[str], done: str, error: OSError | ValueError) -> FileError:
    reason = error.strerror if isinstance(error, OSError) else None
    return FileError(os.fspath(path), f"cannot be {done}: {reason or error}")
