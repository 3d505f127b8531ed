"""The runtime hash: what enters it, and which digests and references are refused."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate_compat.errors import InputError, quoted
from substrate_compat.runtime_hash import asset_digest, image_digest, sandbox_runtime_hash

A, B, C = "a" * 64, "b" * 64, "c" * 64
PAUSE = f"registry.example/pause:3.10@sha256:{C}"
ASSETS = {"gvisor": A, "kernel.bin": B}


def test_the_hash_is_of_sorted_lines() -> None:
    text = f"asset/gvisor=sha256:{A}\nasset/kernel.bin=sha256:{B}\npause_image=sha256:{C}\n"
    assert sandbox_runtime_hash(ASSETS, PAUSE) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def test_a_name_sorts_by_code_point() -> None:
    text = f"asset/B=sha256:{A}\nasset/a=sha256:{A}\npause_image=sha256:{C}\n"
    expected = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    assert sandbox_runtime_hash({"a": A, "B": A}, PAUSE) == expected


@pytest.mark.parametrize(
    ("assets", "pause"),
    [
        pytest.param(ASSETS, f"other:5000/p/pause:9@sha256:{C}", id="registry and tag"),
        pytest.param(ASSETS, f"pause@sha256:{C}", id="no registry"),
        pytest.param(dict(reversed(ASSETS.items())), PAUSE, id="order"),
        pytest.param({name: f"sha256:{digest}" for name, digest in ASSETS.items()}, PAUSE, id="prefix"),
    ],
)
def test_what_does_not_enter(assets: dict[str, str], pause: str) -> None:
    assert sandbox_runtime_hash(assets, pause) == sandbox_runtime_hash(ASSETS, PAUSE)


@pytest.mark.parametrize(
    ("assets", "pause"),
    [
        pytest.param({**ASSETS, "gvisor": B}, PAUSE, id="a digest"),
        pytest.param({**ASSETS, "shim": A}, PAUSE, id="an asset more"),
        pytest.param({"gvisor": A}, PAUSE, id="an asset less"),
        pytest.param({"runsc": A, "kernel.bin": B}, PAUSE, id="an asset renamed"),
        pytest.param({"gvisor": B, "kernel.bin": A}, PAUSE, id="digests exchanged"),
        pytest.param(ASSETS, f"registry.example/pause:3.10@sha256:{A}", id="the pause image"),
    ],
)
def test_what_enters(assets: dict[str, str], pause: str) -> None:
    assert sandbox_runtime_hash(assets, pause) != sandbox_runtime_hash(ASSETS, PAUSE)


@pytest.mark.parametrize(
    "reference",
    [
        f"reg:5000/p/pause:3.10@sha256:{C}",
        f"pause@sha256:{C}",
        f"registry.k8s.io/pause:3.10@sha256:{C}",
        f"my-reg.example:443/a_b/c__d/pause@sha256:{C}",
    ],
)
def test_pinned_references(reference: str) -> None:
    assert image_digest(reference) == f"sha256:{C}"


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("pause:3.10", "is not pinned by digest"),
        (f"pause@{C}", "is pinned by something else than `sha256:`"),
        (f"pause:sha256:{C}", "is not pinned by digest"),
        (f"pause@sha256:{C}@sha256:{C}", "has two `@`"),
        (f"pause@sha256:{C[1:]}", "has a bad digest: 63 digits instead of 64"),
        (f"pause@sha256:{C}0", "has a bad digest: 65 digits instead of 64"),
        (f"pause@sha256:{C.upper()}", "has a bad digest: upper case"),
        (f"pause@sha512:{C}{C}", "is pinned by something else than `sha256:`"),
        (f"pause@sha256:{C}\n", "has a bad digest: something else than 64 lower-case hex digits"),
        (f"@sha256:{C}", "names no image before the `@`"),
        (f"a b@sha256:{C}", "names no image before the `@`"),
        (f"pause:@sha256:{C}", "names no image before the `@`"),
        (f"{'p' * 953}@sha256:{C}", "has 1025 characters; 1024 are the most"),
        ("", "is not pinned by digest"),
    ],
)
def test_refused_references(reference: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        sandbox_runtime_hash(ASSETS, reference)
    assert caught.value.subject == "pause image"
    assert caught.value.problem == f"{quoted(reference)} {problem}"
    assert caught.value.remedy == "pin it as `path[:tag]@sha256:<64 hex digits>`"


def test_the_longest_reference() -> None:
    reference = f"{'p' * 952}@sha256:{C}"
    assert len(reference) == 1024
    assert image_digest(reference) == f"sha256:{C}"


@pytest.mark.parametrize(
    ("digest", "problem"),
    [
        (f"{A}  runsc", "something else than 64 lower-case hex digits"),
        (f"{A}\n", "something else than 64 lower-case hex digits"),
        ("g" * 64, "something else than 64 lower-case hex digits"),
        (A[1:], "63 digits instead of 64"),
        ("", "0 digits instead of 64"),
        (A.upper(), "upper case"),
        (f"sha512:{A}", "something else than 64 lower-case hex digits"),
        (f"sha256:sha256:{A}", "something else than 64 lower-case hex digits"),
    ],
)
def test_refused_asset_digests(digest: str, problem: str) -> None:
    with pytest.raises(InputError) as of_asset:
        sandbox_runtime_hash({"gvisor": digest}, PAUSE)
    with pytest.raises(InputError) as alone:
        asset_digest(digest)
    assert (of_asset.value.subject, alone.value.subject) == ("digest of asset gvisor", "digest")
    for caught in (of_asset, alone):
        assert caught.value.problem == f"{quoted(digest)} is not a SHA-256 digest: {problem}"
        assert caught.value.remedy == "write the 64 lower-case hex digits, with or without `sha256:`"


def test_a_long_asset_name_is_told_by_its_ends() -> None:
    with pytest.raises(InputError) as caught:
        sandbox_runtime_hash({"a" * 50 + "b" * 51: ""}, PAUSE)
    assert caught.value.subject == f"digest of asset {'a' * 48}...{'b' * 48}"


@pytest.mark.parametrize("name", ["", "a/b", "a=b", "a\nb", "ä", "a" * 129])
def test_refused_asset_names(name: str) -> None:
    with pytest.raises(InputError) as caught:
        sandbox_runtime_hash({name: A}, PAUSE)
    assert caught.value.subject == "asset name"
    assert caught.value.problem == f"{quoted(name)} is not a name"
    assert caught.value.remedy == "a name has 1 to 128 letters, digits, `.`, `_` and `-`"


digests = st.text("0123456789abcdef", min_size=64, max_size=64)
assets = st.dictionaries(st.from_regex(r"[0-9A-Za-z._-]{1,12}", fullmatch=True), digests, max_size=4)


@given(st.tuples(assets, digests), st.tuples(assets, digests))
def test_equal_hashes_mean_equal_inputs(
    one: tuple[dict[str, str], str], other: tuple[dict[str, str], str]
) -> None:
    hashes = [sandbox_runtime_hash(each, f"pause@sha256:{digest}") for each, digest in (one, other)]
    assert (hashes[0] == hashes[1]) == (one == other)


@given(digests)
def test_a_digest_is_the_same_with_and_without_prefix(digits: str) -> None:
    assert asset_digest(digits) == asset_digest(asset_digest(digits)) == f"sha256:{digits}"
