"""Masks in fewer digits: their bits moved together over the ranges of numbers that no feature has.

A match is one `&` of two masks, and what it costs goes by their length. A third of the numbers below the
highest have no row in the table, most of them in a few wide gaps.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from substrate_compat.cpufeatures import named_bits
from substrate_compat.cpufeatures_table import Architecture

__all__ = ["COMPACT_BITS", "compact", "moves"]

_WIDEST_GAP: Final = 3


def moves(named: int) -> Iterator[tuple[int, int]]:
    """How to move the bits of `named` together: for each run of them the mask, and how far it goes down.

    A gap is closed if it is wider than 3 bits; a narrower one belongs to the run around it.

    >>> [(bin(run), down) for run, down in moves(0b1100_0000_0101)]
    [('0b111', 0), ('0b110000000000', 7)]
    """
    free = 0
    for first, end in _runs(named):
        yield (1 << end) - (1 << first), first - free
        free += end - first


def _runs(named: int) -> Iterator[tuple[int, int]]:
    """The first number and the one after the last of each run without a gap wider than `_WIDEST_GAP`."""
    numbers = [number for number in range(named.bit_length()) if named >> number & 1]
    first = 0
    for number, following in pairwise([*numbers, numbers[-1] + _WIDEST_GAP + 2]):
        if following - number > _WIDEST_GAP + 1:
            yield first, number + 1
            first = following


_NAMED: Final = named_bits(Architecture.AMD64) | named_bits(Architecture.ARM64)
_MOVES: Final = tuple(moves(_NAMED))


def compact(bits: int) -> int:
    """The mask `bits` with its bits moved together.

    Any two masks are subsets of each other afterwards exactly if they were before.

    >>> compact(0b101), compact(1 << 261) == 1 << COMPACT_BITS - 1
    (5, True)
    """
    return sum([(bits & run) >> down for run, down in _MOVES])


COMPACT_BITS: Final = compact(_NAMED).bit_length()
"""How many bits a compact mask has."""
