"""Feature sets: the hex codec, suggestions, and the laws of sets."""

import copy
import pickle
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import amd64_sets, architectures, arm64_sets, feature_sets, masks, pairs_of_sets
from substrate_compat.cpufeatures import (
    MASK_BITS,
    FeatureSet,
    decode_cpu_features,
    encode_cpu_features,
    known_features,
    parse_architecture,
)
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import InputError, quoted
from vectors import gvisor_hosts

AMD64: Final = Architecture.AMD64
ARM64: Final = Architecture.ARM64
EMPTY: Final = FeatureSet(AMD64, 0)

HOSTS: Final = gvisor_hosts()


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], "0"),
        (["pni"], "1"),
        (["pclmulqdq", "pni", "pni"], "3"),
        (["avx2"], f"{1 << 69:x}"),
        (["spec_ctrl_ssbd"], "8" + "0" * 63),
        (["avx512_bf16"], f"{1 << 261:x}"),
    ],
)
def test_names_have_one_mask(names: list[str], text: str) -> None:
    assert encode_cpu_features(names, AMD64) == text
    assert decode_cpu_features(text, AMD64).names == tuple(sorted({*names}))
    assert decode_cpu_features(text.rjust(96, "0"), AMD64).hex == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the mask is empty"),
        ("0" * 97, "97 digits are too many: a mask has at most 96"),
        ("A", "'A' is not a mask"),
        ("0x1", "'0x1' is not a mask"),
        ("0X1", "'0X1' is not a mask"),
        ("+1", "'+1' is not a mask"),
        ("-1", "'-1' is not a mask"),
        (" 1", "' 1' is not a mask"),
        ("1 ", "'1 ' is not a mask"),
        ("1\n", r"'1\n' is not a mask"),
        ("1_0", "'1_0' is not a mask"),
        ("g", "'g' is not a mask"),
        ("\uff11", r"'\uff11' is not a mask"),
        ("\u0661", r"'\u0661' is not a mask"),
        (f"{1 << 85:x}", "bit 85 has no name on amd64: this table ends at bit 261"),
        (f"{1 << 86:x}", "bit 86 has no name on amd64: this table ends at bit 261"),
        (f"{1 << 262:x}", "bit 262 has no name on amd64: this table ends at bit 261"),
        (f"{1 << 383:x}", "bit 383 has no name on amd64: this table ends at bit 261"),
        (f"{1 << 383 | 1 << 85 | 1:x}", "bit 383 has no name on amd64: this table ends at bit 261"),
    ],
    ids=ascii,
)
def test_a_mask_that_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        decode_cpu_features(text, AMD64)
    assert (caught.value.subject, caught.value.problem) == ("cpu_features", problem)
    assert caught.value.remedy == (
        "if a newer node wrote it, upgrade this reader first"
        if problem.startswith("bit")
        else "a mask is lower-case hex digits without prefix, `0` for the empty set"
    )


def test_arm64_ends_at_its_own_bit() -> None:
    with pytest.raises(InputError, match="bit 24 has no name on arm64: this table ends at bit 23"):
        decode_cpu_features("1000000", ARM64)
    assert decode_cpu_features("ffffff", ARM64).names == tuple(
        sorted(row.name for row in known_features(ARM64))
    )


@pytest.mark.parametrize("bits", [-1, 1 << MASK_BITS, -(1 << MASK_BITS)])
def test_bits_that_are_no_mask(bits: int) -> None:
    with pytest.raises(InputError, match=r"^cpu_features: not a mask of 384 bits$"):
        FeatureSet(AMD64, bits)


