"""The groups of equal workers that an index is made of, and chunks of groups as bitmaps.

- Workers with equal runtimes are a *group*, which is tested once for all of them.
- A *chunk* holds up to 1,024 groups, a row each. For each feature it has one integer, whose bit n says
  that row n lacks the feature, and for each family one whose bit n says that row n offers it. So the rows
  that fit a snapshot cost one `|` for each feature that it needs, however much the masks differ.
- A row never moves, and is not used again when its group is gone. So the rows of a chunk are in the order
  in which the groups were made, and a change touches one chunk, in a fleet of any size.
- Where rows are counted, the counts are bitmaps too: integer k has bit k of every row's count. A sum over
  any rows is then a few bit counts.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import reduce
from itertools import compress
from operator import or_
from typing import Final

from substrate_compat.families import Family, Offers
from substrate_compat.identity import MATCH_BITS, WorkerRuntimes

__all__ = ["Chunk", "Group", "Layer", "fewest_missing", "selectors"]

_ROWS: Final = 1024
_BLOCK: Final = 512

_COLUMNS: Final = range(MATCH_BITS.bit_length())
_ZERO_AND_ONE: Final = bytes.maketrans(b"01", b"\0\1")


def selectors(mask: int) -> bytes:
    r"""The bits of a mask, the lowest first, each as a byte that is 0 or 1: what `compress` takes.

    >>> selectors(0b110)
    b'\x00\x01\x01'
    """
    return f"{mask:b}"[::-1].encode().translate(_ZERO_AND_ONE)


class Group:
    """The workers with the same runtimes, by ascending ticket: in order of insertion.

    They stand in blocks of at most 512, so that one that leaves moves few others and leaves no hole to
    skip.
    """

    __slots__ = ("blocks", "chunk", "row", "runtimes")

    def __init__(self, runtimes: WorkerRuntimes) -> None:
        self.runtimes = runtimes
        self.blocks: list[tuple[list[int], list[str]]] = []
        self.chunk: Chunk
        self.row: int

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for tickets, worker_ids in self.blocks:
            yield from zip(tickets, worker_ids, strict=True)

    def __len__(self) -> int:
        return sum(len(tickets) for tickets, _ in self.blocks)

    def first_ticket(self) -> int:
        """The ticket of the worker that stands first; there must be one."""
        return _first_ticket(self.blocks[0])

    def append(self, ticket: int, worker_id: str) -> None:
        """Adds a worker; no ticket may be higher."""
        if not self.blocks or len(self.blocks[-1][0]) == _BLOCK:
            self.blocks.append(([ticket], [worker_id]))
        else:
            tickets, worker_ids = self.blocks[-1]
            tickets.append(ticket)
            worker_ids.append(worker_id)
        self.chunk.grow(self.row)

    def remove(self, ticket: int) -> None:
        """Removes the worker with this ticket."""
        at = bisect_right(self.blocks, ticket, key=_first_ticket) - 1
        tickets, worker_ids = self.blocks[at]
        position = bisect_left(tickets, ticket)
        del tickets[position], worker_ids[position]
        if not tickets:
            del self.blocks[at]
        self.chunk.shrink(self.row)


class Layer:
    """What the groups of a chunk offer with their first mask, or with their second, and so on."""

    __slots__ = ("lacking", "offering")

    def __init__(self) -> None:
        self.lacking = [0] * len(_COLUMNS)
        self.offering: dict[Family, int] = {}

    def lacking_any(self, needed: bytes) -> int:
        """The rows that lack any of the needed bits."""
        return reduce(or_, compress(self.lacking, needed), 0)

    def offering_any(self, families: set[Family]) -> int:
        """The rows that offer any of the families."""
        offered = self.offering.keys() & families
        return reduce(or_, map(self.offering.__getitem__, offered), 0)


class Chunk:
    """Up to 1,024 groups, in the order in which they were made, as bitmaps over their rows.

    Attributes:
        start: no ticket of its workers is lower.
        layers: one for each mask of the group that has the most; one where every group has one.
        live: how many groups still have their row.
    """

    __slots__ = ("_groups", "_sizes", "layers", "live", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.layers: list[Layer] = []
        self.live = 0
        self._groups: list[Group | None] = []
        # Integer k has bit k of every group's number of workers: the sum over any rows is then a few
        # bit counts.
        self._sizes: list[int] = []

    @property
    def full(self) -> bool:
        """No row is left."""
        return len(self._groups) == _ROWS

    @property
    def sparse(self) -> bool:
        """At least half of a chunk's rows are not in use, so that two such fit into one."""
        return self.live <= _ROWS // 2

    def add(self, group: Group, offers: Offers) -> None:
        """Gives the group the next row."""
        group.chunk, group.row = self, len(self._groups)
        self._groups.append(group)
        self.live += 1
        bit = 1 << group.row
        while len(self.layers) < len(offers):
            self.layers.append(Layer())
        for layer, (lacks, families) in zip(self.layers, offers.items(), strict=False):
            for column in compress(_COLUMNS, selectors(lacks)):
                layer.lacking[column] |= bit
            for family in families:
                layer.offering[family] = layer.offering.get(family, 0) | bit
        for power in compress(_COLUMNS, selectors(len(group))):
            _add(self._sizes, bit, power)

    def remove(self, group: Group, offers: Offers) -> None:
        """Takes the row of a group, which has no workers left, out of use."""
        self._groups[group.row] = None
        self.live -= 1
        others = ~(1 << group.row)
        for layer, families in zip(self.layers, offers.values(), strict=False):
            for family in families:
                left = layer.offering.pop(family, 0) & others
                if left:
                    layer.offering[family] = left

    def grow(self, row: int) -> None:
        """Counts one worker more in a row."""
        _add(self._sizes, 1 << row)

    def shrink(self, row: int) -> None:
        """Counts one worker less in a row that has some."""
        _subtract(self._sizes, 1 << row)

    def fitting(self, families: set[Family], needed: bytes) -> int:
        """The rows that offer one of the families with all the needed columns."""
        rows = 0
        for layer in self.layers:
            offering = layer.offering_any(families)
            if offering:
                rows |= offering & ~layer.lacking_any(needed)
        return rows

    def workers(self, rows: int) -> int:
        """How many workers stand in the rows."""
        return sum((rows & size).bit_count() << power for power, size in enumerate(self._sizes))

    def groups(self, rows: int | None = None) -> Iterator[Group]:
        """The groups of the rows, or all, in the order in which they were made."""
        chosen = self._groups if rows is None else compress(self._groups, selectors(rows))
        return (group for group in chosen if group is not None)


def fewest_missing(layer: Layer, rows: int, needed: bytes) -> tuple[int, int]:
    """The least number of needed columns that any of the rows lacks, and the rows that lack so few."""
    counts: list[int] = []
    for lacking in compress(layer.lacking, needed):
        _add(counts, rows & lacking)
    fewest = 0
    for power, count in reversed(list(enumerate(counts))):
        if rows & ~count:
            rows &= ~count
        else:
            fewest += 1 << power
    return fewest, rows


def _add(counts: list[int], rows: int, power: int = 0) -> None:
    """Adds 2**power to the count of each of the rows; bit k of all the counts is one integer."""
    counts.extend([0] * (power - len(counts)))
    while rows:
        if power == len(counts):
            counts.append(0)
        before = counts[power]
        counts[power] = before ^ rows
        rows &= before
        power += 1


def _subtract(counts: list[int], rows: int) -> None:
    """Subtracts 1 from the count of each of the rows, of which none is 0."""
    power = 0
    while rows:
        counts[power] ^= rows
        rows &= counts[power]
        power += 1


def _first_ticket(block: tuple[list[int], list[str]]) -> int:
    tickets, _ = block
    return tickets[0]
