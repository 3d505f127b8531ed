"""`table verify`: whether a runsc prints names that the table does not know."""

import io
import json
import sys
from pathlib import Path

import pytest

from substrate_compat.cli import run
from vectors import DATA, Capture, captures

AMD64_LISTING = DATA / "cpuid" / "epyc-milan-vm.runsc.txt"


def call(
    capsys: pytest.CaptureFixture[str], *arguments: str | Path, stdin: str = ""
) -> tuple[int, str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        status = run(["table", "verify", *map(str, arguments)])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.mark.parametrize("capture", captures(), ids=lambda capture: capture.name)
def test_the_table_knows_every_name_of_a_capture(
    capsys: pytest.CaptureFixture[str], capture: Capture
) -> None:
    count = len(capture.listing.rstrip("\n").split(","))
    status, out, err = call(capsys, "--features", "-", stdin=capture.listing)
    assert (status, err) == (0, "")
    assert out == f"no drift: the table knows all {count} names on {capture.architecture}\n"


def test_drift_is_named_with_the_way_to_add_it(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys, "--features", "-", stdin="fpu,pni,avx10_2,apx_f\n")
    assert (status, err) == (1, "")
    first, *lines = out.split("\n")
    assert first == "drift: of 4 names on amd64 the table does not know 2:"
    assert lines[:2] == ["- apx_f", "- avx10_2"]
    assert "features_amd64.go" in out
    assert "value = 32 * block + bit" in out


def test_drift_on_arm64(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "--features", "-", stdin="fp,asimd,sve2\n")
    assert status == 1
    assert "- sve2\n" in out
    assert "HWCAP word" in out


def test_drift_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "--json", "--features", "-", stdin="fpu,pni,avx99")
    assert status == 1
    assert json.loads(out) == {"architecture": "amd64", "names": 3, "unknown": ["avx99"]}
    status, out, _ = call(capsys, "--json", "--features", AMD64_LISTING)
    assert status == 0
    assert json.loads(out)["unknown"] == []


def test_a_runsc_is_asked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    runsc = tmp_path / "runsc"
    runsc.write_text("#!/bin/sh\necho fpu,pni,avx99\n")
    runsc.chmod(0o755)
    status, out, _ = call(capsys, "--runsc", runsc)
    assert (status, out.split("\n")[1]) == (1, "- avx99")


def test_names_of_both_architectures_need_to_be_told(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys, "--features", "-", stdin="aes,new")
    assert (status, out) == (2, "")
    assert "as many of its names are of amd64 as of arm64: 1; say which with --arch" in err
    status, out, _ = call(capsys, "--arch", "arm64", "--features", "-", stdin="aes,new")
    assert (status, out.split("\n")[:2]) == (
        1,
        ["drift: of 2 names on arm64 the table does not know 1:", "- new"],
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "runsc listing: it is empty"),
        ("fpu\npni\n", "runsc listing: it has more than one line"),
        ("hello", "runsc listing: as many of its names are of amd64 as of arm64: 0"),
        ("fpu,pni,", "runsc listing: '' is no feature's name"),
        ("fpu, pni", "runsc listing: ' pni' is no feature's name"),
        ("fpu,\x1b[31m", r"runsc listing: '\x1b[31m' is no feature's name"),
        ("fpu," + "x" * 65, "runsc listing: 'xxxx"),
        ('{"a": 1}', "runsc listing: as many"),
    ],
    ids=ascii,
)
def test_what_is_no_listing(capsys: pytest.CaptureFixture[str], text: str, error: str) -> None:
    status, out, err = call(capsys, "--features", "-", stdin=text)
    assert (status, out) == (2, "")
    assert err.startswith(f"error: {error}")


def test_a_listing_of_another_architecture_than_told(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = call(capsys, "--arch", "arm64", "--features", "-", stdin="fpu,pni")
    assert status == 2
    assert "it has no feature name of arm64" in err


@pytest.mark.parametrize("arguments", [(), ("--runsc", "runsc", "--features", "-")], ids=len)
def test_one_of_runsc_and_features_is_needed(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    status, _, err = call(capsys, *arguments)
    assert status == 2
    assert "give either --runsc or --features" in err
