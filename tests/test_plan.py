"""What a worker offers: the rules as a table, a rolling upgrade told whole, and laws."""

import hashlib
import re
from collections.abc import Mapping

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import amd64_sets
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuinfo import CpuInfo, parse_cpuinfo
from substrate_compat.errors import ConfigError, InputError
from substrate_compat.guest import XSAVE_NOTE
from substrate_compat.identity import SandboxRuntime, WorkerRuntimes
from substrate_compat.match import Mismatch, Reason, explain_worker, stamp
from substrate_compat.plan import (
    Asset,
    LeftOutReason,
    Plan,
    SandboxConfig,
    SandboxVersion,
    plan_worker_runtimes,
)
from substrate_compat.wire import dumps_runtimes
from substrate_compat.wording import describe
from vectors import amd64, arm64

AMD64, ARM64 = Architecture.AMD64, Architecture.ARM64
AMD64_HOST = parse_cpuinfo(
    "processor : 0\nvendor_id : AuthenticAMD\nmodel name : AMD EPYC 7713\nflags : lm fpu\n"
)
ARM64_HOST = parse_cpuinfo("processor : 0\nFeatures : fp asimd aes\n")
PAUSE = "registry.example/pause:3.10@sha256:" + "b" * 64
LISTED = amd64("osxsave,pni,xsave")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def runsc(
    content: str, architecture: Architecture = AMD64, name: str = "gvisor", sha256: str | None = None
) -> Asset:
    """The runsc whose bytes are `content`."""
    return Asset(architecture, name, f"https://bucket.example/{content}", sha256 or digest(content))


def version(name: str, *assets: Asset, enabled: bool = True, pause_image: str = PAUSE) -> SandboxVersion:
    """A version of `assets`; without any, of a runsc of its own for each architecture."""
    own = (runsc(f"runsc of {name}"), runsc(f"arm64 runsc of {name}", ARM64))
    return SandboxVersion(name, enabled, pause_image, assets or own)


def config(*versions: SandboxVersion, default: str = "v1", sandbox_class: str = "gvisor") -> SandboxConfig:
    return SandboxConfig("pool", sandbox_class, default, versions)


def reported(*versions: SandboxVersion, features: FeatureSet = LISTED) -> dict[str, FeatureSet]:
    """Every runsc of `versions` for amd64 reports `features`."""
    digests = {each.asset_digests(AMD64).get("gvisor", "").removeprefix("sha256:") for each in versions}
    return {each: features for each in digests if re.fullmatch("[0-9a-f]{64}", each)}


def planned(config: SandboxConfig, cpu: CpuInfo = AMD64_HOST) -> Plan:
    return plan_worker_runtimes(config, cpu, reported(*config.versions))


def left_out(plan: Plan) -> list[tuple[str, str]]:
    return [(each.name, each.reason.value) for each in plan.left_out]


def names(plan: Plan) -> list[str]:
    return [runtime.name for runtime in plan.runtimes]


def values(runtime: SandboxRuntime) -> Mapping[str, str]:
    return dict(runtime.compat_version.attributes)


V1, V2, V3 = version("v1"), version("v2"), version("v3")
SAME_AS_V1 = SandboxVersion(
    "again",
    True,
    "other.example:5000/pause:latest@sha256:" + "b" * 64,
    tuple(
        attrs.evolve(asset, url="https://elsewhere.example", sha256=f"sha256:{asset.sha256}")
        for asset in V1.assets
    ),
)


