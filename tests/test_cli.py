"""The command line: what each verb prints, where, and with which exit status."""

import io
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
import yaml

import vectors
from refusals import MOVING, under
from substrate_compat import __main__ as program
from substrate_compat.cli import run
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat, WorkerRuntimes
from substrate_compat.wire import (
    dumps_identity,
    dumps_runtimes,
    dumps_worker,
    loads_identity,
    loads_runtimes,
)

DATA = vectors.DATA
HASH = "sha256:" + "a" * 64


class Run(Protocol):
    """Runs the command line: exit status, standard output, standard error."""

    def __call__(self, *arguments: str | Path, stdin: str = "") -> tuple[int, str, str]: ...


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def run_it(*arguments: str | Path, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        status = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run_it


def identity(cpu_features: str = "3", **attributes: str) -> SandboxRuntime:
    values = {"architecture": "amd64", "cpu_features": cpu_features, "sandbox_runtime_hash": HASH}
    return SandboxRuntime("gvisor", VersionedSandboxCompat.of({**values, **attributes}))


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | SandboxRuntime], Path]:
    """Write a text, or an identity as JSON, to a file of that name."""

    def write_it(name: str, content: str | SandboxRuntime) -> Path:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else dumps_identity(content))
        return path

    return write_it


Write = Callable[[str, str | SandboxRuntime], Path]


class TestProbe:
    CPUINFO = DATA / "cpuinfo" / "amd64-EPYC-Milan.txt"

    def test_a_listing(self, call: Run) -> None:
        status, out, err = call(
            "probe", "--cpuinfo", self.CPUINFO, "--features", DATA / "cpuid" / "epyc-milan-vm.runsc.txt"
        )
        assert status == 0
        assert "architecture          amd64" in out
        assert "82 CPU features, from the runsc listing" in out
        assert "left out: sandbox_runtime_hash: no runtime hash was given" in err

    def test_a_dump_gives_the_same_identity_as_the_listing(self, call: Run) -> None:
        common = ("probe", "--json", "--cpuinfo", self.CPUINFO)
        _, listed, _ = call(*common, "--features", DATA / "cpuid" / "epyc-milan-vm.runsc.txt")
        _, dumped, _ = call(*common, "--cpuid", DATA / "cpuid" / "epyc-milan-vm.txt")
        assert loads_identity(listed) == loads_identity(dumped)

    def test_another_hosts_cpuinfo_alone_gives_no_amd64_features(self, call: Run) -> None:
        status, out, err = call("probe", "--json", "--cpuinfo", self.CPUINFO)
        assert status == 0
        assert loads_identity(out).compat_version.get("cpu_features") is None
        assert "left out: cpu_features: no feature set was given" in err

    def test_arm64_needs_no_listing(self, call: Run) -> None:
        status, out, _ = call("probe", "--cpuinfo", DATA / "cpuinfo" / "arm64-cortex-a76.txt")
        assert status == 0
        assert "16 CPU features, from the Features of cpuinfo" in out

    def test_an_amd64_capture_alone_for_people(self, call: Run) -> None:
        _, out, _ = call("probe", "--cpuinfo", self.CPUINFO)
        assert out == "architecture          amd64\n"

    def test_a_microvm_with_more_keys(self, call: Run) -> None:
        _, out, _ = call(
            "probe",
            *("--json", "--profile", "microvm", "--with", "cpu_cache_line", "--with", "cpu_vendor"),
            *("--cpuinfo", self.CPUINFO, "--runtime-hash", HASH, "--name", "v1"),
        )
        runtime = loads_identity(out)
        assert (runtime.sandbox_class, runtime.name) == ("microvm", "v1")
        assert [key for key, _ in runtime.compat_version.attributes] == [
            "architecture",
            "cpu_cache_line",
            "cpu_model",
            "cpu_vendor",
            "sandbox_runtime_hash",
        ]

    def test_runsc_is_asked(self, call: Run, tmp_path: Path) -> None:
        runsc = tmp_path / "runsc"
        runsc.write_text("#!/bin/sh\necho fpu,xsave,$1 | sed s/cpu-features/pni/\n")
        runsc.chmod(0o755)
        status, out, err = call("probe", "--cpuinfo", self.CPUINFO, "--runsc", runsc)
        assert status == 0
        assert f"2 CPU features, from `{runsc} cpu-features`: fpu pni" in out
        assert "no usable XSAVE" in err

    def test_a_dump_tells_what_is_odd_about_it(self, call: Run, write: Write) -> None:
        leaf = "0x{} 0x00: eax=0x{} ebx=0x00000000 ecx=0x{} edx=0x{}"
        extended = leaf.format("80000000", "80000001", "00000000", "00000000")
        odd = leaf.format("80000001", "00000000", "00000000", "20000000")
        cpus = (
            f"CPU {number}:\n{leaf.format('00000001', '00000000', pni, '00000001')}\n{extended}\n{odd}\n"
            for number, pni in enumerate(("00000001", "00000000"))
        )
        dump = write("dump", "".join(cpus))
        status, out, err = call("probe", "--cpuinfo", self.CPUINFO, "--cpuid", dump)
        assert status == 0
        assert "fpu lm" in out
        assert "not every CPU has pni" in err
        assert "a 32-bit program made it" in err

    def test_this_host(self, call: Run) -> None:
        status, out, err = call("probe", "--profile", "gvisor")
        assert (status, "CPU features, from" in out) in {(0, True), (2, False)}
        assert status == 0 or "--runsc" in err

    def test_one_source_is_enough(self, call: Run) -> None:
        status, _, err = call("probe", "--runsc", "a", "--cpuid", "b")
        assert status == 2
        assert "give only one" in err


