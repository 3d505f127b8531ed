"""runsc: its listing, and every way in which running it can fail."""

import os
import select
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import feature_sets
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuinfo import parse_cpuinfo
from substrate_compat.errors import HostError, InputError
from substrate_compat.runsc import (
    listed_names,
    parse_cpu_features,
    run_cpu_features,
    run_listing,
    unknown_names,
)
from vectors import Capture, captures, gvisor_hosts

AMD64: Final = Architecture.AMD64
ARM64: Final = Architecture.ARM64
KIB: Final = 1 << 10
MIB: Final = 1 << 20
CAPTURES: Final = captures()

Install = Callable[[str], Path]


@pytest.mark.parametrize(
    ("listing", "architecture", "names"),
    [
        ("fpu", AMD64, ("fpu",)),
        ("fpu,pni\n", AMD64, ("fpu", "pni")),
        ("pni,fpu\r\n", AMD64, ("fpu", "pni")),
        ("pni,fpu,pni", AMD64, ("fpu", "pni")),
        ("fp,asimd,aes\n", ARM64, ("aes", "asimd", "fp")),
    ],
    ids=ascii,
)
def test_a_listing_that_is_read(listing: str, architecture: Architecture, names: tuple[str, ...]) -> None:
    assert parse_cpu_features(listing, architecture).names == names


