"""What both loops share: waiting, and telling a person."""

from typing import Final

import attrs

from substrate_compat.errors import InputError

__all__ = ["NEVER", "Backoff", "Report"]

NEVER: Final = float("inf")
"""When a state is due that rests until something changes."""

_MOST_DOUBLINGS: Final = 60


@attrs.frozen
class Backoff:
    """How long to wait after failures in a row: from the `first` delay to the `longest`, doubling.

    Attributes:
        first: in seconds.
        longest: in seconds.

    Raises:
        InputError: not 0 < first <= longest < infinity.

    >>> [Backoff(0.5, 3.0).delay(failures) for failures in (1, 2, 3, 4)]
    [0.5, 1.0, 2.0, 3.0]
    """

    first: float
    longest: float

    def __attrs_post_init__(self) -> None:
        if not 0 < self.first <= self.longest < NEVER:
            raise InputError("backoff", f"{self.first} s doubling to {self.longest} s is no backoff")

    def delay(self, failures: int) -> float:
        """The wait after so many failures in a row, at least 1."""
        return min(self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), self.longest)


@attrs.frozen
class Report:
    """To do: tell a person of a `problem`; nothing follows until something changes."""

    problem: str
