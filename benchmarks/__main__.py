"""Runs the groups that are named, or all: a table for people, JSON for machines."""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs
from rich.console import Console

from benchmarks import core, index, index_memory, levels, plan, services
from benchmarks.bench import CACHE, Bench
from benchmarks.figures import Figure, as_json, print_table
from benchmarks.peer import PeerError

_PAGE_WIDTH: Final = 140

GROUPS: Final[Mapping[str, Callable[[Bench], Iterator[Figure]]]] = {
    "core": core.figures,
    "plan": plan.figures,
    "levels": levels.figures,
    "services": services.figures,
    "index": index.figures,
    "index_memory": index_memory.figures,
}


def main(arguments: Sequence[str]) -> int:
    """Runs the benchmarks; 0 also where a bar is missed, since a figure is no test."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("group", nargs="*", help=f"any of {', '.join(GROUPS)}; all if none")
    parser.add_argument("--repeats", type=int, default=300, help="of each fast call (300)")
    parser.add_argument("--json", type=Path, default=CACHE.with_suffix(".json"), metavar="FILE")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.group) - set(GROUPS))
    if unknown or options.repeats < 1:
        parser.error(f"no group is called {unknown[0]}" if unknown else "--repeats: at least 1")
    console = Console(width=None if sys.stdout.isatty() else _PAGE_WIDTH)
    figures: list[Figure] = []
    try:
        with Bench(options.repeats) as bench:
            for group in options.group or GROUPS:
                with console.status(f"measuring {group}"):
                    figures += (attrs.evolve(each, group=group) for each in GROUPS[group](bench))
    except PeerError as error:
        print(error, file=sys.stderr)
        return 2
    print_table(figures, console)
    over = sum(figure.over for figure in figures)
    bars = sum(figure.bar is not None for figure in figures)
    print(f"{bars - over} of {bars} bars held. JSON: {options.json}")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    run = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processor": _processor(),
        "figures": [as_json(figure) for figure in figures],
    }
    options.json.write_text(json.dumps(run, indent=2) + "\n")
    return 0


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(errors="replace").split("\n")
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
