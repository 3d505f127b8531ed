"""A config is read from its Kubernetes object: known fields strictly, and no others."""

import json
from random import Random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoiling import Json, Spoil, drop, fault, put
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.sandbox_config import Asset, SandboxConfig, SandboxVersion
from substrate_compat.wire import (
    config_from_mapping,
    loads_config,
    make_converter,
)

DIGESTS = {letter: "sha256:" + letter * 64 for letter in "abc"}
CONVERTER = make_converter()

RUNSC: Json = {"url": "https://bucket.example/runsc", "sha256": "a" * 64}
CONFIG: Json = {
    "apiVersion": "sandbox.example/v1",
    "kind": "SandboxConfig",
    "metadata": {"name": "pool", "generation": 3, "managedFields": [{"manager": None}]},
    "spec": {
        "sandboxClass": "gvisor",
        "defaultVersion": "v2",
        "versions": [
            {
                "name": "v2",
                "state": "Enabled",
                "pauseImage": "pause@" + DIGESTS["b"],
                "assets": {"amd64": {"gvisor": RUNSC, "shim": RUNSC}, "arm64": {"gvisor": RUNSC}},
                "more": 1,
            },
            {
                "name": "v1",
                "state": "Disabled",
                "pauseImage": "pause:1",
                "assets": {"riscv64": {"a": RUNSC}},
            },
        ],
    },
    "status": {"conditions": []},
}
OLDER: Json = {
    "metadata": {"name": "pool"},
    "spec": {
        "sandboxClass": "microvm",
        "pauseImage": "pause@" + DIGESTS["b"],
        "assets": {"arm64": {"kernel": RUNSC}},
    },
}
OLDER_SPEC = {"sandboxClass": "microvm", "pauseImage": "pause:1"}
VERSION = ("spec", "versions", 1)


def test_a_config_is_read_with_the_fields_that_are_known() -> None:
    config = loads_config(json.dumps(CONFIG))
    assert (config.name, config.sandbox_class, config.default_version) == ("pool", "gvisor", "v2")
    v2, v1 = config.versions
    url, sha256 = "https://bucket.example/runsc", "a" * 64
    assert v2 == SandboxVersion(
        "v2",
        True,
        "pause@" + DIGESTS["b"],
        (
            Asset(Architecture.AMD64, "gvisor", url, sha256),
            Asset(Architecture.AMD64, "shim", url, sha256),
            Asset(Architecture.ARM64, "gvisor", url, sha256),
        ),
    )
    assert v1 == SandboxVersion("v1", False, "pause:1", ())
    assert config_from_mapping(CONFIG, CONVERTER) == config


@pytest.mark.parametrize(
    ("spoil", "default"), [(json.dumps, "default"), (put("spec", "defaultVersion", to="a"), "a")]
)
def test_an_older_config_has_one_version(spoil: Spoil, default: str) -> None:
    config = loads_config(spoil(OLDER).encode(), CONVERTER)
    asset = Asset(Architecture.ARM64, "kernel", "https://bucket.example/runsc", "a" * 64)
    assert config.versions == (SandboxVersion("default", True, "pause@" + DIGESTS["b"], (asset,)),)
    assert (config.sandbox_class, config.default_version) == ("microvm", default)