class TestCheck:
    def test_yes(self, call: Run, write: Write) -> None:
        worker, snapshot = write("w.json", identity("7")), write("s.json", identity())
        status, out, err = call("check", "--worker", worker, "--worker", f"less={worker}", snapshot)
        assert status == 0
        assert out.startswith("snapshot -> w: yes, as far as was recorded\n")
        assert "snapshot -> less: yes" in out
        assert out.endswith("2 of 2 workers can restore the snapshot\n")
        assert err == ""

    def test_no(self, call: Run, write: Write) -> None:
        worker, snapshot = write("w.json", identity("1")), write("s.json", identity())
        status, out, _ = call("check", "--worker", worker, snapshot)
        assert status == 1
        assert "  - the worker lacks 1 CPU feature that the guest saw: pclmulqdq\n" in out
        assert out.endswith("0 of 1 workers can restore the snapshot\n")

    def test_the_snapshot_from_standard_input(self, call: Run, write: Write) -> None:
        worker = write("w.json", identity("7"))
        status, _, _ = call("check", "--worker", worker, "-", stdin=dumps_identity(identity()))
        assert status == 0

    @pytest.mark.parametrize(("recorded", "status"), [({}, 3), ({"cpu_cache_line": "64"}, 0)])
    def test_strict(self, call: Run, write: Write, recorded: dict[str, str], status: int) -> None:
        path = write("both.json", identity("3", **recorded))
        assert call("check", "--strict", "--worker", path, path)[0] == status
        assert call("check", "--worker", path, path)[0] == 0

    @pytest.mark.parametrize("nothing", ["", "\n", "null", " null\n"])
    def test_a_snapshot_without_an_identity(self, call: Run, write: Write, nothing: str) -> None:
        worker, snapshot = write("w.json", identity()), write("s.json", nothing)
        status, out, err = call("check", "--worker", worker, snapshot)
        assert (status, out) == (2, "")
        assert "carries no identity; --allow-unknown" in err
        assert call("check", "--allow-unknown", "--worker", worker, snapshot)[0] == 0
        assert call("check", "--strict", "--allow-unknown", "--worker", worker, snapshot)[0] == 3

    def test_json(self, call: Run, write: Write) -> None:
        worker, snapshot = write("w.json", identity("1")), write("s.json", identity())
        status, out, _ = call("check", "--json", "--worker", worker, snapshot)
        told = json.loads(out)
        assert status == 1
        assert told["direction"] == "snapshot -> worker"
        assert told["canRestore"] == 0
        (verdict,) = told["workers"][0]["runtimes"]
        assert told["workers"][0]["worker"] == "w"
        assert verdict["mismatches"] == [
            {
                "reason": "missing_features",
                "key": "cpu_features",
                "worker": "1",
                "snapshot": "3",
                "missingFeatures": ["pclmulqdq"],
            }
        ]
        assert verdict["unchecked"] == ["cpu_cache_line"]

    def test_a_worker_by_its_runtimes_file(self, call: Run, write: Write) -> None:
        other = "sha256:" + "b" * 64
        runtimes = WorkerRuntimes(identity(sandbox_runtime_hash=other), (identity("7"),))
        worker, snapshot = write("w.json", dumps_runtimes(runtimes)), write("s.json", identity())
        status, out, _ = call("check", "--sandbox-class", "gvisor", "--worker", worker, snapshot)
        assert status == 0
        assert out.startswith(
            "snapshot -> w: yes, as far as was recorded (under its restorable runtime 1)\n"
        )
        status, out, err = call("check", "--worker", worker, snapshot)
        assert (status, out) == (2, "")
        assert "say it with --sandbox-class" in err

    def test_many_workers_one_on_each_line(self, call: Run, write: Write) -> None:
        lines = [
            dumps_worker(name, WorkerRuntimes(identity(mask))) for name, mask in (("a", "1"), ("b", "3"))
        ]
        workers, snapshot = write("w.jsonl", "\n".join(lines)), write("s.json", identity())
        status, out, _ = call("check", "--workers", workers, snapshot)
        assert status == 0
        assert "snapshot -> a: no\n" in out
        assert "snapshot -> b: yes" in out
        assert "1 of 2 workers can restore the snapshot" in out

    def test_the_line_that_is_not_understood_is_named(self, call: Run, write: Write) -> None:
        good = dumps_worker("a", WorkerRuntimes(identity()))
        workers = write("w.jsonl", good + '{"worker": 5}\n')
        status, _, err = call("check", "--workers", workers, write("s.json", identity()))
        assert status == 2
        assert f"{workers} line 2: $" in err

    @pytest.mark.parametrize("text", ["", "[]", "{", "{}", "fpu,pni"])
    def test_a_worker_that_is_none(self, call: Run, write: Write, text: str) -> None:
        status, out, err = call("check", "--worker", write("w.json", text), write("s.json", identity()))
        assert (status, out) == (2, "")
        assert err.startswith("error: ")

    def test_no_worker_at_all(self, call: Run, write: Write) -> None:
        status, _, err = call("check", write("s.json", identity()))
        assert status == 2
        assert "give at least one worker" in err

    @pytest.mark.parametrize("file", ["absent.json", "/", "/dev/zero"])
    def test_a_file_that_cannot_be_read(self, call: Run, write: Write, file: str) -> None:
        status, out, err = call("check", "--worker", write("w.json", identity()), file)
        assert (status, out) == (2, "")
        assert err.startswith(f"error: {file}: ")


