"""Integers as bitmaps over the rows of a chunk: taken apart, turned on their side, and added up.

A column is a bit of what snapshots need and workers lack (`VersionedSandboxCompat.needs`, `.lacks`).

Counts of rows are bitmaps as well: integer k of a list has bit k of every row's count. One is added to the
counts of any set of rows in a few operations, however many rows there are.
"""

from collections.abc import Iterator
from itertools import compress
from typing import Final

from substrate_compat.identity import MATCH_BITS

__all__ = ["COLUMNS", "add", "columns_of", "selectors", "subtract", "transposed"]

COLUMNS: Final = MATCH_BITS.bit_length()
"""How many columns there are."""

_ZERO_AND_ONE: Final = bytes.maketrans(b"01", b"\0\1")


def selectors(mask: int) -> bytes:
    r"""The bits of a mask, the lowest first, each as a byte that is 0 or 1: what `compress` takes.

    >>> selectors(0b110)
    b'\x00\x01\x01'
    """
    return f"{mask:b}"[::-1].encode().translate(_ZERO_AND_ONE)


def columns_of(mask: int) -> Iterator[int]:
    """The columns that a mask has, ascending.

    >>> list(columns_of(0b110))
    [1, 2]
    """
    return compress(range(COLUMNS), selectors(mask))


def transposed(masks: list[int]) -> list[int]:
    """For each column an integer whose bit n says that mask n has it.

    >>> transposed([0b01, 0b11, 0b10])[:3]
    [3, 6, 0]
    """
    digits = "".join([f"{mask:0{COLUMNS}b}" for mask in reversed(masks)])
    return [int(digits[COLUMNS - 1 - column :: COLUMNS], 2) for column in range(COLUMNS)]


def add(counts: list[int], rows: int, power: int = 0) -> None:
    """Adds 2**power to the count of each of the rows.

    >>> counts = []
    >>> for rows in (0b11, 0b10, 0b11):
    ...     add(counts, rows)
    >>> counts
    [2, 3]
    """
    counts.extend([0] * (power - len(counts)))
    while rows:
        if power == len(counts):
            counts.append(0)
        before = counts[power]
        counts[power] = before ^ rows
        rows &= before
        power += 1


def subtract(counts: list[int], rows: int) -> None:
    """Subtracts 1 from the count of each of the rows, of which none is 0.

    >>> counts = [0b10, 0b11]
    >>> subtract(counts, 0b01)
    >>> counts
    [3, 2]
    """
    power = 0
    while rows:
        counts[power] ^= rows
        rows &= counts[power]
        power += 1
