"""The verbs `level`, `level verify` and `matrix`: what they read, print and return."""

import io
import json
import sys
from pathlib import Path
from typing import Protocol

import pytest

from substrate_compat.cli import run
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat, WorkerRuntimes
from substrate_compat.levels import ANNOTATION, annotation, common_level, guest_flags, level_name
from substrate_compat.matrix import worker_of_features
from substrate_compat.wire import dumps_identity, dumps_runtimes, dumps_worker
from vectors import DATA, amd64, demo_hosts, gvisor_hosts, milan_listing

BASIS = "cmov,cx8,fpu,fxsr,lm,mmx,osxsave,sse,sse2,tsc,xsave"


class Call(Protocol):
    """Runs the command line in a folder of its own: exit status, standard output, standard error."""

    def __call__(self, *arguments: str | Path, stdin: str = "") -> tuple[int, str, str]: ...


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    monkeypatch.chdir(tmp_path)

    def run_it(*arguments: str | Path, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        status = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run_it


@pytest.fixture
def demo(tmp_path: Path) -> list[str]:
    """`NAME=FILE` for each server of the demo."""
    for host in demo_hosts().hosts:
        (tmp_path / f"{host.id}.txt").write_text(host.listing + "\n")
    return [f"{host.brand}={tmp_path / host.id}.txt" for host in demo_hosts().hosts]


def write(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def cpuinfo(*flags: str, model: str = "unknown") -> str:
    return (
        f"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: {model}\nflags\t\t: {' '.join(flags)}\n"
    )


class TestLevel:
    def test_of_the_demo(self, call: Call, demo: list[str]) -> None:
        status, out, _ = call("level", *demo)
        assert status == 0
        assert out.startswith(
            f"{level_name(amd64(demo_hosts().level))}: 56 CPU features that every host has\n"
        )
        assert f'\n{ANNOTATION}: "{demo_hosts().level}"\n' in out
        assert "\n- AMD EPYC 9124 16-Core Processor: 52: ad_mask_extn, " in out
        assert 'pod_annotations = ["dev.gvisor.internal.cpufeatures"]' in out
        assert "\n- without Intel(R) Xeon(R) CPU E5-2620 v4 @ 2.10GHz the level would gain 4 CPU " in out
        assert "\n- with 2 levels: 122, which is 200 less\n" in out

    def test_as_json(self, call: Call, demo: list[str]) -> None:
        status, out, _ = call("level", "--json", *demo)
        found = json.loads(out)
        (level,) = found["levels"]
        assert status == 0
        assert level["annotations"] == {ANNOTATION: demo_hosts().level}
        assert level["name"] == level_name(amd64(demo_hosts().level))
        assert level["features"] == demo_hosts().level.split(",")
        assert len(level["hosts"]["AMD EPYC 9124 16-Core Processor"]["givesUp"]) == 52
        assert level["pins"][0]["levelWouldGain"] == ["clfushopt", "xgetbv1", "xsavec", "xsaves"]
        assert level["dropped"]["cqm"] == ["AMD EPYC 7551P 32-Core Processor"]
        assert (found["loss"], found["losses"][1], found["exact"]) == (322, 122, True)

    def test_of_two_levels(self, call: Call, demo: list[str]) -> None:
        _, out, _ = call("level", "--json", "--levels", "2", *demo)
        found = json.loads(out)
        assert [len(level["hosts"]) for level in found["levels"]] == [4, 4]
        assert found["loss"] == 122

    def test_rome_and_genoa(self, call: Call) -> None:
        for host in gvisor_hosts().hosts:
            if "3975WX" in host.brand or "EPYC 9124" in host.brand:
                write("genoa" if "9124" in host.brand else "rome", host.listing)
        _, out, _ = call("level", "rome", "genoa")
        assert "86 CPU features" in out
        assert "\n- genoa: 22: avx512_bitalg, " in out
        assert "\n- rome: nothing\n" in out

    def test_a_weight_counts_machines(self, call: Call) -> None:
        files = [write("a", f"{BASIS},avx"), write("b", BASIS)]
        _, out, _ = call("level", "--weight", "a=500", *files)
        assert "with 1 level the hosts give up 500 in all" in out

    def test_what_adding_would_cost(self, call: Call) -> None:
        files = [write("a", f"{BASIS},avx"), "--add", write("b", BASIS)]
        _, out, _ = call("level", *files)
        assert out.endswith("adding b would cost one level for all 1: avx\n")
        _, out, _ = call("level", "--json", *files)
        assert json.loads(out)["costOfAdding"] == ["avx"]
        _, out, _ = call("level", "b", "--add", "a")
        assert out.endswith("adding a would cost one level for all nothing\n")

    def test_equal_hosts_hold_nothing_back(self, call: Call) -> None:
        _, out, _ = call("level", write("a", BASIS), f"b={write('c', BASIS)}")
        assert "\n- a, b: nothing\nNo host alone holds it back.\n" in out

    def test_what_is_not_in_the_annotation_is_said(self, call: Call) -> None:
        _, out, _ = call("level", write("a", f"{BASIS},avx_vnni"))
        assert "\n- not in the annotation, since no runsc is known to know it: avx_vnni\n" in out

    def test_every_form_of_a_host(self, call: Call) -> None:
        worker = worker_of_features(amd64(milan_listing().strip()))
        call_of = {
            "listing": str(DATA / "cpuid" / "epyc-milan-vm.runsc.txt"),
            "dump": str(DATA / "cpuid" / "epyc-milan-vm.txt"),
            "mask": write("mask", amd64(milan_listing().strip()).hex),
            "identity": write("identity.json", dumps_identity(worker.default_runtime)),
            "runtimes": write("sandbox-runtimes.json", dumps_runtimes(worker)),
            "lines": write("fleet.jsonl", dumps_worker("one", worker) + "\n" + dumps_worker("two", worker)),
        }
        arguments = [path if form == "lines" else f"{form}={path}" for form, path in call_of.items()]
        status, out, err = call(
            "level", "--json", "--arch", "amd64", "--sandbox-class", "gvisor", *arguments
        )
        (level,) = json.loads(out)["levels"]
        assert (status, err) == (0, "")
        assert level["features"] == sorted(milan_listing().strip().split(","))
        assert [*level["hosts"]] == ["dump", "identity", "listing", "mask", "one", "runtimes", "two"]

    def test_lines_from_standard_input(self, call: Call) -> None:
        line = dumps_worker("w", worker_of_features(amd64(BASIS)))
        assert call("level", "-", stdin=line)[1].startswith(level_name(amd64(BASIS)))

    def test_the_notes_of_a_dump_name_the_host(self, call: Call) -> None:
        line = "   0x{:08x} 0x00: eax=0x{:08x} ebx=0x00000000 ecx=0x{:08x} edx=0x{:08x}\n"
        leaves = (
            (0x1, 0, 0x0C000000, 0x07808111),
            (0x80000000, 0x80000001, 0, 0),
            (0x80000001, 0, 0, 1 << 29),
        )
        dump = "CPU 0:\n" + "".join(line.format(*leaf) for leaf in leaves)
        status, _, err = call("level", f"old={write('dump', dump)}")
        assert status == 0
        assert err.startswith("old: it has `lm` without `syscall`")

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            pytest.param(["a", "a"], "'a' is already that of a; give each its own: NAME=FILE", id="twice"),
            pytest.param(["a", "old"], "'old': without osxsave", id="no osxsave"),
            pytest.param(["arm"], "'arm': of arm64", id="arm64"),
            pytest.param(["a", "typo"], "typo: cpu_features: 'AVX2'", id="a name that is none"),
            pytest.param(["vm"], "'microvm'; only gVisor has levels", id="another class"),
            pytest.param(["bare"], "its default runtime has no readable cpu_features", id="no features"),
            pytest.param(
                ["n=lines"], "lines: each of its lines has a name; leave 'n' out", id="named lines"
            ),
            pytest.param(["broken"], "broken line 2: $", id="a broken line"),
            pytest.param(["runtimes"], "runtimes: a sandbox-runtimes.json does not name", id="no class"),
            pytest.param(["none"], "none: No such file", id="no file"),
            pytest.param(["a", "--weight", "b=2"], "no host is called 'b'", id="a weight of none"),
            pytest.param(["a", "--weight", "a=x"], "'a=x' is not NAME=N", id="no weight"),
        ],
    )
    def test_what_is_refused_is_named(self, call: Call, arguments: list[str], said: str) -> None:
        worker = worker_of_features(amd64(BASIS))
        write("a", BASIS)
        write("old", BASIS.replace("osxsave,", ""))
        write("arm", "fp,asimd")
        write("typo", f"{BASIS},AVX2")
        bare = SandboxRuntime("gvisor", VersionedSandboxCompat.of({"architecture": "amd64"}))
        write("bare", dumps_identity(bare))
        microvm = SandboxRuntime("microvm", VersionedSandboxCompat.of({"cpu_model": "m"}))
        write("vm", dumps_identity(microvm))
        write("lines", dumps_worker("w", worker))
        write("broken", dumps_worker("w", worker) + "{\n")
        write("runtimes", dumps_runtimes(worker))
        status, out, err = call("level", *arguments)
        assert (status, out) == (2, "")
        assert said in err


