"""Targets of the command line: what it reads, what it prints, and whole commands."""

import io
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Final

from fuzzing.cpu_targets import TARGETS as CPU_TARGETS
from fuzzing.json_targets import TARGETS as JSON_TARGETS
from fuzzing.target import Target, accepted, folder, fresh_file, require, text_of
from substrate_compat.cli import run
from substrate_compat.cli.fleets import feature_sets, offers, read_fleet
from substrate_compat.cli.inputs import (
    Worker,
    is_literal,
    named_path,
    parse_features,
    read_features,
    read_text,
    read_worker,
    read_workers,
)
from substrate_compat.cli.output import say_table
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import InputError, quoted, shortened, visible
from substrate_compat.files import read_at_most, write_whole
from substrate_compat.hosts import named
from substrate_compat.identity import is_unicode
from substrate_compat.runsc import run_listing
from substrate_compat.wording import describe_unchecked, few

__all__ = ["TARGETS"]

_STATUSES: Final = frozenset((0, 1, 2, 3))
_FILES: Final = ("a", "b", "c")
# They would run a program, write a file, reach a database, or probe this host.
_KEPT_AWAY: Final = ("runsc", "html", "output", "db", "demo", "-o")
_MOST_WORDS: Final = 30


def _features(data: bytes) -> None:
    text = text_of(data)
    for architecture in (None, *Architecture):
        found = accepted(parse_features, text, architecture)
        if found is not None and architecture is not None:
            require(found.features.architecture is architecture, "of the architecture that was asked for")


def _argument(data: bytes) -> None:
    text = text_of(data)
    name, path = named_path(text)
    require(text in {path, f"{name}={path}"}, "an argument is its name and its path")
    if is_literal(text):
        accepted(read_features, text, None)


def _quiet_fleet(data: bytes, names: list[str]) -> None:
    path = str(fresh_file(data))
    arguments = [f"{name}={path}" if name else path for name in names]
    for architecture, sandbox_class in ((None, None), (Architecture.AMD64, "gvisor")):
        fleet = accepted(read_fleet, arguments, architecture, sandbox_class)
        if fleet is not None:
            accepted(feature_sets, fleet)
            require(len(offers(fleet)) == len(fleet), "each worker offers something")
    accepted(_read_all, path)
    accepted(read_worker, arguments[0], None)
    require(read_text(path) == data.decode(errors="backslashreplace"), "a file is read as its text")


def _read_all(path: str) -> list[Worker]:
    return [*read_workers(path)]


def _fleet(data: bytes) -> None:
    names, _, content = data.partition(b"\n")
    listed = text_of(names).replace("\0", "").split(",")[:4]
    with redirect_stderr(io.StringIO()) as printed:
        _quiet_fleet(content, listed)
    _check_printed(printed.getvalue())


def _check_printed(text: str) -> None:
    require(all(line.isprintable() for line in text.split("\n")), f"what is printed can be seen: {text!a}")


def _words(text: str) -> list[str]:
    words = [word.replace("/", "_") for word in text.split("\n")[:_MOST_WORDS]]
    words = [word for word in words if not any(part in word for part in _KEPT_AWAY)]
    if words[:1] == ["probe"]:
        words[1:1] = ["--cpuinfo", "a"]
    if words[:1] == ["fleet"]:
        words[1:1] = ["--db", "sqlite://"]
    return words


def _command(data: bytes) -> None:
    head, *files = data.split(b"\0")
    for name, content in zip(_FILES, [*files, b"", b"", b""], strict=False):
        (folder() / name).write_bytes(content)
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(files[-1] if files else b""))
    try:
        with chdir(folder()), redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            status = run(_words(text_of(head)))
    finally:
        sys.stdin = before
    require(status in _STATUSES, f"exit status {status}")
    _check_printed(out.getvalue())
    _check_printed(err.getvalue())


