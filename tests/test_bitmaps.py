"""Bitmaps over rows, against lists of rows and plain counting."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate_compat.bitmaps import COLUMNS, add, columns_of, selectors, subtract, transposed

masks = st.integers(0, (1 << COLUMNS) - 1) | st.integers(0, COLUMNS - 1).map(lambda column: 1 << column)
few_rows = st.integers(0, 63)


def positions(mask: int) -> list[int]:
    return [position for position in range(mask.bit_length()) if mask >> position & 1]


def counted(counts: list[int]) -> Counter[int]:
    """The count of each row, of which bit k stands in `counts[k]`."""
    return Counter(
        {row: sum((count >> row & 1) << power for power, count in enumerate(counts)) for row in range(6)}
    )


@pytest.mark.parametrize(
    ("mask", "expected"), [(0, [0]), (1, [1]), (0b110, [0, 1, 1]), (0b1000, [0, 0, 0, 1])]
)
def test_the_selectors_of_a_mask_are_its_bits_from_the_lowest(mask: int, expected: list[int]) -> None:
    assert list(selectors(mask)) == expected


def test_the_transposed_of_nothing_is_nothing_in_every_column() -> None:
    assert transposed([0]) == [0] * COLUMNS


@given(st.lists(masks, min_size=1, max_size=9))
def test_masks_turned_on_their_side_have_the_same_bits(rows: list[int]) -> None:
    columns = transposed(rows)
    assert len(columns) == COLUMNS
    assert [positions(column) for column in columns] == [
        [number for number, row in enumerate(rows) if row >> column & 1] for column in range(COLUMNS)
    ]
    assert [list(columns_of(row)) for row in rows] == [positions(row) for row in rows]


@given(st.lists(st.tuples(few_rows, st.integers(0, 5)), max_size=12))
def test_counts_add_up(additions: list[tuple[int, int]]) -> None:
    counts: list[int] = []
    expected: Counter[int] = Counter()
    for rows, power in additions:
        add(counts, rows, power)
        expected.update(dict.fromkeys(positions(rows), 1 << power))
    assert +counted(counts) == +expected


@given(st.lists(few_rows, max_size=12), st.data())
def test_what_was_added_can_be_subtracted(additions: list[int], data: st.DataObject) -> None:
    counts: list[int] = []
    for rows in additions:
        add(counts, rows)
    expected = counted(counts)
    for rows in data.draw(st.lists(st.sampled_from(additions), unique=True)) if additions else []:
        subtract(counts, rows)
        expected.subtract(positions(rows))
    assert counted(counts) == expected


def test_one_is_added_by_default() -> None:
    counts: list[int] = []
    for _ in range(5):
        add(counts, 0b101)
    assert counts == [0b101, 0, 0b101]
    for left in range(4, -1, -1):
        subtract(counts, 0b101)
        assert counted(counts) == Counter({row: left if row in {0, 2} else 0 for row in range(6)})