class TestVerify:
    LEVEL = f"{BASIS},avx"
    SEEN = guest_flags(amd64(LEVEL))

    def test_a_guest_under_its_level(self, call: Call) -> None:
        status, out, err = call("level", "verify", self.LEVEL, "--guest", "-", stdin=cpuinfo(*self.SEEN))
        assert (status, err) == (0, "")
        assert out == f"yes: the guest sees nothing beyond {level_name(amd64(self.LEVEL))}\n"

    def test_a_guest_that_sees_more(self, call: Call) -> None:
        guest = write("guest", cpuinfo(*self.SEEN, "avx2", "aes"))
        status, out, _ = call("level", "verify", self.LEVEL, "--guest", guest)
        assert status == 1
        assert out.startswith("no: the guest sees 2 that level-")
        assert ": aes, avx2\n" in out

    def test_a_guest_that_sees_less(self, call: Call) -> None:
        guest = write("guest", cpuinfo(*(self.SEEN - {"avx"})))
        status, _, err = call("level", "verify", self.LEVEL, "--guest", guest)
        assert (status, err) == (0, "of the level it does not see: avx\n")

    def test_a_cpuinfo_that_gvisor_did_not_write(self, call: Call) -> None:
        guest = write("guest", cpuinfo(*self.SEEN, model="AMD EPYC"))
        status, out, err = call("level", "verify", self.LEVEL, "--guest", guest)
        assert (status, out) == (2, "")
        assert "gVisor did not write this cpuinfo; read it inside the sandbox" in err

    @pytest.mark.parametrize("form", ["listing", "json"])
    def test_the_level_in_a_file(self, call: Call, form: str) -> None:
        host = write("host", self.LEVEL)
        level = host if form == "listing" else write("level.json", call("level", "--json", host)[1])
        guest = write("guest", cpuinfo(*self.SEEN, "avx2"))
        status, out, _ = call("level", "verify", level, "--guest", guest, "--json")
        assert status == 1
        assert json.loads(out) == {
            "level": level_name(amd64(self.LEVEL)),
            "underLevel": False,
            "beyond": ["avx2"],
            "unseen": [],
        }

    def test_an_identity_as_the_level(self, call: Call) -> None:
        worker = worker_of_features(amd64(self.LEVEL))
        level = write("identity.json", dumps_identity(worker.default_runtime))
        assert call("level", "verify", level, "--guest", write("guest", cpuinfo(*self.SEEN)))[0] == 0

    def test_of_several_levels_one_must_be_named(self, call: Call) -> None:
        hosts = [write("a", BASIS), write("b", self.LEVEL)]
        level = write("level.json", call("level", "--json", "--levels", "2", *hosts)[1])
        status, _, err = call("level", "verify", level, "--guest", write("guest", cpuinfo(*self.SEEN)))
        assert status == 2
        assert "it has several levels; give the annotation of one as LEVEL" in err

    def test_help_names_it(self, call: Call) -> None:
        assert "level verify --help" in call("level", "--help")[1]
        assert "level verify [OPTIONS] LEVEL" in call("level", "verify", "--help")[1]