def _messages(data: bytes) -> None:
    text = text_of(data)
    for shown in (quoted(text), visible(text), shortened(text), named([text]), few([text, *text[:9]])):
        require(shown.isprintable(), "what is shown can be seen")
    require(len(quoted(text)) <= 1_000 and len(shortened(text)) <= 200, "what is quoted is short")
    error = InputError(text, quoted(text))
    require(str(error).isprintable(), "a message is one line")
    require(error.subject == text, "the subject is kept")
    require(is_unicode(text) == (text.encode(errors="replace").decode() == text), "halves are found")
    describe_unchecked(text)
    with redirect_stdout(io.StringIO()) as printed:
        say_table([visible(text[:20])], [[text], [text[::-1]]])
    _check_printed(printed.getvalue())


def _files(data: bytes) -> None:
    name, _, content = data.partition(b"\n")
    path = f"{folder()}/{text_of(name).replace('/', '_')[:300]}"
    with suppress(FileNotFoundError):
        accepted(read_at_most, path, len(content))
    written = accepted(write_whole, path, content)
    if written is not None:
        require(read_at_most(path, len(content)) == content, "what is written is read")
        require(not write_whole(path, content), "what is there is not written again")
        Path(path).unlink()


def _no_runsc(data: bytes) -> None:
    path = f"{folder()}/none/{text_of(data).replace('/', '_')}"
    require(accepted(run_listing, path) is None, "there is no such program")


def _known(targets: tuple[Target, ...], *names: str) -> Iterator[bytes]:
    return (seed for target in targets if target.name in names for seed in target.captures())


def _texts() -> Iterator[bytes]:
    yield from _known(CPU_TARGETS, "mask", "listing", "dump")
    yield from _known(JSON_TARGETS, "identity")


def _commands() -> Iterator[bytes]:
    listing, other, *_ = (each for each in _known(CPU_TARGETS, "listing") if b"osxsave" in each)
    dump = next(_known(CPU_TARGETS, "dump"))
    cpuinfo = next(_known(CPU_TARGETS, "cpuinfo"))
    identity, *_, arm64 = _known(JSON_TARGETS, "identity")
    config = next(_known(JSON_TARGETS, "config"))
    lines = b"".join(_known(JSON_TARGETS, "worker"))
    for words, *files in (
        ("check a --workers b", identity, lines),
        ("check a --worker b --json --strict", identity, arm64),
        ("compare a b", listing, identity),
        ("compare a b --json", dump, identity),
        ("encode fpu,pni avx2 --json", b""),
        ("decode --arch amd64 3", b""),
        ("level a b --levels 2 --weight a=3 --weight b=1", listing, other),
        ("level a --add b --json", other, listing),
        ("level verify a --guest b", listing, b"processor:0\nmodel name:unknown\nflags:lm fpu avx2\n"),
        ("matrix a b c --json", listing, dump, identity),
        ("matrix a", lines),
        ("plan a --cpuinfo b --features " + "a" * 64 + "=c", config, cpuinfo, listing),
        ("probe --features b --name x --json", cpuinfo, listing),
        ("probe --cpuid b --profile microvm", cpuinfo, dump),
        ("hash a --json", config),
        ("hash --asset gvisor=" + "a" * 64 + " --pause-image pause@sha256:" + "b" * 64, b""),
        ("table verify --features a --arch amd64", listing),
        ("fleet load --workers a", lines),
        ("fleet load-snapshots a", identity),
        ("fleet candidates a --limit 5", identity),
        ("fleet retire w1 --json", b""),
    ):
        yield b"\0".join([words.replace(" ", "\n").encode(), *files])


TARGETS: Final = (
    Target("features", _features, _texts),
    Target("argument", _argument, lambda: (b"a=b", b"fpu,pni", b"3", b"-", b"a/b.json")),
    Target("fleet", _fleet, lambda: (b"a,b\n" + each for each in _texts())),
    Target("command", _command, _commands),
    Target("messages", _messages, lambda: (b"avx2", b"\x1b[31m\xe2\x80\xae\n", b"\xff\xed\xa0\x80")),
    Target("files", _files, lambda: (b"name\ncontent", b"\n", b"a\0b\nc")),
    Target("no_runsc", _no_runsc, lambda: (b"runsc", b"a\0b", b"\xff")),
)