@pytest.mark.parametrize(
    ("architecture", "name", "remedy"),
    [
        (AMD64, "AVX2", "did you mean 'avx2'?"),
        (AMD64, "sse3", "did you mean 'pni'?"),
        (AMD64, "SSE3", "did you mean 'pni'?"),
        (AMD64, "\u017fse3", "did you mean 'pni'?"),
        (AMD64, "clflushopt", "did you mean 'clfushopt'?"),
        (AMD64, "sse4.1", "did you mean 'sse4_1'?"),
        (AMD64, "sse4-2", "did you mean 'sse4_2'?"),
        (AMD64, "lzcnt", "did you mean 'abm'?"),
        (AMD64, "avx512-bf16", "did you mean 'avx512_bf16'?"),
        (AMD64, " avx2", "did you mean 'avx2'?"),
        (AMD64, "avx2\n", "did you mean 'avx2'?"),
        (ARM64, "ASIMD", "did you mean 'asimd'?"),
        (ARM64, "crc", "did you mean 'crc32'?"),
        (AMD64, "", "`runsc cpu-features` prints the names"),
        (AMD64, "avx2" + "." * 60, "did you mean 'avx2'?"),
        (AMD64, "avx2" + "." * 61, "`runsc cpu-features` prints the names"),
        (AMD64, "zzzzzzzz", "`runsc cpu-features` prints the names"),
        (AMD64, "avx512ifma" * 7, "`runsc cpu-features` prints the names"),
        (AMD64, "x86-64-v2", "name its features: cx16,lahf_lm,pni,popcnt,sse4_1,sse4_2,ssse3"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(
    architecture: Architecture, name: str, remedy: str
) -> None:
    with pytest.raises(InputError) as caught:
        encode_cpu_features(["fp" if architecture is ARM64 else "fpu", name], architecture)
    assert caught.value.subject == "cpu_features"
    assert caught.value.problem == f"{quoted(name)} is not a feature name of gVisor on {architecture}"
    assert caught.value.remedy == remedy


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_the_features_of_a_psabi_level_can_be_named(level: str) -> None:
    with pytest.raises(InputError) as caught:
        encode_cpu_features([level], AMD64)
    names = caught.value.remedy.removeprefix("name its features: ")
    assert FeatureSet.from_names(AMD64, names.split(",")).names == tuple(names.split(","))


@pytest.mark.parametrize("architecture", Architecture)
def test_every_constant_of_gvisor_is_recognised(architecture: Architecture) -> None:
    names = {row.name for row in known_features(architecture)}
    for row in known_features(architecture):
        if row.constant not in names:
            with pytest.raises(InputError) as caught:
                encode_cpu_features([row.constant], architecture)
            assert caught.value.remedy == f"did you mean {row.name!r}?"


@pytest.mark.parametrize(("text", "architecture"), [("amd64", AMD64), ("arm64", ARM64)])
def test_an_architecture_has_one_name(text: str, architecture: Architecture) -> None:
    assert parse_architecture(text) is architecture


@pytest.mark.parametrize("text", ["", "AMD64", "x86_64", "aarch64", "riscv64", "amd64\n"])
def test_another_architecture_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not known") as caught:
        parse_architecture(text)
    assert str(caught.value) == f"architecture: {text!r} is not known; known are amd64 and arm64"


@pytest.mark.parametrize(
    ("architecture", "bits"), [("amd64", 1), (AMD64, "1"), (AMD64, True), (AMD64, 1.0), (None, 0)]
)
def test_a_set_takes_exact_types(architecture: Architecture, bits: int) -> None:
    with pytest.raises(TypeError, match=r"^a FeatureSet takes an Architecture and an int$"):
        FeatureSet(architecture, bits)


@given(feature_sets(), st.integers(0, 96))
def test_a_set_survives_its_text_and_its_names(features: FeatureSet, zeros: int) -> None:
    text = features.hex
    padded = text.rjust(zeros, "0")
    assert FeatureSet.from_hex(features.architecture, padded) == features
    assert encode_cpu_features(features.names, features.architecture) == text
    assert text == "0" or not text.startswith("0")


@given(architectures.flatmap(lambda architecture: st.tuples(st.just(architecture), masks(architecture))))
def test_a_set_has_one_canonical_text(mask: tuple[Architecture, str]) -> None:
    architecture, text = mask
    assert FeatureSet.from_hex(architecture, text).hex == (text.lstrip("0") or "0")


@given(st.text("0123456789abcdefABCDEFxX_+- \n\u0661\uff11", max_size=100))
def test_a_text_is_refused_or_means_the_number_that_it_writes(text: str) -> None:
    try:
        features = decode_cpu_features(text, AMD64)
    except InputError:
        return
    assert set(text) <= set("0123456789abcdef")
    assert features.bits == int(text, 16)


@given(feature_sets())
def test_a_set_holds_its_names_sorted(features: FeatureSet) -> None:
    assert list(features) == sorted(features.names)
    assert len(features) == len(features.names)
    known = {row.name for row in known_features(features.architecture)}
    assert {name for name in known if name in features} == {*features.names}
    assert "no such feature" not in features


@given(pairs_of_sets())
def test_operations_are_those_of_sets_of_names(pair: tuple[FeatureSet, FeatureSet]) -> None:
    one, other = pair
    ours, theirs = {*one.names}, {*other.names}
    assert {*(one & other).names} == ours & theirs
    assert {*(one | other).names} == ours | theirs
    assert {*(one - other).names} == ours - theirs
    assert (one <= other) == (other >= one) == (ours <= theirs)
    assert (one < other) == (other > one) == (ours < theirs)
    assert (one == other) == (ours == theirs)
    assert one != other or hash(one) == hash(other)


@given(feature_sets(), feature_sets(), feature_sets())
def test_the_order_is_partial(a: FeatureSet, b: FeatureSet, c: FeatureSet) -> None:
    same = FeatureSet(a.architecture, a.bits)
    assert a <= same
    assert not a < same
    assert not (a <= b <= a) or a == b
    assert not (a <= b <= c) or a <= c


@given(pairs_of_sets(), st.data())
def test_sets_of_one_architecture_form_a_lattice(
    pair: tuple[FeatureSet, FeatureSet], data: st.DataObject
) -> None:
    a, b = pair
    c = data.draw(feature_sets(st.just(a.architecture)))
    assert a & b <= a <= a | b
    assert a & (a | b) == a | (a & b) == a
    assert (a & b) & c == a & (b & c)
    assert (a | b) | c == a | (b | c)
    assert a & (b | c) == (a & b) | (a & c)
    assert (a <= b) == (a & b == a) == (a | b == b)
    assert (c <= a and c <= b) == (c <= a & b)
    assert (a - b) & b == FeatureSet(a.architecture, 0)
    assert (a - b) | (a & b) == a


@given(amd64_sets, arm64_sets)
def test_sets_of_two_architectures_are_incomparable(amd64: FeatureSet, arm64: FeatureSet) -> None:
    for one, other in ((amd64, arm64), (arm64, amd64)):
        assert [one <= other, one < other, one >= other, one > other, one == other] == [False] * 5
        for combine in (FeatureSet.__and__, FeatureSet.__or__, FeatureSet.__sub__):
            with pytest.raises(InputError) as caught:
                combine(one, other)
            assert str(caught.value) == (
                f"feature sets: one is of {one.architecture}, the other of {other.architecture}; "
                "only sets of one architecture can be combined"
            )


@given(feature_sets())
def test_a_set_survives_pickle_and_copy(features: FeatureSet) -> None:
    for again in (pickle.loads(pickle.dumps(features)), copy.copy(features), copy.deepcopy(features)):
        assert again == features
        assert hash(again) == hash(features)


def test_the_order_gives_every_verdict_of_gvisor() -> None:
    sets = [host.features for host in HOSTS.hosts]
    for snapshot, verdicts in zip(sets, HOSTS.verdicts, strict=True):
        said = "".join("1" if snapshot <= worker else "0" for worker in sets)
        assert said == verdicts.replace("c", "1")


def test_what_one_machine_lacks_of_another_is_the_difference_of_their_listings() -> None:
    machines = {host.listing: (host.features, {*host.listing.split(",")}) for host in HOSTS.hosts}
    for snapshot, needed in machines.values():
        for worker, offered in machines.values():
            assert (snapshot - worker).names == tuple(sorted(needed - offered))