REFUSED_CONFIGS = [
    pytest.param(CONFIG, put(to=None), "$", "null where an object", id="null"),
    pytest.param(CONFIG, put(to="pool"), "$", "a string where an object", id="string"),
    pytest.param(CONFIG, put("kind", to="SandboxConfigList"), "$.kind", "'SandboxConfigList'", id="list"),
    pytest.param(CONFIG, put("kind", to=5), "$.kind", "is not SandboxConfig", id="number-for-a-kind"),
    pytest.param(CONFIG, drop(key="metadata"), "$.metadata", "missing", id="no-metadata"),
    pytest.param(
        CONFIG, put("metadata", "name", to=1), "$.metadata.name", "a number where", id="number-name"
    ),
    pytest.param(CONFIG, drop(key="spec"), "$.spec", "missing", id="no-spec"),
    pytest.param(CONFIG, put("spec", to=[]), "$.spec", "a list where an object", id="list-for-a-spec"),
    pytest.param(CONFIG, drop("spec", key="sandboxClass"), "$.spec.sandboxClass", "missing", id="no-class"),
    pytest.param(
        CONFIG, put("spec", "sandboxClass", to="kata"), "$.spec.sandboxClass", "'kata'", id="class"
    ),
    pytest.param(
        CONFIG, drop("spec", key="defaultVersion"), "$.spec.defaultVersion", "missing", id="no-default"
    ),
    pytest.param(CONFIG, drop("spec", key="versions"), "$.spec.versions", "missing", id="no-versions"),
    pytest.param(CONFIG, put("spec", "versions", to={}), "$.spec.versions", "an object where", id="object"),
    pytest.param(CONFIG, put("spec", "assets", to={}), "$.spec", "beside assets", id="both-forms"),
    pytest.param(
        CONFIG, put(*VERSION, to="v1"), "$.spec.versions[1]", "a string where", id="string-version"
    ),
    pytest.param(
        CONFIG, put(*VERSION, "name", to=1), "$.spec.versions[1].name", "a number", id="number-version"
    ),
    pytest.param(
        CONFIG, put(*VERSION, "name", to=""), "$.spec.versions[1].name", "empty", id="empty-version"
    ),
    pytest.param(
        CONFIG,
        put(*VERSION, "name", to="v2"),
        "$.spec.versions[1].name",
        "$.spec.versions[0]",
        id="name-twice",
    ),
    pytest.param(
        CONFIG, put(*VERSION, "name", to="\ud800"), "$.spec.versions[1].name", "surrogate", id="half"
    ),
    pytest.param(
        CONFIG, put(*VERSION, "state", to="enabled"), "$.spec.versions[1].state", "'enabled'", id="state"
    ),
    pytest.param(
        CONFIG, put(*VERSION, "state", to=True), "$.spec.versions[1].state", "a truth", id="bool-state"
    ),
    pytest.param(
        CONFIG,
        put(*VERSION, "pauseImage", to=None),
        "$.spec.versions[1].pauseImage",
        "null",
        id="null-image",
    ),
    pytest.param(
        CONFIG, put(*VERSION, "assets", to=[]), "$.spec.versions[1].assets", "a list", id="list-assets"
    ),
    pytest.param(
        CONFIG,
        put(*VERSION, "assets", "amd64", to=[RUNSC]),
        "$.spec.versions[1].assets.amd64",
        "a list where an object",
        id="list-of-assets",
    ),
    pytest.param(
        CONFIG,
        put(*VERSION, "assets", "amd64", to={"gvisor": {"url": "u", "sha256": 7}}),
        "$.spec.versions[1].assets.amd64.gvisor.sha256",
        "a number where a string",
        id="number-for-a-digest",
    ),
    pytest.param(
        CONFIG,
        put(*VERSION, "assets", "amd64", to={"a b": {"url": "u"}}),
        "$.spec.versions[1].assets.amd64['a b'].sha256",
        "missing",
        id="no-digest",
    ),
    pytest.param(OLDER, drop("spec", key="assets"), "$.spec.assets", "missing", id="older-without-assets"),
    pytest.param(
        OLDER, drop("spec", key="pauseImage"), "$.spec.pauseImage", "missing", id="older-without-image"
    ),
]


@pytest.mark.parametrize(("config", "spoil", "subject", "problem"), REFUSED_CONFIGS)
def test_a_config_is_refused(config: Json, spoil: Spoil, subject: str, problem: str) -> None:
    error = fault(lambda: loads_config(spoil(config), CONVERTER))
    assert (error.subject, problem in error.problem) == (subject, True), str(error)


def test_a_config_from_yaml_may_hold_what_json_cannot() -> None:
    error = fault(lambda: config_from_mapping({"metadata": {"name": b"pool"}, "spec": {}}, CONVERTER))
    assert str(error) == "$.metadata.name: a bytes where a string must stand"
    odd = {"metadata": {"name": "pool", 5: 5}, "spec": {"sandboxClass": "gvisor"}}
    assert fault(lambda: config_from_mapping(odd, CONVERTER)).subject == "$.spec.defaultVersion"
    assets = {"metadata": {"name": "pool"}, "spec": {**OLDER_SPEC, "assets": {386: {}}}}
    assert fault(lambda: config_from_mapping(assets, CONVERTER)).subject == "$.spec.assets['386']"


def shuffled(value: Json, order: Random) -> Json:
    """The same with the members of every object in another order."""
    if isinstance(value, dict):
        members = [*value.items()]
        order.shuffle(members)
        return {key: shuffled(member, order) for key, member in members}
    return [shuffled(each, order) for each in value] if isinstance(value, list) else value


def told(config: SandboxConfig) -> object:
    """What a config says; its assets have no order."""
    versions = [attrs.evolve(each, assets=tuple(sorted(each.assets, key=repr))) for each in config.versions]
    return attrs.evolve(config, versions=tuple(versions))


@given(st.sampled_from([CONFIG, OLDER]), st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_members_and_the_way_of_reading_change_nothing(
    config: Json, order: Random, escaped: bool
) -> None:
    another = shuffled(config, order)
    read = loads_config(json.dumps(another, ensure_ascii=escaped), CONVERTER)
    assert read == config_from_mapping(another, CONVERTER)
    assert told(read) == told(loads_config(json.dumps(config), CONVERTER))
