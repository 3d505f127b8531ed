"""Errors carry fields, survive pickle and copy, and are what a caller already catches."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate_compat.errors import (
    CompatError,
    ConfigError,
    FileError,
    HostError,
    InputError,
    quoted,
    require_size,
    shortened,
    visible,
)

ERRORS: tuple[tuple[type[CompatError], type[Exception]], ...] = (
    (InputError, ValueError),
    (ConfigError, ValueError),
    (HostError, OSError),
    (FileError, OSError),
)
MIB = 1 << 20


def fields(error: CompatError) -> tuple[str, str, str, str]:
    return error.subject, error.problem, error.remedy, str(error)


@pytest.mark.parametrize(("kind", "builtin"), ERRORS)
def test_an_error_is_also_the_builtin_that_a_caller_catches(
    kind: type[CompatError], builtin: type[Exception]
) -> None:
    with pytest.raises(builtin) as caught:
        raise kind("runsc", "no such program", "name another")
    assert isinstance(caught.value, CompatError)


@pytest.mark.parametrize(("kind", "_"), ERRORS)
@pytest.mark.parametrize(
    ("remedy", "text"),
    [("name another", "runsc: no such program; name another"), ("", "runsc: no such program")],
)
def test_an_error_keeps_its_fields_through_pickle_and_copy(
    kind: type[CompatError], _: type[Exception], remedy: str, text: str
) -> None:
    error = kind("runsc", "no such program", remedy)
    assert fields(error) == ("runsc", "no such program", remedy, text)
    assert error.args == (text,)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is kind
        assert fields(again) == fields(error)


def test_an_os_error_without_a_number_claims_none() -> None:
    error = HostError("runsc", "no such program")
    assert (error.errno, error.filename) == (None, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "''"),
        ("avx2\n", r"'avx2\n'"),
        ("it's", '"it\'s"'),
        ("\x1b[31m", r"'\x1b[31m'"),
        ("\u202eevil", r"'\u202eevil'"),
        ("\ud800", r"'\ud800'"),
        ("f" * 80, "'" + "f" * 80 + "'"),
        ("f" * 81, "'" + "f" * 80 + "'... (81 characters)"),
    ],
)
def test_quoted(text: str, expected: str) -> None:
    assert quoted(text) == expected


@given(st.text(max_size=200))
def test_a_quoted_text_is_one_short_line_of_plain_ascii(text: str) -> None:
    assert quoted(text).isascii()
    assert quoted(text).isprintable()
    assert len(quoted(text)) <= 80 * len(r"\U0010ffff") + len("''... (200 characters)")


@given(st.text())
def test_a_visible_text_can_be_seen_and_stays_as_it_is(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    assert visible(shown) == shown
    assert (shown == text) is text.isprintable()


@given(st.text(max_size=300), st.integers(5, 250))
def test_a_shortened_text_has_both_ends_and_no_more_than_was_said(text: str, longest: int) -> None:
    shown = visible(text)
    half = (longest - 3) // 2
    cut = shortened(text, longest)
    assert len(cut) <= longest
    assert cut == (shown if len(shown) <= longest else f"{shown[:half]}...{shown[-half:]}")


def test_a_text_of_8_mib_is_read_and_a_longer_one_is_not() -> None:
    require_size("cpuinfo", " " * (8 * MIB))
    with pytest.raises(InputError) as caught:
        require_size("cpuinfo", " " * (8 * MIB + 1))
    assert str(caught.value) == "cpuinfo: 8388609 characters; 8 MiB are the most"


@pytest.mark.parametrize("text", ["\U000e0001" * 200, "\udca3" * 1_000, "a" * 201])
def test_a_subject_has_at_most_200_characters_also_where_they_are_escaped(text: str) -> None:
    assert len(str(InputError(text, "b"))) <= 203
