"""Identities as rows: the key, the words of the mask, and the way back."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleets import gvisor
from strategies import feature_sets, near_snapshots, sandbox_runtimes, worker_runtimes
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.errors import InputError
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat, WorkerRuntimes
from substrate_compat.match import matches
from substrate_compat.rows import (
    MAX_ID,
    WORDS,
    Cell,
    attribute_rows,
    identity_key,
    mask_words,
    runtime_from_rows,
    runtime_row,
    snapshot_row,
    worker_rows,
)


def there_and_back(runtime: SandboxRuntime) -> SandboxRuntime:
    attributes = {str(row["key"]): str(row["value"]) for row in attribute_rows(runtime)}
    return runtime_from_rows(runtime_row(runtime), attributes)


def test_identity_key_is_the_hash_of_this_text() -> None:
    text = '["gvisor","v1",[["architecture","arm64"],["model","é\\"\\u0000🦀"]]]'
    runtime = gvisor(model='é"\0🦀', architecture="arm64")
    assert identity_key(runtime) == hashlib.sha256(text.encode()).hexdigest()


@given(sandbox_runtimes, sandbox_runtimes)
def test_identity_key_is_equal_for_equal_identities_only(
    one: SandboxRuntime, other: SandboxRuntime
) -> None:
    assert (identity_key(one) == identity_key(other)) is (one == other)
    assert identity_key(
        SandboxRuntime(one.sandbox_class, one.compat_version, "another name")
    ) == identity_key(one)


@given(sandbox_runtimes)
def test_identity_key_follows_the_published_text(runtime: SandboxRuntime) -> None:
    compat = runtime.compat_version
    pairs = [[key, value] for key, value in sorted(compat.attributes)]
    text = json.dumps(
        [runtime.sandbox_class, compat.schema_version, pairs], separators=(",", ":"), ensure_ascii=False
    )
    assert identity_key(runtime) == hashlib.sha256(text.encode("utf-8")).hexdigest()


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        pytest.param(0, (0, 0, 0, 0, 0, 0), id="empty"),
        pytest.param(1 << 63, (-(2**63), 0, 0, 0, 0, 0), id="bit 63"),
        pytest.param(1 << 64, (0, 1, 0, 0, 0, 0), id="bit 64"),
        pytest.param(1 << 255, (0, 0, 0, -(2**63), 0, 0), id="bit 255"),
        pytest.param((1 << 64) - 1, (-1, 0, 0, 0, 0, 0), id="a full word"),
        pytest.param(1 << 383, (0, 0, 0, 0, 0, -(2**63)), id="the last bit"),
    ],
)
def test_mask_words(bits: int, words: tuple[int, ...]) -> None:
    assert mask_words(bits) == words


@given(feature_sets(), feature_sets())
def test_words_keep_the_subset_test(one: FeatureSet, other: FeatureSet) -> None:
    by_words = all(w & s == s for w, s in zip(mask_words(one.bits), mask_words(other.bits), strict=True))
    assert by_words is (one.bits & other.bits == other.bits)


@given(sandbox_runtimes, st.data())
def test_what_comes_back_matches_as_what_went_in(runtime: SandboxRuntime, data: st.DataObject) -> None:
    back = there_and_back(runtime)
    other = data.draw(st.one_of(sandbox_runtimes, near_snapshots(runtime), st.just(runtime)))
    assert matches(back, other) is matches(runtime, other)
    assert matches(other, back) is matches(other, runtime)
    assert attribute_rows(back) == [
        {**row, "runtime_key": identity_key(back)} for row in attribute_rows(runtime)
    ]


def test_an_unreadable_mask_is_not_an_absent_one() -> None:
    unreadable, absent = gvisor(architecture="amd64", cpu_features="0x1"), gvisor(architecture="amd64")
    assert [runtime_row(unreadable)[word] for word in WORDS] == [None] * 6
    assert [runtime_row(absent)[word] for word in WORDS] == [None] * 6
    assert there_and_back(unreadable) == unreadable
    assert there_and_back(absent) == absent


def test_a_mask_that_this_table_does_not_know_never_matches() -> None:
    row: dict[str, Cell] = {**runtime_row(gvisor(architecture="amd64", cpu_features="1")), "f5": -(2**63)}
    newer = runtime_from_rows(row, {"architecture": "amd64"})
    assert newer.compat_version.get("cpu_features") == f"{1 << 383 | 1:x}"
    assert not matches(newer, newer)


def test_a_word_that_is_no_integer_is_refused() -> None:
    row: dict[str, Cell] = {**runtime_row(gvisor(architecture="amd64", cpu_features="1")), "f2": "5"}
    with pytest.raises(InputError, match=r"^column f2: '5' is no integer of 64 bits$"):
        runtime_from_rows(row, {"architecture": "amd64"})


@given(worker_runtimes())
def test_a_worker_has_a_row_for_each_runtime(runtimes: WorkerRuntimes) -> None:
    assert worker_rows("w", runtimes) == [
        {"worker_id": "w", "position": position, "runtime_key": identity_key(runtime)}
        for position, runtime in enumerate(runtimes)
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "0 characters; 1 to 512 are allowed", id="empty"),
        pytest.param("x" * (MAX_ID + 1), "513 characters; 1 to 512 are allowed", id="long"),
        pytest.param(
            "\ud800", "'\\ud800' has half a surrogate pair: it is no Unicode text", id="surrogate"
        ),
    ],
)
def test_an_id_that_no_database_holds_is_refused(text: str, problem: str) -> None:
    runtime = SandboxRuntime("gvisor", VersionedSandboxCompat.of({"a": "b"}))
    with pytest.raises(InputError) as refused:
        worker_rows(text, WorkerRuntimes(runtime))
    assert (refused.value.subject, refused.value.problem) == ("worker id", problem)
    with pytest.raises(InputError) as refused:
        snapshot_row(text, runtime)
    assert (refused.value.subject, refused.value.problem) == ("snapshot id", problem)