class TestFeatures:
    @pytest.mark.parametrize(
        ("a", "b", "status", "relation"),
        [
            ("fpu,pni", "pni,fpu", 0, "identical"),
            ("fpu", "pni,fpu", 1, "subset"),
            ("pni,fpu", "fpu", 1, "superset"),
            ("pni", "fpu", 1, "neither"),
            ("pni", "fp", 1, "neither"),
        ],
    )
    def test_compare(self, call: Run, a: str, b: str, status: int, relation: str) -> None:
        got, out, _ = call("compare", "--json", a, b)
        told = json.loads(out)
        assert (got, told["relation"]) == (status, relation)
        assert set(told["onlyA"]) == set(a.split(",")) - set(b.split(","))
        assert set(told["onlyB"]) == set(b.split(",")) - set(a.split(","))

    def test_compare_for_people(self, call: Run) -> None:
        _, out, _ = call("compare", "fpu,pni", "fpu,vme,pse")
        assert out == (
            "A is neither a subset nor a superset of B\nonly A has 1: pni\nonly B has 2: pse vme\n"
        )

    def test_compare_tells_a_dump_from_a_listing(self, call: Run) -> None:
        folder = DATA / "cpuid"
        status, out, _ = call("compare", folder / "epyc-milan-vm.txt", folder / "epyc-milan-vm.runsc.txt")
        assert (status, out) == (0, "A is identical to B\n")

    def test_compare_tells_what_is_odd_about_a_dump(self, call: Run, write: Write) -> None:
        lines = [
            "0x80000000 0x00: eax=0x80000001 ebx=0x00000000 ecx=0x00000000 edx=0x00000000",
            "0x80000001 0x00: eax=0x00000000 ebx=0x00000000 ecx=0x00000000 edx=0x20000000",
            "0x00000001 0x00: eax=0x00000000 ebx=0x00000000 ecx=0x00000000 edx=0x00000000",
        ]
        assert "32-bit program" in call("compare", write("dump", "\n".join(lines)), "lm")[2]

    @pytest.mark.parametrize(
        ("b", "status", "relation"),
        [
            (identity(), 0, "identical to"),
            (identity("1"), 1, "a superset of"),
            (identity("7"), 1, "a subset of"),
            (identity(zone="b"), 1, "a subset of"),
            (identity(sandbox_runtime_hash="sha256:" + "b" * 64), 1, "neither"),
        ],
    )
    def test_compare_identities(
        self, call: Run, write: Write, b: SandboxRuntime, status: int, relation: str
    ) -> None:
        got, out, _ = call("compare", write("a.json", identity()), write("b.json", b))
        assert got == status
        assert out.startswith(f"A is {relation}")

    def test_compare_names_the_attributes_that_differ(self, call: Run, write: Write) -> None:
        a, b = identity(zone="a", rack="1"), identity(zone="b", board="x")
        _, out, _ = call("compare", write("a.json", a), write("b.json", b))
        assert out.splitlines()[1:] == [
            "- board: A has none, B 'x'",
            "- zone: A 'a', B 'b'",
            "- rack: A '1', B has none",
        ]

    @pytest.mark.parametrize(
        ("arguments", "out"),
        [
            (("encode", "pni"), "1\n"),
            (("encode", "pni,fpu", "vme"), "300000001\n"),
            (("encode", "--arch", "arm64", "aes"), "8\n"),
            (("encode", "--arch", "amd64", "aes"), "2000000\n"),
            (("encode", "fp"), "1\n"),
            (("decode", "--arch", "amd64", "3"), "pclmulqdq\npni\n"),
            (("decode", "--arch", "arm64", "3"), "asimd\nfp\n"),
            (("decode", "--arch", "amd64", "0"), "\n"),
            (("compare", "--arch", "amd64", "3", "pni,pclmulqdq"), "A is identical to B\n"),
            (("compare", "--arch", "amd64", "0de", "0de"), "A is identical to B\n"),
        ],
    )
    def test_encode_and_decode(self, call: Run, arguments: tuple[str, ...], out: str) -> None:
        assert call(*arguments) == (0, out, "")

    def test_from_standard_input(self, call: Run) -> None:
        assert call("encode", "-", stdin="fpu,pni\n") == (0, "100000001\n", "")
        assert call("decode", "--arch", "amd64", "-", stdin="1\n") == (0, "pni\n", "")

    def test_json(self, call: Run) -> None:
        assert json.loads(call("encode", "--json", "fp")[1]) == {
            "architecture": "arm64",
            "cpu_features": "1",
        }
        assert json.loads(call("decode", "--json", "--arch", "arm64", "1")[1]) == {
            "architecture": "arm64",
            "names": ["fp"],
        }

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            (("encode", "aes"), "may be of amd64 or arm64; say which with --arch"),
            (("encode", "avx3"), "'avx3' is not a feature name of gVisor on amd64"),
            (("encode", "fp,asimd,avx3"), "'avx3' is not a feature name of gVisor on arm64"),
            (("decode", "3"), "give --arch"),
            (("decode", "--arch", "amd64", "0x3"), "'0x3' is not a mask"),
            (("decode", "--arch", "riscv64", "3"), "riscv64"),
            (("compare", "3", "3"), "does not say of which architecture"),
            (("compare", "--arch", "amd64", "de", "de"), "write the mask as 0de"),
            (("compare", "--arch", "arm64", "fpu", "fpu"), "not a feature name of gVisor on arm64"),
            (("compare", "./absent", "fpu"), "./absent: No such file"),
            (("bogus",), "No such command"),
        ],
    )
    def test_refused(self, call: Run, arguments: tuple[str, ...], error: str) -> None:
        status, out, err = call(*arguments)
        assert (status, out) == (2, "")
        assert error in err

    def test_an_identity_without_features_is_no_feature_set(self, call: Run, write: Write) -> None:
        path = write("a.json", identity("0x3"))
        assert "no readable cpu_features" in call("compare", path, path)[2]

    def test_a_set_of_another_architecture_than_said_is_refused(self, call: Run, write: Write) -> None:
        path = write("a.json", identity())
        assert "it is of amd64, not of arm64" in call("compare", "--arch", "arm64", path, path)[2]


