"""The quick proof on this host: no emulation, the same jobs."""

import os
import platform
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from proof.build import GUEST, call
from proof.jobs import Job, MachineAnswer, Outcome, ProofError, pack, unpack
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuid import features_from_cpuid, read_cpuid
from substrate_compat.identity import GVISOR_CACHE_LINE
from substrate_compat.levels import annotation, common_level, guest_flags, levelled, unannounced
from substrate_compat.match import Verdict, explain, stamp
from substrate_compat.probe import parse_cpu_features, parse_cpuinfo, probe, read_cpuinfo, run_cpu_features
from substrate_compat.runtime_hash import sandbox_runtime_hash

__all__ = ["Check", "check_host", "prove_here"]

# The other host of the fleet: the common ground of servers since 2013 that QEMU can show too.
_MODEST: Final = parse_cpu_features(
    "fpu,tsc,msr,pae,cx8,sep,pge,cmov,pat,clflush,mmx,fxsr,sse,sse2,syscall,nx,lm,pni,pclmulqdq,ssse3,cx16,"
    "sse4_1,sse4_2,popcnt,aes,xsave,osxsave,avx,f16c,rdrand,hypervisor,lahf_lm,fsgsbase,smep,erms,xsaveopt",
    Architecture.AMD64,
)
_NAMESPACES: Final = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


@attrs.frozen
class Check:
    """One thing that was checked, and what was found if it does not hold."""

    what: str
    wrong: str = ""


def check_host() -> None:
    """Raise an error if this host cannot run the proof at all."""
    if platform.machine() != "x86_64":
        raise ProofError(f"this proof reads CPUID, which {platform.machine()} does not have")
    if os.geteuid() != 0:
        raise ProofError("runsc makes namespaces here, so this proof needs root: run it with sudo")


def prove_here(runsc: Path, busybox: Path, digests: tuple[str, str], cache: Path) -> Iterator[Check]:
    """Take and restore snapshots on this very host, and compare with the library at each step.

    Args:
        runsc: The program.
        busybox: A statically linked busybox.
        digests: SHA-256 of runsc and of busybox, in hex.
        cache: Where the temporary folder is.

    Raises:
        ProofError: The host does not let runsc run a sandbox.
    """
    host = run_cpu_features(str(runsc), Architecture.AMD64)
    yield _compare_cpuid(host)
    level = common_level({"here": host, "modest": _MODEST}).features
    cold = _run(
        runsc, busybox, cache, {"plain": Job("take"), "level": Job("take", annotation=annotation(level))}
    )
    for title, outcome in cold.outcomes.items():
        if outcome.error:
            raise ProofError(f"{title}: runsc could not run and checkpoint a sandbox here: {outcome.error}")
    yield _compare_guest("plain", cold, guest_flags(host))
    yield _compare_guest("level", cold, guest_flags(levelled(host, level)))
    plain, allowed = cold.outcomes["plain"].checkpoint, annotation(level)
    again = _run(
        runsc,
        busybox,
        cache,
        {
            "plain": Job("restore", plain),
            "level": Job("restore", cold.outcomes["level"].checkpoint, allowed),
            "chain, restored and taken again": Job("retake", plain),
        },
    )
    retaken = again.outcomes["chain, restored and taken again"].checkpoint
    last = _run(runsc, busybox, cache, {"chain, restored once more": Job("restore", retaken)})

    runtime_hash = sandbox_runtime_hash({"runsc": digests[0]}, f"proof/busybox@sha256:{digests[1]}")
    worker = probe(GVISOR_CACHE_LINE, read_cpuinfo(), host, runtime_hash).runtime
    snapshot = stamp(worker)
    needed = (snapshot, stamp(worker, level=level), snapshot, stamp(worker, parent=snapshot))
    outcomes = {**again.outcomes, **last.outcomes}
    for (title, outcome), identity in zip(outcomes.items(), needed, strict=True):
        yield _compare_restore(title, outcome, explain(worker, identity))


def _compare_cpuid(host: FeatureSet) -> Check:
    """The two sources, less the rows that no runsc of today knows."""
    computed = features_from_cpuid(read_cpuid())
    differ = (computed - host | host - computed) - unannounced(computed)
    return Check(
        f"runsc cpu-features and CPUID agree on {len(host)} features",
        f"they differ in {' '.join(differ.names)}" if differ else "",
    )


def _compare_guest(title: str, answer: MachineAnswer, expected: frozenset[str]) -> Check:
    flags = parse_cpuinfo(answer.outcomes[title].cpuinfo).flags
    return Check(
        f"{title}: the guest sees the {len(expected)} flags that the library foretells",
        f"they differ in {' '.join(sorted(flags ^ expected))}" if flags != expected else "",
    )


def _compare_restore(title: str, outcome: Outcome, verdict: Verdict) -> Check:
    failed = outcome.error or f"refused for {' '.join(outcome.missing)}"
    happened = "it went on" if outcome.alive else failed
    holds = outcome.alive and verdict.compatible
    return Check(
        f"{title}: the verdict is {'yes' if verdict.compatible else 'no'}, and {happened}",
        "" if holds else "the verdict should be yes, and the sandbox go on",
    )


def _run(runsc: Path, busybox: Path, cache: Path, jobs: Mapping[str, Job]) -> MachineAnswer:
    """Run the jobs as the emulated machines do, in namespaces that end with them.

    So no sandbox and no mount outlives this, not even if this program is killed.
    """
    with tempfile.TemporaryDirectory(dir=cache, prefix="tmp-") as name:
        folder = Path(name)
        files = {**pack(jobs, busybox.read_bytes()), "bin/runsc": b""}
        for file, data in files.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o755)
        (folder / "bin/runsc").unlink()
        (folder / "bin/runsc").symlink_to(runsc)
        call(
            [*_NAMESPACES, "sh", str(GUEST / "jobs.sh"), str(folder)],
            folder,
            dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}"),
        )
        results = folder / "results"
        answers = {
            str(path.relative_to(results)): path.read_bytes()
            for path in results.rglob("*")
            if path.is_file()
        }
    answers["kernel"] = platform.release().encode()
    answers["cpuinfo"] = Path("/proc/cpuinfo").read_bytes()
    return unpack(answers, jobs)
