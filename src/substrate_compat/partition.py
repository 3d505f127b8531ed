"""Which sets to put together so that what their intersections lose is least.

Each set is a mask with a weight. A group is worth its intersection: it loses, for each of its sets, the
weight times the number of bits that the intersection lacks. Among all ways to make at most k groups the
best is found by dynamic programming over subsets, for up to 12 sets. With more, the two groups whose
union loses least are merged, again and again. Often several pairs lose equally little, and which of them
is taken matters later, so that is tried in several orders; the best 12 groups so found are then put
together by dynamic programming. So the result is never worse than merging to the end.
"""

import heapq
from collections.abc import Iterable, Sequence
from itertools import accumulate, combinations
from typing import Final, NamedTuple

import attrs

__all__ = ["MOST_EXACT", "Partition", "partition"]

MOST_EXACT: Final = 12
"""Up to how many sets a partition is known to be the best."""
_MOST_ORDERS: Final = 64
_MOST_PAIRS: Final = 300_000
"""How many pairs are looked at, roughly: where there are many, they are tried in fewer orders."""
_STEP, _PRIME = 101, 8191


@attrs.frozen
class Partition:
    """A way to put sets together, and what ways with more or fewer groups would lose.

    Attributes:
        groups: the positions of the sets in each group; each position once, in ascending order.
        losses: the least loss found with at most 1 group, 2 groups and so on, one for each set; never
            rising.
    """

    groups: tuple[tuple[int, ...], ...]
    losses: tuple[int, ...]


class _Set(NamedTuple):
    """A set, or several that stay together."""

    mask: int
    weight: int

    def __or__(self, other: "_Set") -> "_Set":
        return _Set(self.mask & other.mask, self.weight + other.weight)

    @property
    def kept(self) -> int:
        return self.weight * self.mask.bit_count()


class _Way(NamedTuple):
    """A way to put sets together, as the positions in each group."""

    loss: int
    groups: tuple[tuple[int, ...], ...]


_NOTHING: Final = _Set(-1, 0)


def partition(masks: Sequence[int], weights: Sequence[int], most: int) -> Partition:
    """At most `most` groups of `masks` that lose least; the fewest groups among equals.

    Args:
        masks: at least one, each different.
        weights: a weight of at least 0 for each mask.
        most: at least 1.

    >>> partition([0b0111, 0b0011, 0b1100], [1, 1, 1], 2)
    Partition(groups=((0, 1), (2,)), losses=(7, 1, 0))
    """
    sets = [_Set(mask, weight) for mask, weight in zip(masks, weights, strict=True)]
    if len(sets) <= MOST_EXACT:
        ways = _put_together(sets, [(position,) for position in range(len(sets))])
    else:
        merged = _merged(sets)
        few = _put_together(sets, merged[MOST_EXACT - 1].groups)
        ways = [*map(min, few, merged), *merged[MOST_EXACT:]]
    best = list(accumulate(ways, _better))
    groups = best[min(most, len(sets)) - 1].groups
    return Partition(tuple(sorted(groups)), tuple(way.loss for way in best))


def _better(fewer: _Way, more: _Way) -> _Way:
    return more if more.loss < fewer.loss else fewer


def _way(sets: Sequence[_Set], groups: Iterable[tuple[int, ...]]) -> _Way:
    groups = tuple(groups)
    kept = sum(_union(sets, group).kept for group in groups)
    return _Way(sum(each.kept for each in sets) - kept, groups)


def _union(sets: Sequence[_Set], group: Iterable[int]) -> _Set:
    union = _NOTHING
    for position in group:
        union |= sets[position]
    return union


def _merged(sets: Sequence[_Set]) -> list[_Way]:
    """The best ways that merging finds to make 1 group, 2 groups and so on."""
    count = len(sets)
    orders = max(1, min(_MOST_ORDERS, _MOST_PAIRS // count**2))
    found = [_merge(sets, 1 + order * _STEP) for order in range(orders)]
    return list(map(min, *found)) if orders > 1 else found[0]


def _merge(sets: Sequence[_Set], factor: int) -> list[_Way]:
    """What merging two groups at a time makes: the ways with 1 group, 2 groups and so on.

    Each group has a number; `factor` makes a rank of it, in an order without order, which decides among
    pairs whose merging loses equally little.
    """
    unions = list(sets)
    ranks = [number * factor % _PRIME for number in range(2 * len(sets))]
    alive: dict[int, tuple[int, ...]] = {number: (number,) for number in range(len(sets))}
    steps = [_way(sets, alive.values())]
    queue = [(_cost(unions[a], unions[b]), ranks[a] + ranks[b], a, b) for a, b in combinations(alive, 2)]
    heapq.heapify(queue)
    while len(alive) > 1:
        *_, a, b = heapq.heappop(queue)
        if a in alive and b in alive:
            number = len(unions)
            group = alive.pop(a) + alive.pop(b)
            unions.append(unions[a] | unions[b])
            for other in alive:
                cost = _cost(unions[other], unions[number])
                heapq.heappush(queue, (cost, ranks[other] + ranks[number], other, number))
            alive[number] = tuple(sorted(group))
            steps.append(_way(sets, alive.values()))
    return steps[::-1]


def _cost(a: _Set, b: _Set) -> int:
    return a.kept + b.kept - (a | b).kept


def _put_together(sets: Sequence[_Set], parts: Sequence[tuple[int, ...]]) -> list[_Way]:
    """The best ways to make 1 group, 2 groups and so on that leave each of `parts` whole."""
    tables = _least_losses([_union(sets, part) for part in parts])
    return [
        _way(
            sets,
            (
                tuple(sorted(position for index in group for position in parts[index]))
                for group in _groups(tables, most)
            ),
        )
        for most in range(1, len(parts) + 1)
    ]


class _Table(NamedTuple):
    """For each subset of the sets: the least loss with at most some number of groups.

    `first` is the group of the subset's lowest member there. Of the subsets with member 0 only the
    full one is filled in, for the group of member 0 is always taken away first.
    """

    losses: list[int]
    first: list[int]


def _least_losses(sets: Sequence[_Set]) -> list[_Table]:
    """The table for at most 1 group, 2 groups and so on; a subset is a mask of positions."""
    full = (1 << len(sets)) - 1
    loss_together = _losses_together(sets)
    tables = [_Table(loss_together, list(range(full + 1)))]
    for _ in sets[1:]:
        fewer = tables[-1].losses
        losses = fewer.copy()
        first = tables[-1].first.copy()
        for subset in (*range(2, full, 2), full):
            rest = others = subset & (subset - 1)
            least = losses[subset]
            while others:
                loss = loss_together[subset ^ others] + fewer[others]
                if loss < least:
                    least = loss
                    first[subset] = subset ^ others
                others = (others - 1) & rest
            losses[subset] = least
        tables.append(_Table(losses, first))
    return tables


def _losses_together(sets: Sequence[_Set]) -> list[int]:
    """What each subset loses as one group."""
    unions = [_NOTHING]
    kept = [0]
    for position, each in enumerate(sets):
        for subset in range(1 << position):
            unions.append(unions[subset] | each)
            kept.append(kept[subset] + each.kept)
    return [0, *(apart - union.kept for apart, union in zip(kept[1:], unions[1:], strict=True))]


def _groups(tables: Sequence[_Table], count: int) -> list[list[int]]:
    """The groups behind the least loss with at most `count` groups, as lists of positions."""
    left = (1 << len(tables)) - 1
    groups = []
    while left:
        count -= 1
        group = tables[count].first[left]
        groups.append([position for position in range(group.bit_length()) if group >> position & 1])
        left ^= group
    return groups
