"""An identity as JSON is read strictly, and what was written is read again."""

import json
from collections.abc import Mapping
from random import Random

import pytest
from cattrs import Converter
from hypothesis import given
from hypothesis import strategies as st

from spoiling import Json, Spoil, drop, fault, put
from strategies import attributes, sandbox_runtimes
from substrate_compat.identity import (
    MAX_VALUE,
    SandboxRuntime,
    VersionedSandboxCompat,
)
from substrate_compat.wire import (
    dumps_identity,
    loads_identity,
    make_converter,
)

CONVERTER = make_converter()

IDENTITY: Json = {
    "sandboxClass": "gvisor",
    "name": "v1",
    "compatVersion": {
        "schemaVersion": "v1",
        "attributes": [
            {"key": "architecture", "value": "amd64"},
            {"key": "cpu_features", "value": "3"},
        ],
    },
}
ATTRIBUTES = ("compatVersion", "attributes")


def test_an_identity_is_written_with_its_attributes_sorted() -> None:
    compat = VersionedSandboxCompat.of({"cpu_features": "3", "architecture": "amd64"})
    text = dumps_identity(SandboxRuntime("gvisor", compat, "v1"))
    assert text == json.dumps(IDENTITY, indent=2, sort_keys=True) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps(IDENTITY), id="as-written"),
        pytest.param(
            '{"sandbox_class": "gvisor", "compat_version": {"schema_version": "v1", "attributes": '
            '[{"value": "3", "key": "cpu_features"}, {"key": "architecture", "value": "amd64"}]}}',
            id="snake-case-without-a-name",
        ),
    ],
)
def test_an_identity_is_read(text: str) -> None:
    compat = VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": "3"})
    assert loads_identity(text) == SandboxRuntime("gvisor", compat)
    assert loads_identity(text.encode(), CONVERTER) == SandboxRuntime("gvisor", compat)


REFUSED_IDENTITIES = [
    pytest.param(put(to=[]), "$", "a list where an object", id="a-list"),
    pytest.param(put(to="gvisor"), "$", "a string where an object", id="a-string"),
    pytest.param(put(to=None), "$", "null where an object", id="null"),
    pytest.param(put("sandboxClass", to=5), "$.sandboxClass", "a number where a string", id="number"),
    pytest.param(put("sandboxClass", to=True), "$.sandboxClass", "a truth value where", id="bool"),
    pytest.param(put("sandboxClass", to=None), "$.sandboxClass", "null where a string", id="null-class"),
    pytest.param(put("sandboxClass", to=""), "$.sandboxClass", "0 characters", id="empty-class"),
    pytest.param(put("name", to=["v1"]), "$.name", "a list where a string", id="list-for-a-name"),
    pytest.param(put("more", to="1"), "$.more", "not a known key", id="unknown-key"),
    pytest.param(
        put("sandbox_class", to="gvisor"), "$.sandbox_class", "both spellings", id="both-spellings"
    ),
    pytest.param(drop(key="compatVersion"), "$.compatVersion", "missing", id="missing"),
    pytest.param(
        drop("compatVersion", key="schemaVersion"),
        "$.compatVersion.schemaVersion",
        "missing",
        id="no-schema",
    ),
    pytest.param(
        put(*ATTRIBUTES, to="abc"),
        "$.compatVersion.attributes",
        "a string where a list",
        id="string-for-a-list",
    ),
    pytest.param(put(*ATTRIBUTES, to=[]), "$.compatVersion.attributes", "0 attributes", id="no-attributes"),
    pytest.param(
        put(*ATTRIBUTES, 1, to="ab"), "$.compatVersion.attributes[1]", "a string where an object", id="pair"
    ),
    pytest.param(
        put(*ATTRIBUTES, 1, "value", to=3),
        "$.compatVersion.attributes[1].value",
        "a number",
        id="number-value",
    ),
    pytest.param(
        put(*ATTRIBUTES, 1, "value", to="\ud800"),
        "$.compatVersion.attributes[1].value",
        "surrogate",
        id="half",
    ),
    pytest.param(
        put(*ATTRIBUTES, 1, "value", to="x" * (MAX_VALUE + 1)),
        "$.compatVersion.attributes[1].value",
        "257 characters",
        id="long-value",
    ),
    pytest.param(
        put(*ATTRIBUTES, 1, "key", to="architecture"),
        "$.compatVersion.attributes[1].key",
        "already the key",
        id="key-twice",
    ),
]


@pytest.mark.parametrize(("spoil", "subject", "problem"), REFUSED_IDENTITIES)
def test_an_identity_is_refused(spoil: Spoil, subject: str, problem: str) -> None:
    error = fault(lambda: loads_identity(spoil(IDENTITY), CONVERTER))
    assert (error.subject, problem in error.problem) == (subject, True), str(error)


@given(sandbox_runtimes)
def test_an_identity_that_was_written_is_read_again(runtime: SandboxRuntime) -> None:
    read = loads_identity(dumps_identity(runtime, CONVERTER), CONVERTER)
    assert (read, read.name) == (runtime, runtime.name)
    assert dumps_identity(read) == dumps_identity(runtime, CONVERTER)


@given(attributes(), st.randoms())
def test_an_identity_is_written_the_same_whatever_the_order(
    given: Mapping[str, str], order: Random
) -> None:
    pairs = [*given.items()]
    order.shuffle(pairs)
    one, other = (
        SandboxRuntime("gvisor", VersionedSandboxCompat.of(dict(each))) for each in (given.items(), pairs)
    )
    assert dumps_identity(one, CONVERTER) == dumps_identity(other, CONVERTER)


def test_a_converter_that_is_not_strict_is_told() -> None:
    error = fault(lambda: loads_identity(json.dumps(IDENTITY), Converter()))
    assert error.remedy == "is the converter one of make_converter()?"
