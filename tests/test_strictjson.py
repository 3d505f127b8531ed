"""What a JSON text is refused for, and the laws of what is read and written."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate_compat.errors import InputError
from substrate_compat.strictjson import (
    MAX_BYTES,
    MAX_CONTAINERS,
    MAX_DEPTH,
    MAX_VALUES,
    canonical_json,
    json_line,
    key_path,
    parse_json,
)

# Each row: the text, the subject of the error, and a part of what it says.
REFUSED = [
    pytest.param("", "$", "not JSON", id="empty"),
    pytest.param("{", "$", "line 1, column 2", id="cut-off"),
    pytest.param('{"a": "b"} x', "$", "line 1, column 12", id="more-after-it"),
    pytest.param("{'a': 'b'}", "$", "not JSON", id="single-quotes"),
    pytest.param('{"a": "b",}', "$", "not JSON", id="trailing-comma"),
    pytest.param('"a\nb"', "$", "not JSON", id="newline-in-a-string"),
    pytest.param('{"a": "1", "b": "2", "a": "3"}', "$.a", "twice", id="key-twice"),
    pytest.param(
        '{"a": [0, {"b c": {"d": "1", "d": "1"}}]}', "$.a[1]['b c'].d", "twice", id="key-twice-below"
    ),
    pytest.param('{"a": {"b": 1, "b": 1}, "a": 2}', "$.a", "twice", id="key-twice-above-another"),
    pytest.param('{"a": NaN}', "$.a", "NaN", id="nan"),
    pytest.param("[0, Infinity]", "$[1]", "Infinity", id="infinity"),
    pytest.param("-Infinity", "$", "-Infinity", id="minus-infinity"),
    pytest.param("[" * 8_000 + "]" * 8_000, "$", "nested too deeply", id="lists-in-lists"),
    pytest.param('{"a":' * 65 + "0" + "}" * 65, "$", "nested too deeply", id="objects-in-objects"),
    pytest.param('\ufeff{"a": "b"}', "$", "byte order mark", id="byte-order-mark"),
    pytest.param(b'\xef\xbb\xbf{"a": "b"}', "$", "byte order mark", id="byte-order-mark-in-bytes"),
    pytest.param('{"a": "b"}'.encode("utf-16"), "$", "not UTF-8", id="utf-16"),
    pytest.param(b'{"a": "\xe9"}', "$", "not UTF-8", id="latin-1"),
    pytest.param(b'{"a": "\xed\xa0\x80"}', "$", "not UTF-8", id="half-a-surrogate-pair-in-bytes"),
    pytest.param('{"a": "\ud800"}', "$", "not UTF-8", id="half-a-surrogate-pair"),
    pytest.param(
        b'"' + b"a" * (MAX_BYTES - 1) + b'"', "$", f"longer than {MAX_BYTES}", id="one-byte-too-many"
    ),
    pytest.param(
        '"' + "\u20ac" * (MAX_BYTES // 3) + '"', "$", f"longer than {MAX_BYTES}", id="too-long-in-utf-8"
    ),
    pytest.param("[" * 100_000, "$", "more than 8192 lists and objects", id="lists-in-far-too-many"),
    pytest.param("[" + "[]," * MAX_CONTAINERS + "0]", "$", "more than 8192 lists and objects", id="lists"),
    pytest.param(
        "[" + "{}," * MAX_CONTAINERS + "0]", "$", "more than 8192 lists and objects", id="objects"
    ),
    pytest.param("[" + "0," * MAX_VALUES + "0]", "$", "more than 65536 values", id="values"),
]


@pytest.mark.parametrize(("text", "subject", "problem"), REFUSED)
def test_refuses(text: bytes | str, subject: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_json(text)
    assert caught.value.subject == subject
    assert problem in caught.value.problem
    assert len(str(caught.value)) < 300


def test_reads_as_many_values_as_it_says() -> None:
    assert parse_json("[" + "[]," * (MAX_CONTAINERS - 1) + "0]") == [*([[]] * (MAX_CONTAINERS - 1)), 0.0]
    nested = parse_json("[" * MAX_DEPTH + "0" + "]" * MAX_DEPTH)
    for _ in range(MAX_DEPTH):
        assert isinstance(nested, list)
        (nested,) = nested
    assert nested == 0.0
    assert parse_json("[" + "0," * (MAX_VALUES - 1) + "0]") == [0.0] * MAX_VALUES


def test_reads_a_text_of_the_greatest_length() -> None:
    assert parse_json(b'"' + b"a" * (MAX_BYTES - 2) + b'"') == "a" * (MAX_BYTES - 2)


@pytest.mark.parametrize("text", ["9" * 5_000, "-1e999", "5"])
def test_reads_every_number_as_a_float(text: str) -> None:
    value = parse_json(text)
    assert isinstance(value, float)
    assert value == 5 or math.isinf(value)


def test_writes_in_one_form() -> None:
    value = {"b": ["\u00e9", None], "a": "\n"}
    assert canonical_json(value) == '{\n  "a": "\\n",\n  "b": [\n    "\u00e9",\n    null\n  ]\n}\n'
    assert json_line(value) == '{"a":"\\n","b":["\u00e9",null]}\n'


@pytest.mark.parametrize(
    ("key", "step"), [("a_B-9", ".a_B-9"), ("", "['']"), ("a.b", "['a.b']"), ("\n", r"['\n']")]
)
def test_a_step_of_a_path_is_plain_where_it_can_be(key: str, step: str) -> None:
    assert key_path(key) == step


unicode_texts = st.text(st.characters(codec="utf-8"), max_size=5)
values = st.recursive(
    st.none() | st.booleans() | unicode_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(unicode_texts, inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_what_was_written_is_read_again(value: object) -> None:
    assert parse_json(canonical_json(value)) == value
    assert parse_json(canonical_json(value).encode()) == value
    assert parse_json(json_line(value)) == value
    assert json_line(value).count("\n") == 1


@given(
    st.text(st.sampled_from('{}[],:"ab\\u0 \n1N'), max_size=12)
    | st.text(max_size=8)
    | st.binary(max_size=8)
)
def test_any_text_is_read_as_json_reads_it_or_refused(text: bytes | str) -> None:
    try:
        value = parse_json(text)
    except InputError:
        return
    assert value == json.loads(text)