class TestMatrix:
    def test_of_the_demo(self, call: Call, demo: list[str]) -> None:
        status, out, err = call("matrix", *demo)
        assert status == 0
        assert "   1 yes yes yes yes -23 -19 -19 -18  AMD EPYC 7551P 32-Core Processor\n" in out
        assert out.endswith("17 of 64 restores can succeed\n")
        assert "unchecked: the cache line size" in err

    def test_as_json(self, call: Call) -> None:
        _, out, _ = call("matrix", "--json", write("a", BASIS), write("b", f"{BASIS},avx"))
        found = json.loads(out)
        assert found["groups"] == [["a"], ["b"]]
        assert found["rows"][1][0] == {
            "compatible": False,
            "missingFeatures": ["avx"],
            "reasons": ["missing_features"],
        }
        assert (found["canRestore"], found["of"]) == (3, 4)

    def test_workers_by_all_that_they_offer(self, call: Call) -> None:
        def runtime(version: str) -> SandboxRuntime:
            recorded = {"architecture": "amd64", "cpu_features": amd64(BASIS).hex}
            return SandboxRuntime(
                "gvisor", VersionedSandboxCompat.of({**recorded, "sandbox_runtime_hash": version})
            )

        old, both = WorkerRuntimes(runtime("1")), WorkerRuntimes(runtime("2"), (runtime("1"),))
        lines = write("lines", dumps_worker("old", old) + dumps_worker("both", both))
        _, out, _ = call("matrix", lines)
        assert "   1 yes yes  old\n   2  no yes  both\n" in out

    def test_a_page(self, call: Call) -> None:
        status, _, err = call("matrix", "--html", "page.html", write("a", BASIS))
        assert (status, err.splitlines()[-1]) == (0, "written: page.html")
        assert Path("page.html").read_text().startswith("<!DOCTYPE html>")

    def test_a_page_that_cannot_be_written(self, call: Call) -> None:
        status, out, err = call("matrix", "--html", "no/such/page.html", write("a", BASIS))
        assert (status, out) == (2, "")
        assert "no/such/page.html" in err


def test_the_demo_ends_with_the_level_of_its_machines(call: Call) -> None:
    _, out, _ = call("demo")
    level = common_level({host.brand: host.features for host in demo_hosts().hosts}).features
    end = out[out.index("The level under which all of them restore each other's snapshots:") :]
    assert f"{level_name(level)}: 56 CPU features that every host has" in end
    assert annotation(level) in end
    assert all(f"\n- {host.brand}: " in end for host in demo_hosts().hosts)
