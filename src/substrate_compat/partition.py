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
from typing import Final, NamedTuple, Self

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
    """A set, or several that stay together: what they share, and how much that is worth."""

    mask: int
    weight: int
    kept: int

    @classmethod
    def of(cls, mask: int, weight: int) -> Self:
        return cls(mask, weight, weight * mask.bit_count())

    def __or__(self, other: "_Set") -> "_Set":
        return _Set.of(self.mask & other.mask, self.weight + other.weight)


class _Way(NamedTuple):
    """A way to put sets together, as the positions in each group."""

    loss: int
    groups: tuple[tuple[int, ...], ...]


class _Merging(NamedTuple):
    """An order of merging two groups at a time, to the end.

    Each set is a group, numbered by its position; each merging makes one with the next number. `losses` are
    those with 1 group, 2 groups and so on.
    """

    losses: list[int]
    merges: list[tuple[int, int]]

    def groups(self, count: int) -> tuple[tuple[int, ...], ...]:
        """The positions in each group once `count` groups are left."""
        sets = len(self.losses)
        held: dict[int, tuple[int, ...]] = {number: (number,) for number in range(sets)}
        for number, (a, b) in enumerate(self.merges[: sets - count], sets):
            held[number] = held.pop(a) + held.pop(b)
        return tuple(tuple(sorted(group)) for group in held.values())


_NOTHING: Final = _Set(-1, 0, 0)


def partition(masks: Sequence[int], weights: Sequence[int], most: int) -> Partition:
    """At most `most` groups of `masks` that lose least; the fewest groups among equals.

    Args:
        masks: at least one, each different.
        weights: a weight of at least 0 for each mask.
        most: at least 1.

    >>> partition([0b0111, 0b0011, 0b1100], [1, 1, 1], 2)
    Partition(groups=((0, 1), (2,)), losses=(7, 1, 0))
    """
    sets = [_Set.of(mask, weight) for mask, weight in zip(masks, weights, strict=True)]
    if len(sets) <= MOST_EXACT:
        merged: list[_Merging] = []
        ways = _put_together(sets, [(position,) for position in range(len(sets))])
        found = [way.loss for way in ways]
    else:
        merged = _merged(sets)
        ways = _put_together(sets, merged[MOST_EXACT - 1].groups(MOST_EXACT))
        found = [merging.losses[index] for index, merging in enumerate(merged)]
        found[:MOST_EXACT] = map(min, found, (way.loss for way in ways))
    losses = tuple(accumulate(found, min))
    fewest = losses.index(losses[min(most, len(sets)) - 1])
    if fewest < len(ways) and ways[fewest].loss == losses[fewest]:
        groups = ways[fewest].groups
    else:
        groups = merged[fewest].groups(fewest + 1)
    return Partition(tuple(sorted(groups)), losses)


def _way(sets: Sequence[_Set], groups: Iterable[tuple[int, ...]]) -> _Way:
    groups = tuple(groups)
    kept = sum(_union(sets, group).kept for group in groups)
    return _Way(sum(each.kept for each in sets) - kept, groups)


def _union(sets: Sequence[_Set], group: Iterable[int]) -> _Set:
    union = _NOTHING
    for position in group:
        union |= sets[position]
    return union


def _merged(sets: Sequence[_Set]) -> list[_Merging]:
    """For 1 group, 2 groups and so on, the order of merging that loses least there."""
    count = len(sets)
    orders = min(_MOST_ORDERS, 1 + _MOST_PAIRS // count**2)
    tried = [_merge(sets, 1 + order * _STEP) for order in range(orders)]
    return [min(tried, key=lambda merging: merging.losses[index]) for index in range(count)]


def _merge(sets: Sequence[_Set], factor: int) -> _Merging:
    """Merge two groups at a time until there is one.

    Each group has a number; `factor` makes a rank of it, in an order without order, which decides among
    pairs whose merging loses equally little.
    """
    unions = list(sets)
    ranks = [number * factor % _PRIME for number in range(2 * len(sets))]
    alive = set(range(len(sets)))
    queue = [(_cost(unions[a], unions[b]), ranks[a] + ranks[b], a, b) for a, b in combinations(alive, 2)]
    heapq.heapify(queue)
    losses = [0]
    merges = []
    while len(alive) > 1:
        cost, _, a, b = heapq.heappop(queue)
        if a in alive and b in alive:
            alive -= {a, b}
            number = len(unions)
            union = unions[a] | unions[b]
            for other in alive:
                pair = (_cost(unions[other], union), ranks[other] + ranks[number], other, number)
                heapq.heappush(queue, pair)
            unions.append(union)
            alive.add(number)
            losses.append(losses[-1] + cost)
            merges.append((a, b))
    return _Merging(losses[::-1], merges)


def _cost(a: _Set, b: _Set) -> int:
    """What is lost by merging; written out, as this is done for each pair."""
    mask, weight, kept = a
    other_mask, other_weight, other_kept = b
    return kept + other_kept - (weight + other_weight) * (mask & other_mask).bit_count()


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
    """What each subset loses as one group, less what its sets keep apart, which never changes."""
    unions = [_NOTHING]
    for each in sets:
        unions += [union | each for union in unions]
    return [-union.kept for union in unions]


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
