"""`python -m mutation`: every small change to the code must make a test fail; a line for each module.

Exit status 1 if a mutant survives that `equivalents.toml` does not name, or if that file names one that
does not survive; each is printed.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from mutation.survivors import (
    DETECTED,
    Comparison,
    Mutant,
    compare,
    parse_diff,
    parse_equivalents,
    parse_results,
)
from mutation.undecorated import undecorated

__all__ = ["main"]

ROOT: Final = Path(__file__).parents[1]
WORK: Final = ROOT / ".cache/mutation"
"""Where the code is copied, changed and tried; mutmut keeps its results there."""
EQUIVALENTS: Final = Path(__file__).with_name("equivalents.toml")
_PACKAGE: Final = "src/substrate_compat"


def main(arguments: Sequence[str]) -> int:
    """Try the mutants of the modules that are named, or of all."""
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("module", nargs="*", help="such as `plan`; all of [tool.mutmut] if none")
    parser.add_argument("--again", action="store_true", help="try only those that survived the last time")
    parser.add_argument("--told", action="store_true", help="try none: tell the results of the last time")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="at once (one for each CPU)")
    options = parser.parse_args(arguments)
    if not options.told:
        names = [f"substrate_compat.{module}.*" for module in options.module]
        if options.again:
            names = [name for name, status in _results(options.module) if status not in DETECTED]
        elif not names:
            shutil.rmtree(WORK, ignore_errors=True)
        _lay_out()
        _mutmut("run", "--max-children", str(options.processes), *names, quiet=False)
    results = _results(options.module)
    survivors = [
        Mutant.of(name, parse_diff(_mutmut("show", name)))
        for name, status in results
        if status not in DETECTED
    ]
    tried = [Mutant.of(name) for name, _ in results]
    equivalents = parse_equivalents(EQUIVALENTS.read_text("utf-8"))
    found = compare(survivors, (entry for entry in equivalents if _tried(entry[0], options.module)))
    timeouts = [Mutant.of(name) for name, status in results if status == "timeout"]
    for line in (*_table(tried, timeouts, found), *_faults(found)):
        print(line)
    return 1 if found.unlisted or found.stale else 0


def _lay_out() -> None:
    """Copy what mutmut changes and what it runs; what it knows of what has not changed stays."""
    for folder in ("src", "tests"):
        shutil.copytree(
            ROOT / folder, WORK / folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy2(ROOT / "pyproject.toml", WORK)
    for path in (WORK / _PACKAGE).glob("*.py"):
        source = path.read_text("utf-8")
        if (changed := undecorated(source)) != source:
            path.write_text(changed, "utf-8")


def _mutmut(*arguments: str, quiet: bool = True) -> str:
    """What mutmut prints; where it is not quiet, it prints that here."""
    done = subprocess.run(
        [sys.executable, "-m", "mutmut", *arguments],
        cwd=WORK,
        stdout=subprocess.PIPE if quiet else None,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"mutmut {arguments[0]} failed with exit status {done.returncode}")
    return done.stdout if quiet else ""


def _results(modules: Sequence[str]) -> list[tuple[str, str]]:
    """The mutants of these modules, or of all, by mutmut's name, each with what became of it."""
    results = parse_results(_mutmut("results", "--all", "true"))
    return [item for item in results.items() if _tried(Mutant.of(item[0]), modules)]


def _tried(mutant: Mutant, modules: Sequence[str]) -> bool:
    return not modules or mutant.module in modules


def _table(tried: Sequence[Mutant], timeouts: Sequence[Mutant], found: Comparison) -> Iterator[str]:
    columns = ("mutants", "killed", "timeout", "equivalent", "survived", "score")
    yield f"{'module':<14}" + "".join(f"{column:>12}" for column in columns)
    listed = [mutant for mutant, _ in found.listed]
    counts = [
        Counter(each.module for each in mutants) for mutants in (tried, timeouts, listed, found.unlisted)
    ]
    rows = [(module, [count[module] for count in counts]) for module in counts[0]]
    for module, (total, *rest) in (*rows, ("all", [count.total() for count in counts])):
        killed = total - sum(rest)
        score = (killed + rest[0]) / total
        yield (
            f"{module:<14}"
            + "".join(f"{number:>12}" for number in (total, killed, *rest))
            + f"{score:>12.1%}"
        )


def _faults(found: Comparison) -> Iterator[str]:
    for mutant in found.unlisted:
        yield f"\nsurvived: {mutant}"
    for mutant in found.stale:
        yield f"\nlisted in {EQUIVALENTS.name}, but no survivor: {mutant}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
