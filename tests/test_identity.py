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
    ("sizes", "path"),
    [
        ({"count": 33}, "$.attributes"),
        ({"count": 0}, "$.attributes"),
        ({"key": 129}, "$.attributes[0].key"),
        ({"value": 257}, "$.attributes[0].value"),
        ({"value": 0}, "$.attributes[0].value"),
        ({"schema": 65}, "$.schemaVersion"),
        ({"schema": 0}, "$.schemaVersion"),
    ],
)
def test_past_the_limit(sizes: dict[str, int], path: str) -> None:
    with pytest.raises(InputError) as caught:
        compat(**sizes)
    assert caught.value.subject == path


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        VersionedSandboxCompat.of({"a": "b", "": "b"})
    assert caught.value.subject == "$.attributes[1].key"


def test_a_key_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match=r"already the key of \$.attributes\[0\]") as caught:
        VersionedSandboxCompat("v1", (("k", "1"), ("l", "1"), ("k", "1")))
    assert caught.value.subject == "$.attributes[2].key"


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InputError, match="surrogate"):
        VersionedSandboxCompat.of({"k": "\ud800"})
    with pytest.raises(InputError, match="surrogate"):
        SandboxRuntime("gvisor", SMALL, "\ud800")
    assert VersionedSandboxCompat.of({"k": "\U0001f600"}).get("k") == "\U0001f600"


@pytest.mark.parametrize("length", [1, 63])
def test_a_sandbox_class_at_the_limit(length: int) -> None:
    assert SandboxRuntime("c" * length, SMALL).sandbox_class == "c" * length


@pytest.mark.parametrize("length", [0, 64])
def test_a_sandbox_class_past_the_limit(length: int) -> None:
    with pytest.raises(InputError) as caught:
        SandboxRuntime("c" * length, SMALL)
    assert caught.value.subject == "$.sandboxClass"


def test_thirty_two_restorable_runtimes_are_the_most() -> None:
    runtimes = tuple(map(runtime, range(34)))
    assert list(WorkerRuntimes(runtimes[0], runtimes[1:33])) == list(runtimes[:33])
    with pytest.raises(InputError, match="33 runtimes") as caught:
        WorkerRuntimes(runtimes[0], runtimes[1:])
    assert caught.value.subject == "$.restorableRuntimes"


@pytest.mark.parametrize(
    ("restorable", "path"),
    [
        pytest.param((runtime(1), runtime(0)), "$.restorableRuntimes[1]", id="the default again"),
        pytest.param((runtime(1), runtime(2), runtime(1)), "$.restorableRuntimes[2]", id="another again"),
        pytest.param((runtime(1, "microvm"),), "$.restorableRuntimes[0]", id="another class"),
    ],
)
def test_refused_restorable_runtimes(restorable: tuple[SandboxRuntime, ...], path: str) -> None:
    with pytest.raises(InputError) as caught:
        WorkerRuntimes(runtime(0), restorable)
    assert caught.value.subject == path


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
    ("name", "arguments"),
    [
        ("VersionedSandboxCompat", (1, (("a", "b"),))),
        ("VersionedSandboxCompat", ("v1", (("a", 1),))),
        ("SandboxRuntime", ("gvisor", None)),
        ("SandboxRuntime", ("gvisor", SMALL, None)),
        ("WorkerRuntimes", (runtime(0), [runtime(1)])),
        ("WorkerRuntimes", (runtime(0), (None,))),
    ],
)
def test_constructors_take_exact_types(name: str, arguments: Sequence[object]) -> None:
    with pytest.raises(TypeError):
        getattr(identity, name)(*arguments)


def test_profiles() -> None:
    assert GVISOR.keys == ("architecture", "cpu_features", "sandbox_runtime_hash")
    assert GVISOR_CACHE_LINE.keys == (*GVISOR.keys, "cpu_cache_line")
    assert MICROVM.keys == ("architecture", "cpu_vendor", "cpu_model", "sandbox_runtime_hash")


@pytest.mark.parametrize("value", [SMALL, runtime(1), WorkerRuntimes(runtime(1), (runtime(2),)), GVISOR])
def test_values_pickle_and_copy(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(value) == value
    assert hash(copy.copy(value)) == hash(value)
