"""How a figure is taken: short repeats of every contender by turns, and the least of each.

Whatever else the machine does makes a repeat longer, never shorter; and what slows the machine for a
second slows all contenders. So a ratio of such minima is steadier than any mean.
"""

import os
import subprocess
import sys
import timeit
from collections.abc import Callable, Mapping
from typing import Final

__all__ = ["Repeat", "call", "calls", "enough_calls", "first_call", "interleaved"]


Repeat = Callable[[], float]
"""Takes one repeat: seconds a call."""

_REPEAT_SECONDS: Final = 0.002
"""About how long a repeat of a fast call lasts: shorter than a time slice."""

_UNROLLED: Final = 10


def interleaved(contenders: Mapping[str, Repeat], repeats: int) -> dict[str, float]:
    """The least of `repeats` repeats of each contender, in seconds a call."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, repeat in contenders.items():
            taken[name].append(repeat())
    return {name: min(seconds) for name, seconds in taken.items()}


def enough_calls(seconds: Callable[[int], float]) -> int:
    """How many calls make a repeat, if `seconds(n)` is what n calls take."""
    count = 1
    while min(seconds(count) for _ in range(3)) < _REPEAT_SECONDS:
        count *= 2
    return count


def calls(statement: str, names: Mapping[str, object]) -> Repeat:
    """A repeat that runs `statement`, in which `names` are local, many times.

    The statement stands ten times in the timed loop and its names are local, as in the loop of a
    caller: what is timed is the statement, not the loop and not the looking up.
    """
    timer = timeit.Timer(
        "\n".join([statement] * _UNROLLED),
        "; ".join(f"{name} = names[{name!r}]" for name in names),
        globals={"names": dict(names)},
    )
    loops = enough_calls(timer.timeit)
    return lambda: timer.timeit(loops) / (loops * _UNROLLED)


def call(statement: str, names: Mapping[str, object]) -> Repeat:
    """A repeat that runs `statement`, in which `names` are known, once: for one that takes long itself.

    Ten such calls would outlast a time slice, and no repeat would be free of what else the machine does.
    """
    timer = timeit.Timer(statement, globals=dict(names))
    return lambda: timer.timeit(1)


def first_call(statement: str, setup: str = "") -> Repeat:
    """A repeat that runs `statement` once in a fresh interpreter, after `setup`, which is not timed."""
    source = "\n".join(
        (
            setup,
            "from time import perf_counter",
            "start = perf_counter()",
            statement,
            "print(perf_counter() - start)",
        )
    )
    # Without compiled files beside the sources an import would time the compiler.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def repeat() -> float:
        run = subprocess.run(
            [sys.executable, "-P", "-c", source],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=environment,
        )
        return float(run.stdout)

    return repeat
