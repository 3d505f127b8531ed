"""The groups of equal workers that an index is made of, and chunks of groups as bitmaps.

- Workers with equal runtimes are a *group*, which is tested once for all of them.
- A *chunk* holds up to 1,024 groups, a row each. For each feature it has one integer, whose bit n says
  that row n lacks the feature, and for each family one whose bit n says that row n offers it. So the rows
  that fit a snapshot cost one `|` for each feature that it needs, however much the masks differ.
- A row never moves, and is not used again when its group is gone. So the rows of a chunk are in the order
  in which the groups were made, and a change touches one chunk, in a fleet of any size.
- How many workers stand in each row is kept as bitmaps too, so that a sum over any rows is a few bit
  counts.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import compress
from operator import or_
from typing import Final, Self

from substrate_compat.bitmaps import COLUMNS, add, columns_of, selectors, subtract, transposed
from substrate_compat.families import Family, Offers
from substrate_compat.identity import WorkerRuntimes

__all__ = ["Chunk", "Group", "Layer", "fewest_missing"]

_ROWS: Final = 1024
_BLOCK: Final = 512


class Group:
    """The workers with the same runtimes, by ascending ticket: in order of insertion.

    They stand in blocks of at most 512, so that one that leaves moves few others and leaves no hole to
    skip.
    """

    __slots__ = ("blocks", "chunk", "offers", "row", "runtimes")

    def __init__(self, runtimes: WorkerRuntimes, offers: Offers) -> None:
        self.runtimes = runtimes
        self.offers = offers
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
        self.lacking = [0] * COLUMNS
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
        self._sizes: list[int] = []

    @property
    def full(self) -> bool:
        """No row is left."""
        return len(self._groups) == _ROWS

    @property
    def sparse(self) -> bool:
        """At least half of a chunk's rows are not in use, so that two such fit into one."""
        return self.live <= _ROWS // 2

    @classmethod
    def of(cls, start: int, groups: Iterable[Group]) -> Self:
        """A chunk of these groups, at most 1,024, in this order: as if each were added."""
        chunk = cls(start)
        masks: list[list[int]] = []
        for group in groups:
            chunk._seat(group)
            masks.append([lacks for lacks, _ in group.offers])
            for power, has in enumerate(selectors(len(group))):
                add(chunk._sizes, has << group.row, power)
        for place, layer in enumerate(chunk.layers):
            layer.lacking = transposed([each[place] if place < len(each) else 0 for each in masks])
        return chunk

    def add(self, group: Group) -> None:
        """Gives the group, which has no workers yet, the next row."""
        self._seat(group)
        bit = 1 << group.row
        for layer, (lacks, _) in zip(self.layers, group.offers, strict=False):
            lacking = layer.lacking
            for column in columns_of(lacks):
                lacking[column] |= bit

    def remove(self, group: Group) -> None:
        """Takes the row of a group, which has no workers left, out of use."""
        self._groups[group.row] = None
        self.live -= 1
        bit = 1 << group.row
        for layer, (_, families) in zip(self.layers, group.offers, strict=False):
            for family in families:
                layer.offering[family] ^= bit
                if not layer.offering[family]:
                    del layer.offering[family]

    def grow(self, row: int) -> None:
        """Counts one worker more in a row."""
        add(self._sizes, 1 << row)

    def shrink(self, row: int) -> None:
        """Counts one worker less in a row that has some."""
        subtract(self._sizes, 1 << row)

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

    def _seat(self, group: Group) -> None:
        """Gives the group the next row, without what it lacks and how many workers it has."""
        group.chunk, group.row = self, len(self._groups)
        self._groups.append(group)
        self.live += 1
        bit = 1 << group.row
        while len(self.layers) < len(group.offers):
            self.layers.append(Layer())
        for layer, (_, families) in zip(self.layers, group.offers, strict=False):
            for family in families:
                layer.offering[family] = layer.offering.get(family, 0) | bit


def fewest_missing(layer: Layer, rows: int, needed: bytes) -> tuple[int, int]:
    """The least number of needed columns that any of the rows lacks, and the rows that lack so few."""
    counts: list[int] = []
    for lacking in compress(layer.lacking, needed):
        add(counts, rows & lacking)
    fewest = 0
    for power, count in reversed(list(enumerate(counts))):
        if rows & ~count:
            rows &= ~count
        else:
            fewest += 1 << power
    return fewest, rows


def _first_ticket(block: tuple[list[int], list[str]]) -> int:
    tickets, _ = block
    return tickets[0]