# Each row: the config, the versions offered with the default first, and what was left out.
RULES = [
    pytest.param(config(V1), ["v1"], [], id="one"),
    pytest.param(config(V1, V2, V3), ["v1", "v2", "v3"], [], id="spec-order"),
    pytest.param(config(V1, V2, V3, default="v2"), ["v2", "v1", "v3"], [], id="default-in-the-middle"),
    pytest.param(config(V1, version("v2", enabled=False), V3), ["v1", "v3"], [], id="disabled"),
    pytest.param(
        config(V1, SAME_AS_V1, V2), ["v1", "v2"], [("again", "same_runtime")], id="same-as-default"
    ),
    pytest.param(
        config(V2, V1, SAME_AS_V1, default="v2"),
        ["v2", "v1"],
        [("again", "same_runtime")],
        id="same-as-another",
    ),
    pytest.param(
        config(SAME_AS_V1, V1), ["v1"], [("again", "same_runtime")], id="same-as-a-default-that-comes-later"
    ),
    pytest.param(
        config(V1, version("arm", runsc("a", ARM64))), ["v1"], [("arm", "no_assets")], id="no-assets-here"
    ),
    pytest.param(
        config(V1, version("tag", pause_image="pause:3.10")),
        ["v1"],
        [("tag", "not_pinned")],
        id="unpinned-image",
    ),
    pytest.param(
        config(V1, version("bad", runsc("a", sha256="a" * 63))),
        ["v1"],
        [("bad", "not_pinned")],
        id="bad-digest",
    ),
    pytest.param(
        config(V1, version("no", runsc("a", name="runsc"))), ["v1"], [("no", "no_features")], id="no-runsc"
    ),
    pytest.param(
        config(V1, version("tag", pause_image="pause:3.10"), SAME_AS_V1, V3),
        ["v1", "v3"],
        [("tag", "not_pinned"), ("again", "same_runtime")],
        id="several",
    ),
]


@pytest.mark.parametrize(("given", "offered", "absent"), RULES)
def test_a_worker_offers(given: SandboxConfig, offered: list[str], absent: list[tuple[str, str]]) -> None:
    plan = planned(given)
    assert names(plan) == offered
    assert left_out(plan) == absent
    assert [each.name for each in plan.versions.values()] == offered
    for runtime in plan.runtimes:
        back = plan.versions[values(runtime)["sandbox_runtime_hash"]]
        assert back.runtime_hash(AMD64) == values(runtime)["sandbox_runtime_hash"]


def test_a_version_whose_runsc_was_not_asked_is_left_out() -> None:
    plan = plan_worker_runtimes(config(V1, V2), AMD64_HOST, reported(V1))
    assert left_out(plan) == [("v2", "no_features")]
    assert plan.left_out[0].problem == (
        f"it is not known which features its runsc reports on this host (sha256:{digest('runsc of v2')})"
    )


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        pytest.param(SAME_AS_V1, "its binaries are those of version 'v1'", id="same-runtime"),
        pytest.param(version("arm", runsc("a", ARM64)), "it has no assets for amd64", id="no-assets"),
        pytest.param(
            version("tag", pause_image="pause:3.10"),
            "pause image: 'pause:3.10' is not pinned by digest; pin it as "
            "`path[:tag]@sha256:<64 hex digits>`",
            id="not-pinned",
        ),
        pytest.param(
            version("no", runsc("a", name="runsc")),
            "it has no asset `gvisor` for amd64, so it is not known what runsc sees",
            id="no-features",
        ),
    ],
)
def test_what_is_left_out_says_why_in_words(other: SandboxVersion, problem: str) -> None:
    assert [each.problem for each in planned(config(V1, other)).left_out] == [problem]


@pytest.mark.parametrize("prefix", ["", "sha256:"])
@pytest.mark.parametrize("configured", ["", "sha256:"])
def test_a_runsc_is_found_by_its_digest_however_it_is_written(prefix: str, configured: str) -> None:
    given = version("v1", runsc("a", sha256=configured + digest("a")))
    plan = plan_worker_runtimes(config(given), AMD64_HOST, {prefix + digest("a"): LISTED})
    assert values(plan.runtimes.default_runtime)["cpu_features"] == LISTED.hex


# Each row: the config, and what the error says.
HOPELESS = [
    pytest.param(config(V1, default="v9"), "no version is named 'v9'", id="not-listed"),
    pytest.param(config(default="v1"), "no version is named 'v1'", id="none-listed"),
    pytest.param(
        config(version("v1", enabled=False)),
        "version 'v1' cannot be the default: it is disabled",
        id="disabled",
    ),
    pytest.param(
        config(version("v1", runsc("a", ARM64)), V2),
        "version 'v1' cannot be the default: it has no assets for amd64",
        id="no-assets",
    ),
    pytest.param(
        config(version("v1", pause_image="pause")),
        "version 'v1' cannot be the default: pause image: 'pause' is not pinned by digest; pin it as "
        "`path[:tag]@sha256:<64 hex digits>`",
        id="unpinned",
    ),
]
NO_RETRY_HELPS = "no worker can start anything, and trying again cannot help: correct the SandboxConfig"


