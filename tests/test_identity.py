"""Identities: their limits, each met and broken by one, and what two of them are equal by."""

import copy
import pickle
from collections.abc import Sequence

import pytest

from substrate_compat import identity
from substrate_compat.errors import InputError
from substrate_compat.identity import (
    GVISOR,
    GVISOR_CACHE_LINE,
    MICROVM,
    SandboxRuntime,
    VersionedSandboxCompat,
    WorkerRuntimes,
)

SMALL = VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": "3"})


def compat(count: int = 1, key: int = 1, value: int = 1, schema: int = 1) -> VersionedSandboxCompat:
    """An identity's attributes with the given sizes."""
    return VersionedSandboxCompat(
        "s" * schema, tuple((f"{number:0{key}}", "v" * value) for number in range(count))
    )


def runtime(number: int, sandbox_class: str = "gvisor") -> SandboxRuntime:
    return SandboxRuntime(sandbox_class, VersionedSandboxCompat.of({"number": str(number)}))


@pytest.mark.parametrize(
    "sizes",
    [
        {"count": 32, "key": 2},
        {"key": 128},
        {"value": 256},
        {"schema": 64},
        {"count": 1, "key": 1, "value": 1, "schema": 1},
    ],
)
def test_at_the_limit(sizes: dict[str, int]) -> None:
    assert len(compat(**sizes).attributes) == sizes.get("count", 1)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"count": 33, "key": 2}, "$.attributes: 33 attributes; 1 to 32 are allowed"),
        ({"count": 0}, "$.attributes: 0 attributes; 1 to 32 are allowed"),
        ({"key": 129}, "$.attributes[0].key: 129 characters; 1 to 128 are allowed"),
        ({"value": 257}, "$.attributes[0].value: 257 characters; 1 to 256 are allowed"),
        ({"value": 0}, "$.attributes[0].value: 0 characters; 1 to 256 are allowed"),
        ({"schema": 65}, "$.schemaVersion: 65 characters; 1 to 64 are allowed"),
        ({"schema": 0}, "$.schemaVersion: 0 characters; 1 to 64 are allowed"),
    ],
)
def test_past_the_limit(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(InputError) as caught:
        compat(**sizes)
    assert str(caught.value) == message


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        VersionedSandboxCompat.of({"a": "b", "": "b"})
    assert str(caught.value) == "$.attributes[1].key: 0 characters; 1 to 128 are allowed"


def test_a_key_given_twice_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        VersionedSandboxCompat("v1", (("k", "1"), ("l", "1"), ("k", "1")))
    assert str(caught.value) == "$.attributes[2].key: 'k' is already the key of $.attributes[0]"


def test_what_is_not_ascii_counts_by_characters() -> None:
    wide = "\U0001f600"
    attributes = {wide * 128: wide * 256}
    assert VersionedSandboxCompat.of(attributes).attributes == tuple(attributes.items())
    with pytest.raises(InputError, match=r"^\$.attributes\[0\].key: 129 characters; 1 to 128 are allowed$"):
        VersionedSandboxCompat.of({wide * 129: "v"})
    with pytest.raises(
        InputError, match=r"^\$.attributes\[0\].value: 257 characters; 1 to 256 are allowed$"
    ):
        VersionedSandboxCompat.of({"k": wide * 257})


HALF = "'\\ud800' has half a surrogate pair: it is no Unicode text"


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        VersionedSandboxCompat.of({"k": "\ud800"})
    assert str(caught.value) == f"$.attributes[0].value: {HALF}"
    with pytest.raises(InputError) as caught:
        SandboxRuntime("gvisor", SMALL, "\ud800")
    assert str(caught.value) == f"$.name: {HALF}"
    assert VersionedSandboxCompat.of({"k": "\U0001f600"}).get("k") == "\U0001f600"


@pytest.mark.parametrize("length", [1, 63])
def test_a_sandbox_class_at_the_limit(length: int) -> None:
    assert SandboxRuntime("c" * length, SMALL).sandbox_class == "c" * length


@pytest.mark.parametrize("length", [0, 64])
def test_a_sandbox_class_past_the_limit(length: int) -> None:
    with pytest.raises(InputError) as caught:
        SandboxRuntime("c" * length, SMALL)
    assert str(caught.value) == f"$.sandboxClass: {length} characters; 1 to 63 are allowed"


def test_thirty_two_restorable_runtimes_are_the_most() -> None:
    runtimes = tuple(map(runtime, range(34)))
    assert list(WorkerRuntimes(runtimes[0], runtimes[1:33])) == list(runtimes[:33])
    with pytest.raises(InputError) as caught:
        WorkerRuntimes(runtimes[0], runtimes[1:])
    assert str(caught.value) == (
        "$.restorableRuntimes: 33 runtimes; 32 are the most; drop the ones that no snapshot needs any more"
    )


@pytest.mark.parametrize(
    ("restorable", "message"),
    [
        pytest.param(
            (runtime(1), runtime(0)),
            "$.restorableRuntimes[1]: the same runtime as $.defaultRuntime; list it once",
            id="the default again",
        ),
        pytest.param(
            (runtime(1), runtime(2), runtime(1)),
            "$.restorableRuntimes[2]: the same runtime as $.restorableRuntimes[0]; list it once",
            id="another again",
        ),
        pytest.param(
            (runtime(1, "microvm"),),
            "$.restorableRuntimes[0]: its sandbox class is 'microvm', the default's is 'gvisor'; "
            "a worker has one sandbox class",
            id="another class",
        ),
    ],
)
def test_refused_restorable_runtimes(restorable: tuple[SandboxRuntime, ...], message: str) -> None:
    with pytest.raises(InputError) as caught:
        WorkerRuntimes(runtime(0), restorable)
    assert str(caught.value) == message


def test_a_runtime_under_another_name_is_the_same_runtime() -> None:
    one, other = SandboxRuntime("gvisor", SMALL, "v1"), SandboxRuntime("gvisor", SMALL, "v2")
    assert one == other
    assert hash(one) == hash(other)
    with pytest.raises(InputError, match=r"the same runtime as \$.defaultRuntime"):
        WorkerRuntimes(one, (other,))


def test_attributes_are_sorted_and_their_order_is_no_difference() -> None:
    turned = VersionedSandboxCompat("v1", tuple(reversed(SMALL.attributes)))
    assert turned == SMALL
    assert hash(turned) == hash(SMALL)
    assert turned.attributes == (("architecture", "amd64"), ("cpu_features", "3"))


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({"cpu_features": "3"}, id="no architecture"),
        pytest.param({"cpu_features": "3", "architecture": "riscv64"}, id="another architecture"),
        pytest.param({"cpu_features": "0x3", "architecture": "amd64"}, id="no mask"),
        pytest.param({"architecture": "amd64"}, id="no features"),
    ],
)
def test_features_that_cannot_be_read_are_none(attributes: dict[str, str]) -> None:
    assert VersionedSandboxCompat.of(attributes).features is None