class TestHash:
    PAUSE = f"pause@{HASH}"

    def test_hash(self, call: Run) -> None:
        status, out, _ = call("hash", "--asset", f"gvisor={HASH}", "--pause-image", self.PAUSE)
        assert status == 0
        _, told, _ = call("hash", "--json", "--asset", f"gvisor={'a' * 64}", "--pause-image", self.PAUSE)
        assert json.loads(told) == {"sandbox_runtime_hash": out.strip()}

    @pytest.mark.parametrize(
        ("assets", "error"),
        [(["gvisor"], "'gvisor' is not NAME=DIGEST"), ([f"a={HASH}", f"a={HASH}"], "'a' is given twice")],
    )
    def test_refused(self, call: Run, assets: list[str], error: str) -> None:
        options = [part for asset in assets for part in ("--asset", asset)]
        status, _, err = call("hash", *options, "--pause-image", self.PAUSE)
        assert status == 2
        assert error in err

    def test_of_each_version_of_a_config(self, call: Run, write: Write) -> None:
        config = write("config.json", json.dumps(pool(state="Disabled")))
        status, out, err = call("hash", config)
        assert (status, err) == (0, "")
        lines = [line.split() for line in out.splitlines()]
        assert [line[:2] for line in lines] == [["v1", "amd64"], ["v1", "arm64"], ["v2", "amd64"]]
        by_hand = call("hash", "--asset", f"gvisor={'1' * 64}", "--pause-image", self.PAUSE)[1]
        assert lines[0][2] == by_hand.strip()
        _, told, _ = call("hash", "--json", config)
        assert [list(each.values()) for each in json.loads(told)] == lines

    def test_of_a_version_that_has_none(self, call: Run, write: Write) -> None:
        status, out, err = call("hash", write("config.json", json.dumps(pool(image="pause"))))
        assert (status, len(out.splitlines())) == (1, 2)
        assert "v2 amd64: pause image: 'pause' is not pinned by digest" in err

    @pytest.mark.parametrize(
        "arguments", [(), ("config.yaml", "--pause-image", PAUSE), ("a", "--asset", "a=b")]
    )
    def test_of_one_thing_only(self, call: Run, arguments: tuple[str, ...]) -> None:
        assert call("hash", *arguments)[0] == 2


