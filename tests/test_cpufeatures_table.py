"""Every row of the table: its invariants, its comment, and that it is gVisor's own."""

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from substrate_compat import cpufeatures_table
from substrate_compat.cpufeatures import MASK_BITS, known_features
from substrate_compat.cpufeatures_table import CPUID_REGISTERS, Architecture, Feature
from vectors import feature_table

GVISOR: Final = feature_table()
GVISOR_ROWS: Final = {Architecture.AMD64: GVISOR.amd64, Architecture.ARM64: GVISOR.arm64}
PREFIX: Final = {Architecture.AMD64: "X86Feature", Architecture.ARM64: "ARM64Feature"}
ROWS: Final = {architecture: known_features(architecture) for architecture in Architecture}

both = pytest.mark.parametrize("architecture", Architecture)


def commented_rows() -> Iterator[tuple[int, str]]:
    """The bit of each row that the source has, and the comment at the end of the row."""
    source = Path(cpufeatures_table.__file__)
    with tokenize.open(source) as file:
        tokens = [*tokenize.generate_tokens(file.readline)]
    comments = {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}
    for node in ast.walk(ast.parse(source.read_text())):
        match node:
            case ast.Call(ast.Name("Feature"), [ast.Constant(int(value)), *_], end_lineno=int(line)):
                yield value, comments.get(line, "no comment")
            case _:
                pass


def expected_comment(architecture: Architecture, feature: Feature) -> str:
    constant = f"# {PREFIX[architecture]}{feature.constant}"
    if architecture is Architecture.ARM64:
        return constant
    block, bit = divmod(feature.value, 32)
    return f"{constant}: block {block}, bit {bit}"


def test_the_table_has_175_features_of_amd64_and_24_of_arm64() -> None:
    assert {architecture.value: len(rows) for architecture, rows in ROWS.items()} == {
        "amd64": 175,
        "arm64": 24,
    }


@both
@pytest.mark.parametrize("field", ["value", "name", "constant"])
def test_no_two_rows_share_a_bit_a_name_or_a_constant(architecture: Architecture, field: str) -> None:
    values = [getattr(row, field) for row in ROWS[architecture]]
    assert len({*values}) == len(values)


@both
def test_rows_stand_in_the_order_of_their_bits_and_fit_the_mask(architecture: Architecture) -> None:
    values = [row.value for row in ROWS[architecture]]
    assert values == sorted(values)
    assert values[0] == 0
    assert values[-1] < MASK_BITS


@both
def test_a_name_can_stand_in_a_listing(architecture: Architecture) -> None:
    assert [row.name for row in ROWS[architecture] if not re.fullmatch("[0-9a-z_]+", row.name)] == []


def test_every_block_has_its_register() -> None:
    blocks = {row.value // 32 for row in ROWS[Architecture.AMD64]}
    assert blocks == set(range(len(CPUID_REGISTERS)))
    assert len({*CPUID_REGISTERS}) == len(CPUID_REGISTERS)


def test_every_row_of_the_source_names_its_constant_and_place() -> None:
    assert sorted(commented_rows()) == sorted(
        (row.value, expected_comment(architecture, row))
        for architecture, rows in ROWS.items()
        for row in rows
    )


@both
def test_the_table_is_that_of_gvisor(architecture: Architecture) -> None:
    gvisor = tuple(
        Feature(
            row.value,
            row.name,
            row.constant.removeprefix(PREFIX[architecture]),
            row.in_proc_cpuinfo,
            row.confirmed,
        )
        for row in GVISOR_ROWS[architecture]
    )
    assert ROWS[architecture] == gvisor


def test_bit_and_register_are_those_that_gvisor_names() -> None:
    for row in GVISOR.amd64:
        assert row.block is not None
        assert row.value == 32 * row.block + (row.bit or 0)
        leaf, subleaf, register = CPUID_REGISTERS[row.block]
        place = f"({leaf:02X}H,{subleaf})" if leaf in {0x7, 0xD} else f"{leaf:02X}H"
        assert row.register == f"CPUID.{place}:{register.upper()}"


def test_only_the_two_rows_above_255_are_not_confirmed() -> None:
    assert [row.value for rows in ROWS.values() for row in rows if not row.confirmed] == [260, 261]


def test_constants_without_a_name_have_no_row() -> None:
    assert not {85, 86} & {row.value for row in ROWS[Architecture.AMD64]}


def test_no_row_stands_at_a_bit_of_leaf_0x80000001_that_repeats_leaf_1() -> None:
    """gVisor ignores EDX bits 0x183f3ff there; without a row they are dropped like any other bit."""
    rows = {feature.value - 6 * 32 for feature in ROWS[Architecture.AMD64] if feature.value // 32 == 6}
    assert not [bit for bit in rows if 0x183F3FF >> bit & 1]