def test_get() -> None:
    assert SMALL.get("cpu_features") == "3"
    assert SMALL.get("cpu_vendor") is None


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("VersionedSandboxCompat", (1, (("a", "b"),)), "$.schemaVersion must be a str"),
        ("VersionedSandboxCompat", ("v1", ((1, "b"),)), "$.attributes[0].key must be a str"),
        ("VersionedSandboxCompat", ("v1", (("a", 1),)), "$.attributes[0].value must be a str"),
        ("SandboxRuntime", (1, SMALL), "$.sandboxClass must be a str"),
        (
            "SandboxRuntime",
            ("gvisor", None),
            "a SandboxRuntime takes a VersionedSandboxCompat and a str",
        ),
        (
            "SandboxRuntime",
            ("gvisor", SMALL, None),
            "a SandboxRuntime takes a VersionedSandboxCompat and a str",
        ),
        (
            "WorkerRuntimes",
            (runtime(0), [runtime(1)]),
            "a WorkerRuntimes takes a tuple of restorable runtimes",
        ),
        ("WorkerRuntimes", (runtime(0), (None,)), "a WorkerRuntimes takes SandboxRuntimes"),
        ("WorkerRuntimes", (None,), "a WorkerRuntimes takes SandboxRuntimes"),
    ],
)
def test_constructors_take_exact_types(name: str, arguments: Sequence[object], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        getattr(identity, name)(*arguments)
    assert str(caught.value) == message


def test_profiles() -> None:
    assert GVISOR.keys == ("architecture", "cpu_features", "sandbox_runtime_hash")
    assert GVISOR_CACHE_LINE.keys == (*GVISOR.keys, "cpu_cache_line")
    assert MICROVM.keys == ("architecture", "cpu_vendor", "cpu_model", "sandbox_runtime_hash")


@pytest.mark.parametrize("value", [SMALL, runtime(1), WorkerRuntimes(runtime(1), (runtime(2),)), GVISOR])
def test_values_pickle_and_copy(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(value) == value
    assert hash(copy.copy(value)) == hash(value)