def pool(image: str = f"pause@{HASH}", state: str = "Enabled") -> dict[str, object]:
    """A config with v1, the default, and v2, which is of that image and state."""

    def assets(digit: str) -> dict[str, object]:
        return {"gvisor": {"url": "https://bucket.example/runsc", "sha256": digit * 64}}

    def version(name: str, state: str, image: str, **assets: dict[str, object]) -> dict[str, object]:
        return {"name": name, "state": state, "pauseImage": image, "assets": assets}

    return {
        "kind": "SandboxConfig",
        "metadata": {"name": "pool"},
        "spec": {
            "sandboxClass": "gvisor",
            "defaultVersion": "v1",
            "versions": [
                version("v1", "Enabled", f"pause@{HASH}", amd64=assets("1"), arm64=assets("2")),
                version("v2", state, image, amd64=assets("3")),
            ],
        },
    }


class TestPlan:
    HOST = ("--cpuinfo", DATA / "cpuinfo" / "amd64-EPYC-Milan.txt")
    LISTING = DATA / "cpuid" / "epyc-milan-vm.runsc.txt"

    def options(self, *digits: str) -> tuple[str | Path, ...]:
        return (
            *self.HOST,
            *(part for digit in digits for part in ("--features", f"{digit * 64}={self.LISTING}")),
        )

    def test_it_prints_the_file(self, call: Run, write: Write) -> None:
        config = write("config.json", json.dumps(pool()))
        status, out, err = call("plan", config, *self.options("1", "3"))
        assert (status, err) == (0, "")
        runtimes = loads_runtimes(out, "gvisor")
        assert dumps_runtimes(runtimes) == out
        assert [runtime.compat_version.get("sandbox_runtime_hash") for runtime in runtimes] == [
            line.split()[2] for line in call("hash", config)[1].splitlines() if "amd64" in line
        ]

    def test_yaml_and_json_are_the_same_and_may_be_standard_input(self, call: Run, write: Write) -> None:
        texts = [json.dumps(pool()), yaml.safe_dump(pool())]
        options = self.options("1", "3")
        outputs = {call("plan", write("config", text), *options)[1] for text in texts}
        outputs |= {call("plan", "-", *options, stdin=text)[1] for text in texts}
        assert len(outputs) == 1
        assert outputs != {""}

    def test_what_is_left_out_is_told(self, call: Run, write: Write) -> None:
        config = write("config.json", json.dumps(pool(image="pause")))
        status, out, err = call("plan", config, *self.options("1", "3"))
        assert status == 0
        assert loads_runtimes(out, "gvisor").restorable_runtimes == ()
        assert "left out: v2: pause image: 'pause' is not pinned by digest" in err
        told = json.loads(call("plan", "--json", config, *self.options("1", "3"))[1])
        assert told["runtimes"] == json.loads(out)
        assert [(each["name"], each["reason"]) for each in told["leftOut"]] == [("v2", "not_pinned")]
        assert list(told["versions"].values()) == ["v1"]
        assert told["notes"] == []

    def test_the_file_is_written_once(self, call: Run, write: Write, tmp_path: Path) -> None:
        config, file = write("config.json", json.dumps(pool())), tmp_path / "sandbox-runtimes.json"
        common = ("plan", config, *self.options("1", "3"), "-o", file)
        assert call(*common) == (0, "", f"{file}: written\n")
        inode = file.stat().st_ino
        assert call(*common) == (0, "", f"{file}: unchanged\n")
        assert file.stat().st_ino == inode
        assert file.read_text() == call("plan", config, *self.options("1", "3"))[1]
        assert call("plan", config, *self.options("1"), "-o", tmp_path / "gone" / "file")[0] == 2

    def test_runsc_is_asked(self, call: Run, write: Write, tmp_path: Path) -> None:
        runsc = tmp_path / "runsc"
        runsc.write_text("#!/bin/sh\necho fpu,pni,xsave\n")
        runsc.chmod(0o755)
        config = write("config.json", json.dumps(pool(state="Disabled")))
        status, out, err = call("plan", config, *self.HOST, "--runsc", f"sha256:{'1' * 64}={runsc}")
        assert status == 0
        features = loads_runtimes(out, "gvisor").default_runtime.compat_version.features
        assert features is not None
        assert features.names == ("fpu", "pni")
        assert "note: " in err
        assert "no usable XSAVE" in err

    def test_what_is_odd_about_a_dump_is_told(self, call: Run, write: Write) -> None:
        leaf = "0x{} 0x00: eax=0x{} ebx=0x00000000 ecx=0x{} edx=0x{}"
        words = (
            leaf.format("00000001", "00000000", "0c000001", "00000001"),
            leaf.format("80000000", "80000001", "00000000", "00000000"),
            leaf.format("80000001", "00000000", "00000000", "20000000"),
        )
        dump = write("dump", "CPU 0:\n" + "\n".join(words) + "\n")
        config = write("config.json", json.dumps(pool(state="Disabled")))
        _, _, err = call("plan", config, *self.HOST, "--features", f"{'1' * 64}={dump}")
        assert f"{dump}: it has `lm` without `syscall`" in err

    def test_a_default_that_cannot_be_offered_is_a_no(self, call: Run, write: Write) -> None:
        status, out, err = call("plan", write("config.json", json.dumps(pool())), *self.options("3"))
        assert (status, out) == (1, "")
        assert "version 'v1' cannot be the default" in err
        assert "trying again cannot help: correct the SandboxConfig, or tell what its runsc reports" in err

    @pytest.mark.parametrize(
        ("options", "error"),
        [
            (("--features", "a.txt"), "--features: 'a.txt' has no `=`"),
            (("--runsc", "12=runsc"), "--runsc: '12' is not a SHA-256 digest"),
            (
                ("--features", f"{'1' * 64}=fpu,pni", "--features", f"{HASH[:7]}{'1' * 64}=fpu"),
                "is given twice",
            ),
            (("--arch", "arm64"), "it is of amd64, not of arm64"),
            (("--features", f"{'1' * 64}=fpu,AVX2"), "did you mean 'avx2'?"),
        ],
    )
    def test_options_are_refused(
        self, call: Run, write: Write, options: tuple[str, ...], error: str
    ) -> None:
        status, _, err = call("plan", write("config.json", json.dumps(pool())), *self.HOST, *options)
        assert status == 2
        assert error in err

    @pytest.mark.parametrize(
        ("text", "error"),
        [
            ("{}", "$.metadata: missing"),
            ("{", "$: not JSON"),
            ("", "$: null where an object must stand"),
            ("a: [1", "$: not YAML: expected ',' or ']', but got '<stream end>' (line 1, column 6)"),
            ("a: 1\na: 2", "$: not YAML: the key stands here twice (line 2, column 1)"),
            ("a: 1\n---\nb: 2", "$: not YAML: but found another document (line 2, column 1)"),
            ("a: 2026-13-45", "$: not YAML: month must be in 1..12"),
            ("a: !!bool x", "$: not YAML: 'x'"),
            ("a: !!python/name:os.system x", "$: not YAML: could not determine a constructor"),
            ("? [a]\n: 1", "$: not YAML: found unhashable key (line 1, column 3)"),
            ("[" * 600, "$: nested too deeply"),
            ("#" * (64 << 10) + "\n", "$: longer than 65536 bytes of YAML; give it as JSON"),
            ("a: &a {k: 1}\nb: {<<: *a}", "$: not YAML: it has an alias (`*name`); write it out"),
            ("metadata: {name: 5}\nspec: {}", "$.metadata.name: a number where a string must stand"),
            ("metadata: {name: 2026-11-30}\nspec: {}", "$.metadata.name: a date where a string must stand"),
            ("metadata: {name: on}\nspec: {}", "$.metadata.name: a truth value where a string must stand"),
        ],
    )
    def test_a_config_is_refused(self, call: Run, write: Write, text: str, error: str) -> None:
        config = write("config.yaml", text)
        status, out, err = call("plan", config, *self.HOST)
        assert (status, out) == (2, "")
        assert err.startswith(f"error: {config}: {error}"), err


