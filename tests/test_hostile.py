"""What anybody may hand to the library: each bad input with the error that it gives, and huge ones.

A message helps a person at a terminal. So it has no control characters, whatever the input has, and repeats
little of it.
"""

import io
import json
import os
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import MetaData

from fuzzing.target import fresh_file
from strategies import LONGEST_KEY
from substrate_compat.cli import run
from substrate_compat.cli.configs import read_config
from substrate_compat.cli.inputs import (
    is_literal,
    named_path,
    names_workers,
    parse_features,
    parse_worker,
    parse_workers,
)
from substrate_compat.cpufeatures import (
    FeatureSet,
    decode_cpu_features,
    encode_cpu_features,
    known_features,
    parse_architecture,
)
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuid import common_features, features_from_cpuid, parse_cpuid_dump
from substrate_compat.cpuinfo import parse_cpuinfo, read_cpuinfo
from substrate_compat.errors import CompatError, ConfigError, FileError, HostError, InputError, quoted
from substrate_compat.files import read_at_most, write_whole
from substrate_compat.identity import GVISOR, SandboxRuntime, VersionedSandboxCompat, WorkerRuntimes
from substrate_compat.levels import annotation, choose_levels, common_level
from substrate_compat.plan import plan_worker_runtimes
from substrate_compat.probe import probe
from substrate_compat.registration import Backoff
from substrate_compat.rows import runtime_from_rows, runtime_row, snapshot_row, worker_rows
from substrate_compat.runsc import parse_cpu_features, run_cpu_features, run_listing, unknown_names
from substrate_compat.runtime_hash import asset_digest, image_digest, sandbox_runtime_hash
from substrate_compat.sandbox_config import Asset, SandboxConfig, SandboxVersion
from substrate_compat.strictjson import parse_json
from substrate_compat.tables import FleetTables, candidates
from substrate_compat.wire import (
    dumps_runtimes,
    dumps_worker,
    loads_config,
    loads_identity,
    loads_runtimes,
    loads_worker,
    read_runtimes,
)

AMD64: Final = Architecture.AMD64
ARM64: Final = Architecture.ARM64
ESC: Final = "\x1b[31m"
LONG: Final = "q" * 100_000
DIGEST: Final = "sha256:" + "a" * 64
PINNED: Final = "pause@" + DIGEST
MOST_REPEATED: Final = 200

Read = Callable[[str], object]
Json = str | float | bool | None | list["Json"] | dict[str, "Json"]


def compat(text: str) -> VersionedSandboxCompat:
    return VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": text})


def identity(text: str = "1") -> SandboxRuntime:
    return SandboxRuntime("gvisor", compat(text))


def basis(*more: str) -> FeatureSet:
    names = ["cmov", "cx8", "fpu", "fxsr", "lm", "mmx", "osxsave", "sse", "sse2", "tsc", "xsave"]
    return FeatureSet.from_names(AMD64, [*names, *more])


def identity_json(**changes: Json) -> str:
    whole: dict[str, Json] = {
        "sandboxClass": "gvisor",
        "name": "",
        "compatVersion": {"schemaVersion": "v1", "attributes": [{"key": "a", "value": "b"}]},
    }
    return json.dumps({**whole, **changes})


def config_json(**changes: Json) -> str:
    spec: dict[str, Json] = {"sandboxClass": "gvisor", "pauseImage": PINNED, "assets": {}}
    return json.dumps({"metadata": {"name": "pool"}, "spec": {**spec, **changes}})


def config(versions: tuple[SandboxVersion, ...], default: str) -> SandboxConfig:
    return SandboxConfig("pool", "gvisor", default, versions)


CPU: Final = parse_cpuinfo("processor : 0\nflags : fpu lm\n")
FLEET: Final = FleetTables.on(MetaData())
LEAF: Final = "0x00000001 0x00: eax=0x00000000 ebx=0x00000000 ecx=0x00000001 edx=0x00000001\n"


def on_amd64(read: Callable[[str, Architecture], object]) -> Read:
    return lambda text: read(text, AMD64)


def runtimes(text: str) -> object:
    return loads_runtimes(text, "gvisor")


def from_row(text: str) -> object:
    return runtime_from_rows({**runtime_row(identity()), "f1": text}, {})


def plan(default: str) -> object:
    version = SandboxVersion("v1", True, PINNED, (Asset(AMD64, "gvisor", "https://b.example", "a" * 64),))
    return plan_worker_runtimes(config((version,), default), CPU, {})