@pytest.mark.parametrize(("given", "problem"), HOPELESS)
def test_a_default_that_cannot_be_offered_is_an_error_that_no_retry_helps(
    given: SandboxConfig, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        planned(given)
    assert caught.value.subject == "$.spec.defaultVersion"
    assert caught.value.problem == problem
    assert caught.value.remedy == NO_RETRY_HELPS


@pytest.mark.parametrize(
    ("default", "problem"),
    [
        pytest.param(V1, "which features its runsc reports on this host", id="not-asked"),
        pytest.param(version("v1", runsc("a", name="runsc")), "so it is not known what", id="no-runsc"),
    ],
)
def test_a_default_whose_runsc_was_not_asked_is_such_an_error_unless_it_is_told(
    default: SandboxVersion, problem: str
) -> None:
    with pytest.raises(
        ConfigError, match=f"^.*: version 'v1' cannot be the default: .*{problem}"
    ) as caught:
        plan_worker_runtimes(config(default), AMD64_HOST, {})
    assert caught.value.subject == "$.spec.defaultVersion"
    assert caught.value.remedy == NO_RETRY_HELPS + ", or tell what its runsc reports on the host"


def test_features_that_cannot_be_the_hosts_are_refused() -> None:
    with pytest.raises(InputError, match="they are of arm64, the host is amd64"):
        plan_worker_runtimes(config(V1), AMD64_HOST, {digest("runsc of v1"): arm64("fp")})
    with pytest.raises(InputError, match=r"^features: 'runsc' is not a SHA-256 digest"):
        plan_worker_runtimes(config(V1), AMD64_HOST, {"runsc": LISTED})
    twice = r"^features: a digest is given twice; give each with or without `sha256:`$"
    with pytest.raises(InputError, match=twice):
        plan_worker_runtimes(config(V1), AMD64_HOST, {"a" * 64: LISTED, "sha256:" + "a" * 64: LISTED})


def test_a_worker_offers_at_most_32_restorable_runtimes() -> None:
    versions = [version(f"v{position}") for position in range(36)]
    plan = planned(config(*versions, attrs.evolve(versions[2], name="again"), default="v1"))
    assert names(plan) == ["v1", "v0", *(f"v{position}" for position in range(2, 33))]
    assert left_out(plan) == [
        *((f"v{position}", "too_many") for position in range(33, 36)),
        ("again", "same_runtime"),
    ]
    assert plan.left_out[0].problem == "a worker has at most 32 restorable runtimes"
    assert set(plan.versions) == {versions[position].runtime_hash(AMD64) for position in range(33)}


def test_each_runtime_carries_what_its_own_runsc_reports() -> None:
    newer = amd64("osxsave,pni,avx512_bf16,xsave")
    plan = plan_worker_runtimes(
        config(V1, V2), AMD64_HOST, {**reported(V1), **reported(V2, features=newer)}
    )
    assert [runtime.compat_version.features for runtime in plan.runtimes] == [LISTED, newer]


def test_a_host_without_usable_xsave_does_not_offer_it() -> None:
    plan = plan_worker_runtimes(config(V1, V2), AMD64_HOST, reported(V1, V2, features=amd64("pni,xsave")))
    assert [runtime.compat_version.features for runtime in plan.runtimes] == [amd64("pni")] * 2
    assert plan.notes == (XSAVE_NOTE,)
    assert planned(config(V1, V2)).notes == ()


def test_an_arm64_host_needs_no_runsc_to_be_asked() -> None:
    other = arm64("fp,asimd")
    digests = {"sha256:" + digest("arm64 runsc of v2"): other}
    plan = plan_worker_runtimes(config(V1, V2), ARM64_HOST, digests)
    assert [runtime.compat_version.features for runtime in plan.runtimes] == [ARM64_HOST.features, other]
    assert set(values(plan.runtimes.default_runtime)) == {
        "architecture",
        "cpu_features",
        "sandbox_runtime_hash",
    }


def test_a_micro_vm_worker_offers_its_cpu_model() -> None:
    plan = plan_worker_runtimes(config(V1, V2, sandbox_class="microvm"), AMD64_HOST, {})
    assert plan.left_out == ()
    assert [values(runtime) for runtime in plan.runtimes] == [
        {
            "architecture": "amd64",
            "cpu_model": "AMD EPYC 7713",
            "cpu_vendor": "AuthenticAMD",
            "sandbox_runtime_hash": each.runtime_hash(AMD64),
        }
        for each in (V1, V2)
    ]


def test_a_key_that_cannot_be_read_is_left_out_and_reported() -> None:
    plan = plan_worker_runtimes(config(V1, V2, sandbox_class="microvm"), ARM64_HOST, {})
    assert left_out(plan) == [("cpu_vendor", "unread_key"), ("cpu_model", "unread_key")]
    assert [each.problem for each in plan.left_out] == [
        "cpuinfo names no vendor for every processor",
        "cpuinfo names no model of the host's for every processor",
    ]
    assert all(set(values(each)) == {"architecture", "sandbox_runtime_hash"} for each in plan.runtimes)


def test_a_cpuinfo_of_gvisors_own_making_is_noted() -> None:
    inside = attrs.evolve(AMD64_HOST, looks_like_gvisor=True)
    assert "looks like gVisor's own" in planned(config(V1), inside).notes[0]


def test_a_plan_reads_as_text() -> None:
    plan = plan_worker_runtimes(
        config(V1, version("tag", pause_image="pause")), AMD64_HOST, reported(V1, features=amd64("pni"))
    )
    assert describe(plan) == (
        "left out: tag: pause image: 'pause' is not pinned by digest; pin it as "
        f"`path[:tag]@sha256:<64 hex digits>`\nnote: {XSAVE_NOTE}"
    )
    assert describe(planned(config(V1))) == ""


# --- the life of a pool


def runtime_hash(runsc_content: str) -> str:
    """By hand: what the hash is made of."""
    lines = f"asset/gvisor=sha256:{digest(runsc_content)}\npause_image=sha256:{'b' * 64}\n"
    return "sha256:" + digest(lines)


def test_a_pool_keeps_its_snapshots_while_a_version_rolls_out() -> None:
    before = planned(config(V1))
    snapshot = stamp(before.runtimes.default_runtime)
    assert explain_worker(before.runtimes, snapshot).runtime == before.runtimes.default_runtime

    rolling = planned(config(V2, V1, default="v2"))
    verdict = explain_worker(rolling.runtimes, snapshot)
    assert verdict.runtime == rolling.runtimes.restorable_runtimes[0]
    assert plan_back(rolling, verdict.runtime) == V1
    assert values(stamp(rolling.runtimes.default_runtime))["sandbox_runtime_hash"] == runtime_hash(
        "runsc of v2"
    )

    after = planned(config(V2, attrs.evolve(V1, enabled=False), default="v2"))
    (verdict_after,) = explain_worker(after.runtimes, snapshot).verdicts
    assert verdict_after.mismatches == (
        Mismatch(
            Reason.DIFFERENT_VALUE,
            "sandbox_runtime_hash",
            runtime_hash("runsc of v2"),
            runtime_hash("runsc of v1"),
        ),
    )
    words = describe(verdict_after)
    assert runtime_hash("runsc of v1") in words
    assert runtime_hash("runsc of v2") in words


def plan_back(plan: Plan, runtime: SandboxRuntime) -> SandboxVersion:
    return plan.versions[values(runtime)["sandbox_runtime_hash"]]


def test_a_snapshot_taken_again_on_a_richer_worker_is_still_restorable_on_the_poorer() -> None:
    poorer = planned(config(V1)).runtimes
    richer = plan_worker_runtimes(
        config(V1), AMD64_HOST, reported(V1, features=amd64("osxsave,pni,xsave,avx,avx2"))
    ).runtimes
    first = stamp(poorer.default_runtime)
    under = explain_worker(richer, first).runtime
    assert under == richer.default_runtime
    again = stamp(under, parent=first)
    assert explain_worker(poorer, again).runtime == poorer.default_runtime
    assert not explain_worker(poorer, stamp(richer.default_runtime)).compatible


SAMPLE_OF_ONE = """\
{
  "defaultRuntime": {
    "architecture": "amd64",
    "cpu_features": "1",
    "sandbox_runtime_hash": "%s"
  }
}
"""
SAMPLE_OF_THREE = """\
{
  "defaultRuntime": {
    "architecture": "amd64",
    "cpu_features": "1",
    "sandbox_runtime_hash": "%s"
  },
  "restorableRuntimes": [
    {
      "architecture": "amd64",
      "cpu_features": "1",
      "sandbox_runtime_hash": "%s"
    },
    {
      "architecture": "amd64",
      "cpu_features": "1",
      "sandbox_runtime_hash": "%s"
    }
  ]
}
"""


@pytest.mark.parametrize(
    ("versions", "sample"), [((V1,), SAMPLE_OF_ONE), ((V3, V1, V2), SAMPLE_OF_THREE)], ids=["one", "three"]
)
def test_the_file_of_a_plan_is_the_documented_one(
    versions: tuple[SandboxVersion, ...], sample: str
) -> None:
    given = config(*versions, default=versions[0].name)
    plan = plan_worker_runtimes(given, AMD64_HOST, reported(*versions, features=amd64("pni")))
    assert dumps_runtimes(plan.runtimes) == sample % tuple(
        runtime_hash(f"runsc of {each.name}") for each in versions
    )


# --- laws

versions = st.builds(
    version,
    st.sampled_from([f"v{number}" for number in range(9)]),
    st.builds(
        runsc,
        st.sampled_from("abcd"),
        st.sampled_from([AMD64, AMD64, AMD64, ARM64]),
        name=st.sampled_from(["gvisor", "gvisor", "gvisor", "runsc"]),
    ),
    enabled=st.sampled_from([True, True, False]),
    pause_image=st.sampled_from([PAUSE, PAUSE, PAUSE, "pause"]),
)
configs = st.lists(versions, min_size=1, max_size=6, unique_by=lambda each: each.name).flatmap(
    lambda listed: st.sampled_from(listed).map(lambda default: config(*listed, default=default.name))
)


@given(configs, st.dictionaries(st.sampled_from("abcd").map(digest), amd64_sets))
def test_every_enabled_version_is_offered_once_or_left_out_with_its_reason(
    given: SandboxConfig, features: dict[str, FeatureSet]
) -> None:
    try:
        plan = plan_worker_runtimes(given, AMD64_HOST, features)
    except ConfigError:
        return
    enabled = {each.name for each in given.versions if each.enabled}
    assert sorted([*names(plan), *(each.name for each in plan.left_out)]) == sorted(enabled)
    assert names(plan)[0] == given.default_version
    assert len(plan.versions) == len(names(plan)) == len(set(plan.runtimes))
    assert all(each.reason in LeftOutReason and each.problem for each in plan.left_out)


@given(configs, st.sampled_from(["", "sha256:"]))
def test_names_and_places_of_the_same_binaries_change_nothing(given: SandboxConfig, prefix: str) -> None:
    def moved(each: SandboxVersion) -> SandboxVersion:
        assets = [
            attrs.evolve(asset, url="https://moved.example", sha256=prefix + asset.sha256)
            for asset in each.assets
        ]
        image = each.pause_image.replace("registry.example/pause:3.10", "moved.example:5000/a/pause")
        return SandboxVersion(f"{each.name}-moved", each.enabled, image, tuple(assets))

    def offered(given: SandboxConfig) -> WorkerRuntimes | None:
        try:
            return planned(given).runtimes
        except ConfigError:
            return None

    elsewhere = config(*map(moved, given.versions), default=f"{given.default_version}-moved")
    assert offered(elsewhere) == offered(given)


# --- configs


def test_a_config_with_a_name_twice_or_an_unknown_class_is_refused() -> None:
    with pytest.raises(InputError, match=r"^\$\.spec\.versions\[2\]\.name: 'v1' is already the name of \$"):
        config(V1, V2, V1)
    with pytest.raises(
        InputError, match=r"^\$\.spec\.sandboxClass: 'runc' is not known; .* gvisor and microvm"
    ):
        config(V1, sandbox_class="runc")


def test_a_version_without_a_name_or_with_an_asset_twice_is_refused() -> None:
    with pytest.raises(InputError, match=r"^\$\.name: the name is empty"):
        version("")
    with pytest.raises(InputError, match=r"^\$\.assets\.amd64: 'gvisor' is listed twice"):
        version("v1", runsc("a"), runsc("b"))


def test_a_version_knows_its_architectures() -> None:
    assert V1.architectures == (AMD64, ARM64)
    assert version("v1", runsc("a", ARM64)).architectures == (ARM64,)
    assert {V1: 1}[version("v1")] == 1
