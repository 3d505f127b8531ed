"""Compact masks: as many bits, in the same relation, in fewer digits."""

import pytest
from hypothesis import given

from strategies import amd64_sets, pairs_of_sets
from substrate_compat.compact import COMPACT_BITS, compact, moves
from substrate_compat.cpufeatures import FeatureSet, known_features
from substrate_compat.cpufeatures_table import Architecture


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        pytest.param(0b1, [(0b1, 0)], id="one bit"),
        pytest.param(0b1111, [(0b1111, 0)], id="no gap"),
        pytest.param(0b1_0001, [(0b1_0001 | 0b1110, 0)], id="a gap of three stays"),
        pytest.param(0b10_0001, [(0b1, 0), (0b10_0000, 4)], id="a gap of four is closed"),
        pytest.param(0b11 << 300 | 1, [(1, 0), (0b11 << 300, 299)], id="a wide gap"),
        pytest.param(
            1 << 90 | 0b101 << 40 | 0b11,
            [(0b11, 0), (0b111 << 40, 38), (1 << 90, 85)],
            id="two gaps, and a narrow one between",
        ),
        pytest.param(1 << 2, [(0b111, 0)], id="below the first nothing is closed"),
    ],
)
def test_the_runs_between_wide_gaps_move_together(named: int, expected: list[tuple[int, int]]) -> None:
    assert list(moves(named)) == expected


def test_every_feature_keeps_a_bit_of_its_own_in_order() -> None:
    for architecture in Architecture:
        bits = [compact(1 << feature.value) for feature in known_features(architecture)]
        assert all(bit.bit_count() == 1 for bit in bits)
        assert bits == sorted(set(bits))


def test_the_highest_bit_is_the_last() -> None:
    highest = known_features(Architecture.AMD64)[-1].value
    assert compact(1 << highest) == 1 << COMPACT_BITS - 1
    assert highest + 1 > COMPACT_BITS


@given(pairs_of_sets())
def test_subsets_stay_subsets_and_no_others_become_one(pair: tuple[FeatureSet, FeatureSet]) -> None:
    one, other = pair
    assert (compact(one.bits) & ~compact(other.bits) == 0) is (one <= other)


@given(amd64_sets, amd64_sets)
def test_compacting_goes_with_every_operation(one: FeatureSet, other: FeatureSet) -> None:
    assert compact((one & other).bits) == compact(one.bits) & compact(other.bits)
    assert compact((one | other).bits) == compact(one.bits) | compact(other.bits)
    assert len(one) == compact(one.bits).bit_count()