def level(name: str) -> object:
    return common_level({name: FeatureSet.from_names(AMD64, ["fpu"])})


MASK, ENCODE = on_amd64(decode_cpu_features), on_amd64(lambda text, of: encode_cpu_features([text], of))
LISTING: Final = on_amd64(parse_cpu_features)


def unknown(text: str) -> object:
    return unknown_names(text.split(","), AMD64)


def hashed_asset(name: str) -> object:
    return sandbox_runtime_hash({name: "a" * 64}, PINNED)


def keyed(key: str) -> object:
    return VersionedSandboxCompat.of({key: "b"})


ROWS: Final[tuple[tuple[str, Read, str, type[CompatError], str], ...]] = (
    ("mask: empty", MASK, "", InputError, "the mask is empty"),
    ("mask: upper case", MASK, "1F", InputError, "'1F' is not a mask"),
    ("mask: prefix", MASK, "0x1f", InputError, "without prefix"),
    ("mask: newline", MASK, "1f\n", InputError, r"'1f\n' is not a mask"),
    ("mask: Arabic digit", MASK, "\u0661", InputError, r"'\u0661' is not a mask"),
    ("mask: long", MASK, LONG, InputError, "100000 digits are too many: a mask has at most 96"),
    ("mask: a bit without name", MASK, f"{1 << 85:x}", InputError, "upgrade this reader first"),
    ("mask: escape code", MASK, ESC, InputError, r"'\x1b[31m' is not a mask"),
    ("name: misspelt", ENCODE, "AVX2", InputError, "did you mean 'avx2'?"),
    ("name: a psABI level", ENCODE, "x86-64-v2", InputError, "name its features: cx16"),
    ("name: long", ENCODE, LONG, InputError, "(100000 characters) is not a feature name"),
    ("name: escape code", ENCODE, ESC, InputError, "`runsc cpu-features` prints the names"),
    ("architecture: unknown", parse_architecture, "x86_64", InputError, "known are amd64 and arm64"),
    ("architecture: long", parse_architecture, LONG, InputError, "(100000 characters) is not known"),
    ("listing: empty", LISTING, "\n", InputError, "an empty set would fit every worker"),
    ("listing: two lines", LISTING, "fpu\npni", InputError, "it has more than one line"),
    ("listing: blank", LISTING, "fpu, pni", InputError, "did you mean 'pni'?"),
    ("listing: commas", LISTING, "," * 100_000, InputError, "'' is not a feature name"),
    ("listing: one long name", LISTING, LONG, InputError, "(100000 characters) is not a feature name"),
    ("names: none known", unknown, "asimd", InputError, "it has no feature name of amd64"),
    ("names: escape code", unknown, ESC, InputError, "is no feature's name"),
    (
        "runsc: NUL in its path",
        run_listing,
        "a\0b",
        HostError,
        "no system has such a path",
    ),
    ("runsc: no such", run_listing, f"/no/{ESC}", HostError, "no such program"),
    ("runsc: long path", on_amd64(run_cpu_features), LONG, HostError, "File name too long"),
    ("cpuinfo: empty", parse_cpuinfo, "", InputError, "give the whole of /proc/cpuinfo"),
    ("cpuinfo: no flags", parse_cpuinfo, "processor:0\n", InputError, "no line `flags` (amd64)"),
    ("cpuinfo: empty flags", parse_cpuinfo, "processor:0\nflags:\n", InputError, "block 0 lists no flags"),
    ("cpuinfo: 32 bits", parse_cpuinfo, "processor:0\nflags:fpu\n", InputError, "a 32-bit system"),
    (
        "cpuinfo: a long flag",
        parse_cpuinfo,
        f"processor:0\nflags:lm {LONG[:999]}",
        InputError,
        "is no flag",
    ),
    (
        "cpuinfo: escape code",
        parse_cpuinfo,
        f"processor:0\nflags:lm {ESC}",
        InputError,
        r"'\x1b[31m' is no",
    ),
    ("cpuinfo: long flags", parse_cpuinfo, f"processor:\nflags:{LONG}", InputError, "65536 are the most"),
    (
        "cpuinfo: many CPUs",
        parse_cpuinfo,
        "processor:\n" * 65_537,
        InputError,
        "more than 65536 processors",
    ),
    (
        "cpuinfo: cache line",
        parse_cpuinfo,
        f"processor:\nflags:lm\nclflush size:{LONG}",
        InputError,
        "is no clflush size",
    ),
    ("cpuinfo: NUL in its path", read_cpuinfo, "a\0b", InputError, "no system has such"),
    ("dump: empty", parse_cpuid_dump, "", InputError, "dump them with `cpuid -r`"),
    ("dump: prose", parse_cpuid_dump, f"{ESC}{LONG}", InputError, "line 1 is not understood"),
    ("dump: a leaf twice", parse_cpuid_dump, LEAF * 2, InputError, "leaf 0x1.0x0 a second time"),
    ("dump: many CPUs", parse_cpuid_dump, "CPU:\n" * 65_537, InputError, "more than 65536 CPUs"),
    (
        "dump: no leaf 1",
        lambda text: common_features(parse_cpuid_dump(text)),
        LEAF.replace("01", "02", 1),
        InputError,
        "there is no leaf 1",
    ),
    (
        "registers: too large",
        lambda text: features_from_cpuid({(1, 0): (0, 0, int(text), 0)}),
        "9" * 999,
        InputError,
        "register ecx of leaf 0x1.0x0 is not a 32-bit number",
    ),
    ("digest: short", asset_digest, "a" * 63, InputError, "63 digits instead of 64"),
    ("digest: upper case", asset_digest, "A" * 64, InputError, "upper case"),
    ("digest: newline", asset_digest, "a" * 64 + "\n", InputError, "something else than 64"),
    ("digest: long", asset_digest, LONG, InputError, "write the 64 lower-case hex digits"),
    ("image: not pinned", image_digest, "pause:3.10", InputError, "is not pinned by digest"),
    ("image: two @", image_digest, f"{PINNED}@{DIGEST}", InputError, "has two `@`"),
    (
        "image: sha512",
        image_digest,
        "pause@sha512:" + "a" * 128,
        InputError,
        "something else than `sha256:`",
    ),
    ("image: long", image_digest, f"{LONG}@{DIGEST}", InputError, "1024 are the most"),
    ("image: escape code", image_digest, f"{ESC}@{DIGEST}", InputError, "names no image before the `@`"),
    ("asset: a path", hashed_asset, "../runsc", InputError, "a name has 1 to 128 letters"),
    (
        "asset: bad digest of a long name",
        lambda name: sandbox_runtime_hash({name: LONG}, PINNED),
        "n" * 128,
        InputError,
        "is not a SHA-256 digest",
    ),
    ("identity: long key", keyed, LONG, InputError, "100000 characters; 1 to 128 are allowed"),
    ("identity: half a surrogate pair", keyed, "\ud800", InputError, r"'\ud800' has half a surrogate pair"),
    (
        "identity: long class",
        lambda text: SandboxRuntime(text, compat("1")),
        LONG,
        InputError,
        "1 to 63 are allowed",
    ),
    (
        "identity: long schema",
        lambda text: VersionedSandboxCompat.of({"a": "b"}, text),
        LONG,
        InputError,
        "1 to 64",
    ),
    (
        "identity: name",
        lambda text: SandboxRuntime("gvisor", compat("1"), text),
        "\ud800" * 999,
        InputError,
        "$.name",
    ),
    (
        "worker: a runtime twice",
        lambda text: WorkerRuntimes(identity(text), (identity(text),)),
        "1",
        InputError,
        "list it once",
    ),
    (
        "worker: another class",
        lambda text: WorkerRuntimes(identity(), (SandboxRuntime(text, compat("1")),)),
        ESC,
        InputError,
        "a worker has one sandbox class",
    ),
    ("json: empty", parse_json, "", InputError, "is the text whole?"),
    ("json: deep", parse_json, "[" * 8_000 + "]" * 8_000, InputError, "nested too deeply"),
    ("json: NaN", parse_json, '{"a": [NaN]}', InputError, "$.a[0]: NaN is not JSON"),
    ("json: a key twice", parse_json, '{"a": 1, "a": 2}', InputError, "$.a: the key stands here twice"),
    (
        "json: a long key twice",
        parse_json,
        f'{{"{LONG}": 1, "{LONG}": 2}}',
        InputError,
        "stands here twice",
    ),
    (
        "json: far down",
        parse_json,
        '{"%s": ' % ("k" * 128) * 60 + "NaN" + "}" * 60,
        InputError,
        "NaN is not JSON",
    ),
    ("json: too long", parse_json, " " * (1 << 20) + "1", InputError, "longer than 1048576 bytes"),
    ("json: escape code", parse_json, f'{{"a": "{ESC}"}}', InputError, "Invalid control character"),
    (
        "identity JSON: a number",
        loads_identity,
        identity_json(name=5),
        InputError,
        "$.name: a number where",
    ),
    (
        "identity JSON: unknown key",
        loads_identity,
        identity_json(**{ESC + LONG: 1}),
        InputError,
        "not a known key",
    ),
    ("identity JSON: no object", loads_identity, "[]", InputError, "a list where an object must stand"),
    ("config: no spec", loads_config, '{"metadata": {"name": "a"}}', InputError, "$.spec: missing"),
    ("config: a kind", loads_config, json.dumps({"kind": ESC + LONG}), InputError, "is not SandboxConfig"),
    (
        "config: class",
        loads_config,
        config_json(sandboxClass=ESC + LONG),
        InputError,
        "known are gvisor and microvm",
    ),
    (
        "config: long names above a fault",
        loads_config,
        config_json(assets={"a" * 128: {"b" * 128: {"url": 5}}}),
        InputError,
        "missing",
    ),
    ("plan: default", plan, ESC + LONG, ConfigError, "no version is named"),
    (
        "plan: features of no digest",
        lambda key: plan_worker_runtimes(config((), "v1"), CPU, {key: basis()}),
        LONG,
        InputError,
        "features",
    ),
    (
        "probe: runtime hash",
        lambda text: probe(GVISOR, CPU, basis(), text),
        ESC + LONG,
        InputError,
        "runtime hash",
    ),
    (
        "runtimes: unknown key",
        runtimes,
        json.dumps({"defaultRuntime": {"a": "b"}, ESC: 1}),
        InputError,
        "not a known key",
    ),
    (
        "runtimes: a mask",
        runtimes,
        json.dumps({"defaultRuntime": {"architecture": "amd64", "cpu_features": "0x1"}}),
        InputError,
        "$.defaultRuntime.cpu_features: '0x1' is not a mask",
    ),
    (
        "runtimes: long key and value",
        runtimes,
        json.dumps({"defaultRuntime": {"k" * LONGEST_KEY: "q" * 999}}),
        InputError,
        "999 characters; 1 to 256 are allowed",
    ),
    (
        "runtimes: no architecture",
        runtimes,
        json.dumps({"defaultRuntime": {"cpu_features": "1"}}),
        InputError,
        "say whose features they are",
    ),
    (
        "runtimes to write: unreadable",
        lambda text: dumps_runtimes(WorkerRuntimes(identity(text))),
        "q" * 200,
        InputError,
        "200 digits are too many",
    ),
    ("worker line: no name", loads_worker, '{"worker": ""}', InputError, "$"),
    ("worker line: null", loads_worker, "null", InputError, "null where an object must stand"),
    (
        "workers: the second line",
        lambda text: [*parse_workers(text.encode(), ESC)],
        f"\n{LONG}",
        InputError,
        "line 2: $: not JSON",
    ),
    (
        "worker to write: half a surrogate pair",
        lambda text: dumps_worker(text, WorkerRuntimes(identity())),
        "\ud800",
        InputError,
        "it is no Unicode text",
    ),
    (
        "workers: many",
        lambda text: [*parse_workers(text.encode(), "workers")],
        "{}\n" * 33_000,
        InputError,
        "more than 32768 workers",
    ),
    ("level: a long name", level, ESC + LONG, InputError, "leave these hosts out"),
    (
        "level: many names",
        lambda name: common_level(
            {name + each.name: FeatureSet(AMD64, 1 << each.value) for each in known_features(AMD64)}
        ),
        "name" * 20,
        InputError,
        "more kinds of host",
    ),
    (
        "levels: a weight of no host",
        lambda name: choose_levels({"a": basis()}, 1, {"a": 1, name: 1}),
        ESC + LONG,
        InputError,
        "name hosts of the fleet",
    ),
    (
        "annotation: empty",
        lambda text: annotation(FeatureSet.from_hex(AMD64, text)),
        "0",
        InputError,
        "it is empty",
    ),
    (
        "database: long id",
        lambda text: worker_rows(text, WorkerRuntimes(identity())),
        LONG,
        InputError,
        "1 to 512 are allowed",
    ),
    (
        "database: half a surrogate pair",
        lambda text: snapshot_row(text, identity()),
        "\ud800",
        InputError,
        "it is no Unicode text",
    ),
    ("database: a word of a mask", from_row, ESC + LONG, InputError, "is no integer of 64 bits"),
    (
        "database: limit",
        lambda text: candidates(FLEET, None, int(text)),
        "9" * 30,
        InputError,
        "number from 1 to 2147483647",
    ),
    ("backoff", lambda text: Backoff(float(text), 1.0), "1e308", InputError, "is no backoff"),
    ("file: NUL", lambda path: read_at_most(path, 1), "a\0b", FileError, "cannot be read"),
    (
        "file: escape code",
        lambda path: write_whole(path, b""),
        f"/no/{ESC}",
        FileError,
        "cannot be written",
    ),
    ("file: long", lambda path: read_runtimes(path, "gvisor"), LONG, FileError, "File name too long"),
)