@pytest.mark.parametrize(
    ("listing", "subject", "problem", "remedy"),
    [
        ("", "runsc listing", "it is empty", "an empty set would fit every worker"),
        ("\n", "runsc listing", "it is empty", "an empty set would fit every worker"),
        ("\r\n", "runsc listing", "it is empty", "an empty set would fit every worker"),
        ("fpu\npni\n", "runsc listing", "it has more than one line", "give `runsc cpu-features` output"),
        ("fpu\n\n", "runsc listing", "it has more than one line", "give `runsc cpu-features` output"),
        ("fpu,avx3", "cpu_features", "'avx3'", "did you mean 'avx'?"),
        ("fpu,AVX2", "cpu_features", "'AVX2'", "did you mean 'avx2'?"),
        ("fpu,rdseedadx,pni", "cpu_features", "'rdseedadx'", "did you mean 'rdseed'?"),
        ("fpu, pni", "cpu_features", "' pni'", "did you mean 'pni'?"),
        ("fpu,pni ", "cpu_features", "'pni '", "did you mean 'pni'?"),
        ("fpu;pni", "cpu_features", "'fpu;pni'", "did you mean 'pni'?"),
        ("fpu,", "cpu_features", "''", "`runsc cpu-features` prints the names"),
        (",fpu", "cpu_features", "''", "`runsc cpu-features` prints the names"),
        ("fpu,asimd", "cpu_features", "'asimd'", "`runsc cpu-features` prints the names"),
        ("fpu\x00", "cpu_features", r"'fpu\x00'", "did you mean 'fpu'?"),
        ("fpu,".ljust(8 * MIB + 1, "x"), "runsc listing", "8388609 characters; 8 MiB are the most", ""),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_listing_that_is_refused(listing: str, subject: str, problem: str, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_cpu_features(listing, AMD64)
    assert caught.value.subject == subject
    assert caught.value.problem.startswith(problem)
    assert caught.value.remedy == remedy


@given(feature_sets().filter(len), st.data())
def test_a_listing_names_a_set_in_any_order(features: FeatureSet, data: st.DataObject) -> None:
    names = data.draw(st.permutations(features.names))
    assert parse_cpu_features(",".join(names) + "\n", features.architecture) == features


@given(st.text(st.characters(exclude_characters="\r\n"), min_size=1))
def test_the_names_of_a_listing_are_what_stands_between_its_commas(line: str) -> None:
    assert list(listed_names(line + "\n")) == line.split(",")


@given(feature_sets().filter(len), st.sets(st.sampled_from(["avx99", "sve9", "x"])))
def test_unknown_names_are_those_without_a_row(features: FeatureSet, new: set[str]) -> None:
    assert unknown_names([*new, *features.names, *new], features.architecture) == tuple(sorted(new))


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda capture: capture.name)
def test_the_listing_beside_a_capture_is_read(capture: Capture) -> None:
    listed = parse_cpu_features(capture.listing, capture.architecture)
    assert len(listed) == len(capture.listing.split(","))
    # On arm64 cpuinfo tells the same; on amd64 it does not tell what gVisor sees.
    told = parse_cpuinfo(capture.text).features
    assert told == (listed if capture.architecture is ARM64 else None)


def test_the_listing_of_every_machine_is_read() -> None:
    for host in gvisor_hosts().hosts:
        assert parse_cpu_features(host.listing, AMD64) == host.features


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Write a shell script as a program that may be run."""

    def written(script: str) -> Path:
        path = tmp_path / "runsc"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return written


def refusal(runsc: str | Path, timeout: float = 10.0) -> str:
    """What is wrong with this runsc; the error must name it and the other way."""
    with pytest.raises(HostError) as caught:
        run_cpu_features(runsc, AMD64, timeout)
    assert caught.value.subject == str(runsc)
    assert caught.value.remedy
    return caught.value.problem


@pytest.mark.parametrize(
    ("script", "architecture", "names"),
    [
        ("echo pni,fpu", AMD64, ("fpu", "pni")),
        ("printf pni,fpu", AMD64, ("fpu", "pni")),
        ("echo fp,asimd", ARM64, ("asimd", "fp")),
        ("echo 'a warning' >&2; echo fpu", AMD64, ("fpu",)),
        ('test "$*" = cpu-features && test -z "$(cat)" && echo fpu', AMD64, ("fpu",)),
        (
            f"head -c {64 * KIB - 4} /dev/zero | sed 's/..../fpu,/g' | tr -d '\\n'; echo fpu",
            AMD64,
            ("fpu",),
        ),
    ],
    ids=["newline", "no newline", "arm64", "a warning", "argument and empty input", "64 KiB"],
)
def test_a_runsc_that_answers(
    install: Install, script: str, architecture: Architecture, names: tuple[str, ...]
) -> None:
    runsc = install(script)
    assert run_cpu_features(runsc, architecture).names == names
    assert run_cpu_features(str(runsc), architecture).names == names


def test_a_listing_is_told_as_it_stands(install: Install) -> None:
    assert run_listing(install("echo avx99,fpu")) == "avx99,fpu\n"


def test_a_path_is_not_read_by_a_shell(install: Install) -> None:
    runsc = install("echo fpu")
    odd = runsc.rename(runsc.with_name("run sc; false"))
    assert run_cpu_features(odd, AMD64).names == ("fpu",)


def test_a_bare_name_is_looked_up_on_the_path_and_nowhere_else(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("echo fpu")
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "runsc").mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert run_cpu_features("runsc", AMD64).names == ("fpu",)


# The form of Debian 12's runsc (0.0~20221219): its usage on standard error, exit status 128.
USAGE: Final = """\
cat >&2 <<END
Usage: runsc <flags> <name> <arguments>

Subcommands:
	run              start a container
	{another}

END
exit 128"""


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        pytest.param(
            USAGE.format(another="wait             wait for a container"),
            "this runsc is too old to know `cpu-features` (exit status 128)",
            id="too old",
        ),
        pytest.param(
            USAGE.format(another="cpu-features     list features"),
            "`cpu-features` ended with exit status 128: '\\tcpu-features     list features'",
            id="not too old",
        ),
        pytest.param(
            "echo 'first' >&2; echo 'cannot read CPUID' >&2; exit 1",
            "`cpu-features` ended with exit status 1: 'cannot read CPUID'",
            id="fails with a reason",
        ),
        pytest.param(
            "echo fpu,pni; exit 1", "`cpu-features` ended with exit status 1 and said nothing", id="fails"
        ),
        pytest.param(
            "printf 'gr\\303\\274n\\377' >&2; exit 2",
            "`cpu-features` ended with exit status 2: 'gr\\xfcn\\\\xff'",
            id="fails with bytes",
        ),
        pytest.param(
            "kill -9 $$", "`cpu-features` ended with signal 9 (Killed) and said nothing", id="killed"
        ),
        pytest.param(
            "kill -40 $$",
            "`cpu-features` ended with signal 40 (Real-time signal 6) and said nothing",
            id="killed by a real-time signal",
        ),
        pytest.param(
            "echo hello world",
            "what it printed is no listing: 'hello world' is not a feature name of gVisor on amd64",
            id="not runsc",
        ),
        pytest.param("true", "what it printed is no listing: it is empty", id="prints nothing"),
        pytest.param(
            "echo fpu; echo pni", "what it printed is no listing: it has more than one line", id="two lines"
        ),
        pytest.param(
            "printf 'fpu,\\303\\244'", "what it printed is no listing: it is not ASCII text", id="no ASCII"
        ),
        pytest.param("head -c 1000000 /dev/zero", "it printed more than 64 KiB", id="prints 1 MB"),
        pytest.param("head -c 1000000 /dev/zero >&2", "it printed more than 64 KiB", id="complains 1 MB"),
        pytest.param(
            f"head -c {64 * KIB + 1} /dev/zero", "it printed more than 64 KiB", id="a byte too many"
        ),
        pytest.param("yes", "it printed more than 64 KiB", id="prints for ever"),
    ],
)
def test_a_runsc_that_cannot(install: Install, script: str, problem: str) -> None:
    assert refusal(install(script)) == problem


@pytest.mark.parametrize(
    "script",
    [
        "sleep 60",
        "echo fpu; sleep 60",
        "echo fpu; exec >&- 2>&-; sleep 60",
        "sleep 60 & exit 0",
        "trap '' TERM; sleep 60",
    ],
    ids=["hangs", "hangs after its answer", "closes its output", "leaves a child", "ignores SIGTERM"],
)
def test_a_runsc_that_hangs(install: Install, script: str) -> None:
    assert refusal(install(script), timeout=0.2) == "no answer in 0.2 seconds"


def test_the_children_of_a_runsc_that_hangs_end_with_it(install: Install, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        refusal(install(f"exec 3>'{pipe}'; echo started >&3; sleep 60 & sleep 60"), timeout=2)
        assert os.read(reader, 100) == b"started\n"
        # Only when no process holds the pipe any more does it read as ended.
        assert select.select([reader], [], [], 10)[0] == [reader]
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)


def no_such_program(path: Path) -> None:
    assert not path.exists()


def not_executable(path: Path) -> None:
    path.write_text("#!/bin/sh\necho fpu\n")
    path.chmod(0o644)


def no_program(path: Path) -> None:
    path.write_bytes(b"\x00\x01\x02\x03")
    path.chmod(0o755)


@pytest.mark.parametrize("path", ["run\0sc", "run\ud800sc"], ids=ascii)
def test_a_text_that_is_no_path(path: str) -> None:
    assert refusal(path) == "it cannot be run: no system has such a path"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        pytest.param(no_such_program, "no such program", id="missing"),
        pytest.param(Path.mkdir, "it cannot be run: it is a folder, not a program", id="folder"),
        pytest.param(not_executable, "it cannot be run: Permission denied", id="not executable"),
        pytest.param(no_program, "it cannot be run: Exec format error", id="not a program"),
    ],
)
def test_a_path_that_is_no_program(tmp_path: Path, make: Callable[[Path], None], problem: str) -> None:
    path = tmp_path / "runsc"
    make(path)
    assert refusal(path) == problem
