"""`python -m fuzzing`: every target for some seconds, each in a process of its own; a line for each.

Exit status 1 if there was a finding. Its input is then in `.cache/fuzz/TARGET/findings`.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs

from fuzzing.target import Target
from fuzzing.targets import TARGETS
from fuzzing.words import DICTIONARY

__all__ = ["main"]

CACHE: Final = Path(".cache/fuzz")
_SHARED_MEMORY: Final = Path("/dev/shm")
_LONGEST: Final = 8_192
_LONGEST_RUN: Final = 20
"""Seconds for one input; what is no more than slow is found by the target itself."""
_STATS: Final = re.compile(r"stat::(number_of_executed_units|average_exec_per_sec): +(\d+)")
_COVERED: Final = re.compile(r"cov: (\d+) ft: (\d+)")


@attrs.frozen
class Result:
    """What became of one target.

    Attributes:
        target: its name.
        executions: how often it was called.
        a_second: how often in a second.
        edges: how many edges of the library's control flow were reached.
        features: how many edges by how often, as libFuzzer counts.
        inputs: how many inputs it keeps, each of which reaches something new.
        findings: files with inputs that must not do what they do; the log alone where there is none.
    """

    target: str
    executions: int
    a_second: int
    edges: int
    features: int
    inputs: int
    findings: tuple[Path, ...]


def main(arguments: Sequence[str]) -> int:
    """Fuzz the targets that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__)
    parser.add_argument("target", nargs="*", help=f"any of {', '.join(TARGETS)}; all if none")
    parser.add_argument("--seconds", type=int, default=20, help="for each target (20)")
    parser.add_argument("--runs", type=int, default=-1, help="at most so many of each target")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.target) - set(TARGETS)):
        parser.error(f"no target is called {unknown[0]}")
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / "words.dict").write_text(DICTIONARY)
    total = 0
    found: list[Path] = []
    _say("target            executions  a second   edges  features  inputs")
    for name in options.target or TARGETS:
        result = fuzz(TARGETS[name], options.seconds, options.runs)
        _say(
            f"{result.target:<16}{result.executions:>12,}{result.a_second:>10,}{result.edges:>8,}"
            f"{result.features:>10,}{result.inputs:>8,}"
        )
        for finding in result.findings:
            _say(f"  finding: {finding}; its log is {CACHE / name / 'log'}")
        total += result.executions
        found.extend(result.findings)
    _say(f"{total:,} executions, {len(found)} findings")
    return 1 if found else 0


def fuzz(target: Target, seconds: int, runs: int) -> Result:
    """Fuzz one target; what it keeps is where it begins the next time."""
    folder = CACHE / target.name
    corpus, seeds, findings = folder / "corpus", folder / "seeds", folder / "findings"
    for each in (corpus, seeds, findings):
        each.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (seeds / str(number)).write_bytes(seed)
    before = set(findings.iterdir())
    command = [
        *(sys.executable, "-m", "fuzzing.engine", target.name, str(corpus), str(seeds)),
        *(f"-dict={CACHE / 'words.dict'}", f"-artifact_prefix={findings}/", f"-max_len={_LONGEST}"),
        *(f"-max_total_time={seconds}", f"-runs={runs}", f"-timeout={_LONGEST_RUN}"),
        *("-print_final_stats=1", "-rss_limit_mb=2048"),
    ]
    memory = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None
    with TemporaryDirectory(dir=memory) as scratch, (folder / "log").open("w") as log:
        environment = {**os.environ, "TMPDIR": scratch}
        status = subprocess.run(command, stdout=log, stderr=log, env=environment, check=False).returncode
    text = (folder / "log").read_text(errors="replace")
    stats = {name: int(number) for name, number in _STATS.findall(text)}
    found = tuple(sorted(set(findings.iterdir()) - before))
    if not found and (status != 0 or not stats):
        found = (folder / "log",)
    edges, features = max(_pairs(text), default=(0, 0))
    return Result(
        target.name,
        stats.get("number_of_executed_units", 0),
        stats.get("average_exec_per_sec", 0),
        edges,
        features,
        len([*corpus.iterdir()]),
        found,
    )


def _pairs(log: str) -> Iterator[tuple[int, int]]:
    return ((int(edges), int(features)) for edges, features in _COVERED.findall(log))


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
