"""What a group is given: how often to repeat, and the Go peer."""

from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from benchmarks.peer import GoPeer

__all__ = ["CACHE", "Bench"]

CACHE: Final = Path(__file__).parent.parent / ".cache" / "bench"
"""Where built programs, fleets and results are kept; not committed."""


class Bench:
    """One run: a context manager that ends what its groups started.

    Attributes:
        repeats: how often a fast call's repeat is taken.
    """

    def __init__(self, repeats: int) -> None:
        self.repeats = repeats
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @cached_property
    def go(self) -> GoPeer:
        """The Go peer, built and started when a group first asks for it."""
        CACHE.mkdir(parents=True, exist_ok=True)
        return self._stack.enter_context(GoPeer(CACHE / "peer"))