def repeated(text: str, message: str) -> int:
    """How many characters of `message` stand in `text` too, in pieces of 12 and more."""
    total = start = 0
    while start < len(message):
        end = start
        while end < len(message) and message[start : end + 1] in text:
            end += 1
        if end - start >= 12:
            total += end - start
        start = max(end, start + 1)
    return total


def check_message(message: str, text: str) -> None:
    assert message.isprintable()
    assert repeated(text, message) <= MOST_REPEATED, message
    assert len(message) <= 2_000


def test_there_are_enough_rows() -> None:
    names = [name for name, *_ in ROWS]
    assert len(set(names)) == len(names) >= 60


@pytest.mark.parametrize(
    ("read", "text", "kind", "help_"), [pytest.param(*row, id=name) for name, *row in ROWS]
)
def test_a_bad_input_is_refused_with_what_helps(
    read: Read, text: str, kind: type[CompatError], help_: str
) -> None:
    with pytest.raises(CompatError) as caught:
        read(text)
    assert type(caught.value) is kind
    assert help_ in str(caught.value)
    check_message(str(caught.value), text)


ARGUMENTS: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    ("a verb", (ESC + LONG,), "No such command"),
    ("an option", (f"--{ESC}{LONG}",), "No such option"),
    ("an architecture", ("decode", "--arch", ESC + LONG, "1"), "is not one of 'amd64', 'arm64'"),
    ("one argument more", ("decode", "--arch", "amd64", "1", ESC + LONG), "unexpected extra argument"),
    ("a mask", ("decode", "--arch", "amd64", ESC), r"'\x1b[31m' is not a mask"),
    ("a name", ("encode", ESC + LONG), "is not a feature name"),
    ("NUL in a path", ("compare", "a\0b", "fpu"), r"a\x00b: no system has such a path"),
    ("a long path", ("probe", "--cpuinfo", ESC + LONG), "File name too long"),
    ("a path that is no text", ("check", "\udcff", "--worker", "\udcff"), r"\udcff: No such file"),
    ("half a surrogate pair in a path", ("check", "\ud800", "--worker", "a"), "No such file"),
    ("a file of workers", ("check", "-", "--workers", ESC), r"\x1b[31m: No such file"),
    ("a name of two workers", ("matrix", "a=id", "a=id"), "the name 'a' is already that of"),
    ("a weight", ("level", "id", "--weight", "id=" + "9" * 5_000), "id"),
    ("a number of levels", ("level", "--levels", "9" * 5_000, "id"), "is not a valid integer"),
    ("a limit", ("fleet", "candidates", "--limit", "9" * 30, "id"), "is not in the range"),
    ("a URL", ("fleet", "--db", ESC + LONG, "retire", "a"), "this is no database URL"),
    ("a port", ("fleet", "--db", "postgresql://h:x/", "retire", "a"), "this is no database URL"),
    ("NUL in a URL", ("fleet", "--db", "sqlite:///\0", "retire", "a"), "it has what is no text"),
    ("a URL's path", ("fleet", "--db", f"sqlite:////no/{ESC}{LONG}", "retire", "a"), "unable to open"),
    ("a worker", ("fleet", "--db", "sqlite://", "retire", ESC + LONG), "is not in the fleet"),
    ("a worker that is no text", ("fleet", "--db", "sqlite://", "retire", "\ud800"), "is not in the fleet"),
    ("an asset", ("hash", "--asset", ESC + LONG, "--pause-image", PINNED), "is not NAME=DIGEST"),
    ("an image", ("hash", "--pause-image", ESC + LONG), "is not pinned by digest"),
    ("a digest", ("plan", "-", "--features", ESC + LONG + "=f", "--cpuinfo", "-"), "cpuinfo"),
    ("a page", ("matrix", "--html", "\0", "--arch", "amd64", "-"), "cannot be written"),
    ("a runsc", ("table", "verify", "--runsc", ESC + LONG), "File name too long"),
    ("a listing", ("table", "verify", "--features", "-"), "runsc listing"),
    ("a level", ("level", "verify", ESC, "--guest", "-"), r"\x1b[31m: No such file"),
)


