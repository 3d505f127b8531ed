"""The best way to group sets, against every way and against plain greedy merging."""

import random
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations
from operator import and_

import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate_compat.partition import Partition, partition

few_masks = st.lists(st.integers(0, 2**16 - 1), min_size=1, max_size=8, unique=True)


def loss(masks: Sequence[int], weights: Sequence[int], groups: Sequence[Sequence[int]]) -> int:
    total = 0
    for group in groups:
        shared = reduce(and_, (masks[position] for position in group))
        total += sum(weights[position] * (masks[position] & ~shared).bit_count() for position in group)
    return total


def every_partition(positions: Sequence[int]) -> Iterator[list[list[int]]]:
    if not positions:
        yield []
        return
    first, *rest = positions
    for groups in every_partition(rest):
        yield [[first], *groups]
        for n, group in enumerate(groups):
            yield [*groups[:n], [first, *group], *groups[n + 1 :]]


def merged_greedily(masks: Sequence[int], weights: Sequence[int]) -> dict[int, int]:
    """What is lost by merging the two groups that lose least, again and again, by how many are left."""
    groups = [[position] for position in range(len(masks))]
    losses = {len(groups): 0}
    while len(groups) > 1:
        a, b = min(
            combinations(groups, 2),
            key=lambda pair: (
                loss(masks, weights, [pair[0] + pair[1]]) - loss(masks, weights, pair),
                pair,
            ),
        )
        groups = [group for group in groups if group not in (a, b)] + [a + b]
        losses[len(groups)] = loss(masks, weights, groups)
    return losses


def test_the_loss_is_the_least_of_all_partitions() -> None:
    source = random.Random(7)
    for _ in range(500):
        count = source.randint(1, 7)
        masks = source.sample(range(1 << 12), count)
        weights = [source.randint(0, 4) for _ in masks]
        least = [10**9] * count
        for groups in every_partition(range(count)):
            for most in range(len(groups), count + 1):
                least[most - 1] = min(least[most - 1], loss(masks, weights, groups))
        for most in range(1, count + 2):
            best = partition(masks, weights, most)
            assert best.losses == tuple(least)
            assert loss(masks, weights, best.groups) == least[min(most, count) - 1]
            assert len(best.groups) <= most


def test_more_sets_than_can_be_tried_are_never_worse_than_merging_greedily() -> None:
    source = random.Random(11)
    better = False
    for count in (13, 14, 17, 20):
        masks = [source.getrandbits(40) for _ in range(count)]
        weights = [source.randint(1, 9) for _ in masks]
        greedily = merged_greedily(masks, weights)
        for most in (1, 3, 8, 12, 13, 16):
            best = partition(masks, weights, most)
            greedy = greedily[min(most, count)]
            assert loss(masks, weights, best.groups) <= greedy
            better |= loss(masks, weights, best.groups) < greedy
    assert better


def test_each_set_has_a_weight() -> None:
    for masks, weights in (([1, 2], [1]), ([1], [1, 1])):
        with pytest.raises(ValueError, match="zip"):
            partition(masks, weights, 1)


def drawn(seed: int, count: int, bits: int, heaviest: int) -> tuple[list[int], list[int]]:
    source = random.Random(seed)
    masks = source.sample(range(1 << bits), count)
    return masks, [source.randint(1, heaviest) for _ in masks]


# What is found need not be the best, but it must not change from one release to the next: a fleet that is
# moved to other levels cannot restore the snapshots that it has.


@pytest.mark.parametrize(
    ("masks", "most", "groups"),
    [
        ([1, 2, 4], 2, ((0,), (1, 2))),
        ([1, 2, 4, 8], 2, ((0,), (1, 2, 3))),
        ([1, 2, 4, 8], 3, ((0,), (1,), (2, 3))),
        ([3, 5, 6, 9, 10, 12], 3, ((0,), (1, 2), (3, 4, 5))),
        (
            [5, 19, 28, 26, 25, 3, 9, 4, 16, 15, 23, 13],
            4,
            ((0, 7), (1, 5, 10), (2, 3, 8), (4, 6, 9, 11)),
        ),
    ],
)
def test_among_groups_that_lose_equally_little_the_same_are_always_taken(
    masks: list[int], most: int, groups: tuple[tuple[int, ...], ...]
) -> None:
    assert partition(masks, [1] * len(masks), most).groups == groups


def test_the_groups_that_are_found_among_20_sets_stay_what_they_were() -> None:
    sets = drawn(1, 20, 8, 1)
    assert partition(*sets, 4) == Partition(
        ((0, 1, 2, 7, 8, 9, 11, 14, 16, 19), (3, 17, 18), (4, 6, 10), (5, 12, 13, 15)),
        (74, 58, 47, 38, 32, 27, 22, 19, 16, 14, 12, 9, 7, 6, 5, 4, 3, 2, 1, 0),
    )
    assert partition(*sets, 14).groups == (
        *((0,), (1, 9), (2, 7, 19), (3, 18), (4, 10), (5, 15), (6,)),
        *((8,), (11,), (12,), (13,), (14,), (16,), (17,)),
    )


@pytest.mark.parametrize(
    ("seed", "count", "first", "total"),
    [
        (3, 30, (120, 100, 85, 73, 65, 55, 49, 42, 39, 35, 31, 28, 25, 23), 911),
        (2, 200, (793, 731, 682, 638, 598, 565, 533, 503, 479, 457, 442, 424, 408, 396), 28_365),
    ],
)
def test_the_losses_that_are_found_stay_what_they_were(
    seed: int, count: int, first: tuple[int, ...], total: int
) -> None:
    losses = partition(*drawn(seed, count, 8, 1), 5).losses
    assert (len(losses), losses[: len(first)], sum(losses)) == (count, first, total)


@given(few_masks, st.integers(1, 9), st.data())
def test_every_set_is_in_one_group_and_the_loss_is_as_said(
    masks: list[int], most: int, data: st.DataObject
) -> None:
    weights = data.draw(st.lists(st.integers(0, 5), min_size=len(masks), max_size=len(masks)))
    best = partition(masks, weights, most)
    assert len(best.groups) <= most
    assert sorted(position for group in best.groups for position in group) == list(range(len(masks)))
    assert list(best.groups) == sorted(tuple(sorted(group)) for group in best.groups)
    assert loss(masks, weights, best.groups) == best.losses[min(most, len(masks)) - 1]
    assert list(best.losses) == sorted(best.losses, reverse=True)
    assert (len(best.losses), best.losses[-1]) == (len(masks), 0)


def test_equals_take_the_fewest_groups() -> None:
    assert partition([1, 3, 7], [0, 0, 0], 3).groups == ((0, 1, 2),)
    masks = [1 << n for n in range(20)]
    assert len(partition(masks, [0] * 20, 20).groups) == 1
