"""Files are replaced whole or not at all, whoever kills the writer and whatever the disk does."""

import os
import resource
import secrets
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate_compat.errors import FileError
from substrate_compat.files import read_at_most, write_whole

KILLS = 1_000
SHORT, LONG = b"short\n", b"long\n" * 10_000


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may enter, which those of `tmp_path` are not."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_writes_what_was_not_there(tmp_path: Path) -> None:
    assert write_whole(tmp_path / "file", SHORT)
    assert (tmp_path / "file").read_bytes() == SHORT
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize(("old", "new"), [(SHORT, LONG), (LONG, SHORT), (SHORT, b"other\n"), (SHORT, b"")])
def test_replaces_what_differs(tmp_path: Path, old: bytes, new: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(old)
    inode = file.stat().st_ino
    assert write_whole(file, new)
    assert file.read_bytes() == new
    assert file.stat().st_ino != inode
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("content", [SHORT, LONG, b""])
def test_does_not_touch_what_is_the_same(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    assert write_whole(file, content)
    before = file.stat()
    assert not write_whole(file, content)
    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("content", [SHORT, LONG])
def test_removes_what_a_killed_writer_left(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(SHORT)
    (tmp_path / ".file.tmp").write_bytes(b"lo")
    assert write_whole(file, content) is (content != SHORT)
    assert file.read_bytes() == content
    assert names(tmp_path) == ["file"]


def test_keeps_the_permissions(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(SHORT)
    file.chmod(0o640)
    write_whole(file, LONG)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_keeps_a_symbolic_link_and_replaces_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(SHORT)
    (tmp_path / "link").symlink_to("target")
    assert write_whole(tmp_path / "link", LONG)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == LONG


def test_refuses_what_is_no_regular_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "folder", tmp_path / "pipe"):
        with pytest.raises(FileError, match="not a regular file"):
            write_whole(path, SHORT)
    assert names(tmp_path) == ["folder", "pipe"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("gone/file", "No such file or directory"),
        ("n" * 300, "File name too long"),
        ("a\0b", "embedded null"),
    ],
)
def test_a_path_that_cannot_be_written_is_one_clear_error(tmp_path: Path, name: str, problem: str) -> None:
    with pytest.raises(FileError) as caught:
        write_whole(tmp_path / name, SHORT)
    assert caught.value.subject == str(tmp_path / name)
    assert problem in caught.value.problem
    assert names(tmp_path) == []


def test_a_disk_that_takes_no_more_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(SHORT)
    before = file.stat()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(LONG) // 2, hard))
    try:
        with pytest.raises(FileError, match="cannot be written: File too large"):
            write_whole(file, LONG)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert file.read_bytes() == SHORT
    assert names(tmp_path) == ["file"]


def test_a_read_only_folder_leaves_the_old_file(folder: Path) -> None:
    file = folder / "file"
    file.write_bytes(SHORT)
    folder.chmod(0o555)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(FileError, match="cannot be written: Permission denied"):
            write_whole(file, LONG)
        assert not write_whole(file, SHORT)
    finally:
        os.seteuid(user)
    assert file.read_bytes() == SHORT
    assert names(folder) == ["file"]


def test_reads_one_byte_more_than_asked_at_most(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abcdef")
    assert read_at_most(tmp_path / "file", 6) == b"abcdef"
    assert read_at_most(str(tmp_path / "file"), 3) == b"abcd"


def test_a_file_that_is_not_there_is_told_apart_from_one_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_at_most(tmp_path / "file", 1)
    with pytest.raises(FileError, match="cannot be read: Is a directory"):
        read_at_most(tmp_path, 1)
    with pytest.raises(FileError, match="embedded null"):
        read_at_most("a\0b", 1)


def write_until_killed(file: Path) -> int:
    """Starts a process that writes both contents in turn; its number."""
    child = os.fork()
    if child:
        return child
    try:
        while True:
            write_whole(file, LONG)
            write_whole(file, SHORT)
    finally:
        os._exit(1)


def test_a_writer_killed_at_any_moment_leaves_one_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_whole(file, SHORT)
    found = {SHORT: 0, LONG: 0}
    interrupted = 0
    for _ in range(KILLS):
        child = write_until_killed(file)
        time.sleep(secrets.randbelow(3_000) / 1e6)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found[file.read_bytes()] += 1
        left = set(names(tmp_path)) - {"file"}
        assert left <= {".file.tmp"}
        interrupted += len(left)
    assert all(found.values()), "the kills did not find both files"
    assert interrupted, "no kill found a writer at work"
    write_whole(file, SHORT)
    assert names(tmp_path) == ["file"]


def test_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_whole(file, SHORT)
    children = [write_until_killed(file) for _ in range(3)]
    for _ in range(100):
        assert file.read_bytes() in {SHORT, LONG}
        time.sleep(0.001)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert write_whole(file, b"the last\n")
    assert file.read_bytes() == b"the last\n"
    assert names(tmp_path) == ["file"]


@given(st.lists(st.binary(max_size=64), min_size=1, max_size=4), st.integers(0, 70))
def test_what_was_written_last_is_read(contents: list[bytes], longest: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, before = Path(folder) / "file", None
        for content in contents:
            assert write_whole(path, content) is (content != before)
            before = content
        assert read_at_most(path, longest) == contents[-1][: longest + 1]
        assert [*Path(folder).iterdir()] == [path]