@pytest.mark.parametrize(("arguments", "help_"), [pytest.param(*row, id=name) for name, *row in ARGUMENTS])
def test_bad_arguments_are_refused_with_what_helps(
    arguments: tuple[str, ...],
    help_: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "id").write_text(identity_json())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0")))
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert help_ in printed.err
    for line in printed.err.rstrip("\n").split("\n"):
        check_message(line, "\n".join(arguments))


def test_a_worker_is_shown_as_it_can_be_seen(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    name = f"{ESC}\u202e\x9b\nw2 -> yes"
    lines, snapshot = tmp_path / "lines", tmp_path / "snapshot"
    lines.write_text(json.dumps({"worker": name, "sandboxClass": "gvisor", "defaultRuntime": {"a": "b"}}))
    snapshot.write_text(identity_json())
    assert run(["check", str(snapshot), "--workers", str(lines)]) == 0
    first = capsys.readouterr().out.split("\n")[0]
    assert first == r"snapshot -> \x1b[31m\u202e\x9b\nw2 -> yes: yes, as far as was recorded"
    assert run(["check", "--json", str(snapshot), "--workers", str(lines)]) == 0
    out = capsys.readouterr().out
    assert json.loads(out)["workers"][0]["worker"] == name
    assert all(line.isprintable() for line in out.split("\n"))


@pytest.mark.parametrize("verb", ["compare", "level"])
def test_names_may_be_longer_than_the_name_of_a_file(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    names = ",".join([feature.name for feature in known_features(AMD64)])
    assert len(names) > os.pathconf("/", "PC_NAME_MAX")
    if verb == "compare":
        assert run(["compare", names, names]) == 0
        assert capsys.readouterr().out == "A is identical to B\n"
    else:
        assert run(["level", "verify", names, "--guest", "/proc/version"]) == 2
        assert "cpuinfo: it tells of no processor" in capsys.readouterr().err


SIZE: Final = 250_000


def joined(piece: str) -> str:
    """As many pieces as fit, each with another number in the place of `#`."""

    def pieces() -> Iterator[str]:
        size = 0
        for number in count():
            each = piece.replace("#", f"{number:x}")
            size += len(each)
            if size > SIZE:
                return
            yield each

    return "".join(pieces())


def inside(before: str, piece: str, after: str) -> str:
    return before + joined(piece) + after


SHAPES: Final[Mapping[str, str]] = {
    **{
        name: joined(each)
        for name, each in (("commas", ","), ("colons", ":"), ("newlines", "\n"), ("blanks", " "))
    },
    **{
        ascii(each): joined(each)
        for each in ("[", '{"a":', "9", "f", "@", "-", "\x00", "\u0130", "\\u0041", '"', '"\\ud800",')
    },
    **{
        ascii(each): joined(each)
        for each in ("a\n", "x#,", "fpu,", "a:b\n", "CPU:\n", "processor:\n", "- a\n")
    },
    "flags": inside("processor:\nflags:lm", " #", "\n"),
    "lists": joined("processor:\nflags:lm #\n"),
    "models": joined("processor:\nflags:lm\nmodel name:#\n"),
    "cores": joined("processor:\nFeatures:fp asimd\nCPU part:0xd0c\nCPU variant:0x3\nCPU revision:1\n"),
    "leaves": joined(f"CPU:\n{LEAF}"),
    "listing": inside("fpu", ",fpu", "\n"),
    "a repeated key": inside("{", '"#":0,', '"z":0,"z":1}'),
    "NaNs": inside("[", "NaN,", "0]"),
    "objects with faults": inside("[", '{"a":0,"a":0},', "0]"),
    "a fault far down": '{"%s":' % ("k" * 128) * 60 + inside("[", "0,", "NaN]") + "}" * 60,
    "attributes": inside(identity_json().partition('{"key"')[0], "5,", "5]}}"),
    "attributes without members": inside(identity_json().partition('{"key"')[0], "{},", "{}]}}"),
    "runtimes": inside('{"defaultRuntime":{"a":"b"},"restorableRuntimes":[', "5,", "5]}"),
    "members": inside('{"defaultRuntime":{', '"#":5,', '"z":"5"}}'),
    "versions": inside(
        '{"metadata":{"name":"a"},"spec":{"sandboxClass":"gvisor","defaultVersion":"a","versions":[',
        "{},",
        "5]}}",
    ),
    "workers": joined('{"worker":"#","sandboxClass":"gvisor","defaultRuntime":{"a":"b"}}\n'),
    "an image": inside("a", ".a", f"_@{DIGEST}"),
}

READERS: Final[Mapping[str, Read]] = {
    "mask": MASK,
    "name": ENCODE,
    "listing": LISTING,
    "cpuinfo": parse_cpuinfo,
    "dump": lambda text: common_features(parse_cpuid_dump(text)),
    "digest": asset_digest,
    "image": image_digest,
    "asset": hashed_asset,
    "attribute": compat,
    "JSON": parse_json,
    "identity": loads_identity,
    "config": loads_config,
    "runtimes": runtimes,
    "worker": loads_worker,
    "workers": lambda text: [*parse_workers(text.encode(), "-")],
    "worker file": lambda text: parse_worker(text.encode(), "-", "gvisor"),
    "features": on_amd64(parse_features),
    "architecture": parse_architecture,
    "unknown names": unknown,
    "YAML": lambda text: read_config(str(fresh_file(text.encode()))),
    "cpuinfo file": lambda text: read_cpuinfo(fresh_file(text.encode())),
    "runtimes file": lambda text: read_runtimes(fresh_file(text.encode()), "gvisor"),
    "row": from_row,
    "id": lambda text: snapshot_row(text, identity()),
}
# They have an answer for every text.
ANSWERERS: Final[Mapping[str, Read]] = {
    "names of workers": lambda text: names_workers(text.encode()),
    "argument": lambda text: (is_literal(text), named_path(text)),
    "message": lambda text: InputError(text, quoted(text)),
}


@st.composite
def spoiled(draw: st.DrawFn) -> str:
    """The beginning of a text that some reader knows, with a piece of another text put in."""
    text = draw(st.sampled_from([*SHAPES.values()]))[: draw(st.integers(0, 200))]
    at = draw(st.integers(0, len(text)))
    return text[:at] + draw(st.text(max_size=3)) + text[at + draw(st.integers(0, 2)) :]


@pytest.mark.parametrize("read", [pytest.param(read, id=name) for name, read in READERS.items()])
@given(spoiled() | st.text(max_size=20))
def test_any_text_is_a_value_or_one_error(read: Read, text: str) -> None:
    # That no other exception comes is the law; what is said of the text is held against it.
    try:
        read(text)
    except CompatError as error:
        check_message(str(error), text)


@pytest.mark.parametrize(
    "read", [pytest.param(read, id=name) for name, read in {**READERS, **ANSWERERS}.items()]
)
def test_a_huge_input_is_answered_or_refused_soon(read: Read) -> None:
    answers = 0
    for text in SHAPES.values():
        started = time.process_time()
        try:
            read(text)
        except CompatError as error:
            check_message(str(error), text)
        else:
            answers += 1
        # What is linear takes a tenth of it; what is quadratic, hours at 8 MiB.
        assert time.process_time() - started < 2
    assert (answers == len(SHAPES)) == (read in ANSWERERS.values())


PEAK_A_BYTE: Final = 20
PEAK_MORE: Final = 5 << 20


@pytest.mark.parametrize(
    "name", ["cpuinfo", "dump", "listing", "JSON", "identity", "config", "runtimes", "workers"]
)
def test_a_large_input_takes_bounded_memory(name: str) -> None:
    for shape, text in SHAPES.items():
        tracemalloc.start()
        try:
            READERS[name](text)
        except CompatError:
            pass
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak <= PEAK_A_BYTE * len(text) + PEAK_MORE, (shape, peak / len(text))