def test_the_demo_shows_which_two_of_eight_servers_can(call: Run) -> None:
    status, out, _ = call("demo")
    assert status == 0
    assert "snapshot -> AMD EPYC 7713 64-Core Processor: yes\n" in out
    assert "snapshot -> AMD EPYC 9124 16-Core Processor: yes\n" in out
    assert "2 of 8 servers can restore it." in out


def test_the_demo_goes_on_where_the_host_tells_nothing(call: Run) -> None:
    status, out, err = under(MOVING, lambda: call("demo"))
    assert status == 0
    assert "2 of 8 servers can restore it." in out
    assert "And this host?" not in out
    assert "this host cannot be probed: CPUID: no moving between CPUs" in err


def test_an_interrupt_is_told_and_has_its_own_status(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(io.TextIOWrapper):
        @property
        def buffer(self) -> io.BytesIO:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Interrupted(io.BytesIO()))
    assert run(["decode", "--arch", "amd64", "-"]) == 130
    assert "error: interrupted" in capsys.readouterr().err


def test_the_program_exits_with_the_status_of_the_command_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["substrate-compat", "compare", "fpu", "pni"])
    monkeypatch.delitem(sys.modules, "substrate_compat.__main__", raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("substrate_compat", run_name="__main__")
    assert ended.value.code == 1
    assert capsys.readouterr().out.startswith("A is neither")


def test_the_program_without_its_command_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "substrate_compat.cli", None)
    with pytest.raises(SystemExit, match=r"pip install 'substrate-compat\[cli\]'"):
        program.main()


class TestProgram:
    """The program as a process of its own."""

    def start(self, *arguments: str, environment: dict[str, str] | None = None) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "substrate_compat", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **(environment or {})},
        )
        return done.returncode, done.stdout + done.stderr

    def test_its_exit_status_is_the_verdict(self) -> None:
        assert self.start("compare", "fpu", "fpu,pni")[0] == 1
        assert self.start("encode", "pni") == (0, "1\n")

    def test_help(self) -> None:
        status, out = self.start("--help")
        assert status == 0
        assert "Exit status: 0 yes, 1 no" in out

    def test_without_its_extra_it_says_what_to_install(self, tmp_path: Path) -> None:
        (tmp_path / "click.py").write_text("raise ModuleNotFoundError('no', name='click')\n")
        status, out = self.start("--help", environment={"PYTHONPATH": str(tmp_path)})
        assert status == 1
        assert "click is missing; install it with: pip install 'substrate-compat[cli]'" in out
