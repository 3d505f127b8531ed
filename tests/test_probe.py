"""The identity of a host: what each profile reports, what is left out, and what a person is told."""

from typing import Final

import attrs
import pytest
from hypothesis import given

from strategies import amd64_sets, arm64_sets
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuinfo import CpuInfo, cpu_flags_hash, parse_cpuinfo
from substrate_compat.errors import InputError
from substrate_compat.guest import XSAVE_NOTE
from substrate_compat.identity import (
    CPU_CACHE_LINE,
    CPU_FEATURES,
    CPU_FLAGS_HASH,
    CPU_MODEL,
    CPU_VENDOR,
    GVISOR,
    GVISOR_CACHE_LINE,
    MAX_VALUE,
    MICROVM,
    PROFILES,
    SANDBOX_RUNTIME_HASH,
    Profile,
)
from substrate_compat.levels import offered
from substrate_compat.probe import ATTRIBUTE_KEYS, probe
from vectors import Capture, amd64, captures

HASH: Final = "sha256:" + "a" * 64
EVERYTHING: Final = Profile("gvisor", ATTRIBUTE_KEYS)

MILAN: Final = parse_cpuinfo(
    "processor : 0\nvendor_id : AuthenticAMD\nmodel name : AMD EPYC 7713 64-Core Processor\n"
    "flags : fpu lm avx2\nclflush size : 64\n"
)
NEOVERSE: Final = parse_cpuinfo(
    "processor : 0\nFeatures : fp asimd aes sve2\nCPU implementer : 0x41\nCPU variant : 0x3\n"
    "CPU part : 0xd0c\nCPU revision : 1\n"
)
UNKNOWN: Final = parse_cpuinfo("processor : 0\nflags : fpu lm\n")
SEEN: Final = amd64("fpu,avx2,xsave,osxsave")

Read = tuple[Profile, CpuInfo, FeatureSet | None, str | None]

NO_VENDOR: Final = "cpuinfo names no vendor for every processor"
NO_MODEL: Final = "cpuinfo names no model of the host's for every processor"
NO_CACHE_LINE: Final = "cpuinfo has no clflush size that every processor shares"
NO_FEATURES: Final = "no feature set was given, and on amd64 cpuinfo does not tell what gVisor sees"
NO_HASH: Final = "no runtime hash was given"


@pytest.mark.parametrize(
    ("read", "attributes", "left_out"),
    [
        pytest.param(
            (GVISOR, MILAN, SEEN, HASH),
            {"architecture": "amd64", CPU_FEATURES: SEEN.hex, SANDBOX_RUNTIME_HASH: HASH},
            {},
            id="gvisor",
        ),
        pytest.param(
            (GVISOR_CACHE_LINE, MILAN, SEEN, HASH),
            {
                "architecture": "amd64",
                CPU_FEATURES: SEEN.hex,
                SANDBOX_RUNTIME_HASH: HASH,
                CPU_CACHE_LINE: "64",
            },
            {},
            id="gvisor with the cache line",
        ),
        pytest.param(
            (GVISOR, MILAN, None, None),
            {"architecture": "amd64"},
            {CPU_FEATURES: NO_FEATURES, SANDBOX_RUNTIME_HASH: NO_HASH},
            id="gvisor of cpuinfo alone",
        ),
        pytest.param(
            (GVISOR, NEOVERSE, None, HASH),
            {"architecture": "arm64", CPU_FEATURES: "b", SANDBOX_RUNTIME_HASH: HASH},
            {},
            id="gvisor on arm64 of cpuinfo alone",
        ),
        pytest.param(
            (GVISOR, NEOVERSE, FeatureSet(Architecture.ARM64, 3), None),
            {"architecture": "arm64", CPU_FEATURES: "3"},
            {SANDBOX_RUNTIME_HASH: NO_HASH},
            id="on arm64 runsc is asked before cpuinfo",
        ),
        pytest.param(
            (MICROVM, MILAN, None, HASH),
            {
                "architecture": "amd64",
                CPU_VENDOR: "AuthenticAMD",
                CPU_MODEL: "AMD EPYC 7713 64-Core Processor",
                SANDBOX_RUNTIME_HASH: HASH,
            },
            {},
            id="microvm",
        ),
        pytest.param(
            (MICROVM, NEOVERSE, None, HASH),
            {
                "architecture": "arm64",
                CPU_VENDOR: "0x41",
                CPU_MODEL: "0xd0c r3p1",
                SANDBOX_RUNTIME_HASH: HASH,
            },
            {},
            id="microvm on arm64",
        ),
        pytest.param(
            (EVERYTHING, UNKNOWN, None, None),
            {"architecture": "amd64", CPU_FLAGS_HASH: cpu_flags_hash(["fpu", "lm"])},
            {
                CPU_FEATURES: NO_FEATURES,
                CPU_VENDOR: NO_VENDOR,
                CPU_MODEL: NO_MODEL,
                SANDBOX_RUNTIME_HASH: NO_HASH,
                CPU_CACHE_LINE: NO_CACHE_LINE,
            },
            id="everything that can be left out",
        ),
        pytest.param(
            (Profile("gvisor", (CPU_CACHE_LINE,)), attrs.evolve(MILAN, cache_line=0), None, None),
            {CPU_CACHE_LINE: "0"},
            {},
            id="a cache line of 0 is recorded",
        ),
    ],
)
def test_a_profile_reports_what_could_be_read(
    read: Read, attributes: dict[str, str], left_out: dict[str, str]
) -> None:
    profile, *_ = read
    probed = probe(*read, name="a host")
    assert dict(probed.runtime.compat_version.attributes) == attributes
    assert probed.left_out == left_out
    assert probed.notes == ()
    assert (probed.runtime.sandbox_class, probed.runtime.name) == (profile.sandbox_class, "a host")
    assert {*attributes, *left_out} == {*profile.keys}


def test_every_profile_can_be_probed() -> None:
    assert {key for profile in PROFILES for key in profile.keys} < {*ATTRIBUTE_KEYS}


@pytest.mark.parametrize(
    ("listing", "mask_of", "noted"),
    [
        pytest.param("fpu,xsave,osxsave", "fpu,xsave,osxsave", False, id="usable"),
        pytest.param("fpu,osxsave", "fpu,osxsave", False, id="no xsave"),
        pytest.param("fpu,xsave", "fpu", True, id="xsave without osxsave"),
        pytest.param("fpu", "fpu", True, id="neither"),
    ],
)
def test_a_host_without_osxsave_does_not_offer_xsave(listing: str, mask_of: str, noted: bool) -> None:
    probed = probe(GVISOR, MILAN, amd64(listing))
    assert probed.runtime.compat_version.features == amd64(mask_of)
    assert probed.notes == ((XSAVE_NOTE,) if noted else ())


def test_the_xsave_rule_is_gvisors_alone() -> None:
    probed = probe(Profile("microvm", (CPU_FEATURES,)), MILAN, amd64("fpu,xsave"))
    assert probed.runtime.compat_version.get(CPU_FEATURES) == amd64("fpu,xsave").hex
    assert probed.notes == ()


@given(amd64_sets)
def test_a_worker_offers_what_runsc_reports_but_for_an_unusable_xsave(features: FeatureSet) -> None:
    told = probe(GVISOR, MILAN, features).runtime.compat_version.features
    assert told == offered(features)
    assert (features - told).names in {(), ("xsave",)}


def test_flags_that_vary_are_noted() -> None:
    cpu = parse_cpuinfo("processor : 0\nflags : lm b a\nprocessor : 1\nflags : lm\n")
    assert probe(GVISOR, cpu).notes == (
        "not every processor has these flags, so the host does not count as having them: a, b",
    )


def test_inside_a_sandbox_of_gvisor_a_person_is_told_and_no_model_is_reported() -> None:
    cpu = parse_cpuinfo("processor : 0\nvendor_id : GenuineIntel\nmodel name : unknown\nflags : fpu lm\n")
    probed = probe(MICROVM, cpu, runtime_hash=HASH)
    assert probed.left_out == {CPU_MODEL: NO_MODEL}
    assert probed.notes == (
        "this cpuinfo looks like gVisor's own: probe the host itself, not a sandbox on it",
    )


def test_notes_come_together() -> None:
    cpu = parse_cpuinfo("processor : 0\nmodel name : unknown\nflags : lm a\nprocessor : 1\nflags : lm\n")
    assert [note.partition(" ")[0] for note in probe(GVISOR, cpu, amd64("fpu")).notes] == [
        "this",
        "not",
        "this",
    ]


def test_a_value_may_be_256_characters_long_and_no_longer() -> None:
    longest = attrs.evolve(MILAN, model="x" * MAX_VALUE)
    assert probe(MICROVM, longest).runtime.compat_version.get(CPU_MODEL) == "x" * 256
    probed = probe(MICROVM, attrs.evolve(MILAN, model="x" * (MAX_VALUE + 1)))
    assert probed.runtime.compat_version.get(CPU_MODEL) is None
    assert probed.left_out[CPU_MODEL] == "its 257 characters are more than the 256 of an attribute"


@pytest.mark.parametrize(
    ("profile", "features", "runtime_hash", "message"),
    [
        pytest.param(
            GVISOR,
            FeatureSet(Architecture.ARM64, 1),
            None,
            "features: they are of arm64, the host is amd64",
            id="features of another architecture",
        ),
        pytest.param(
            GVISOR,
            None,
            "a" * 64,
            f"runtime hash: '{'a' * 64}' does not begin with `sha256:`",
            id="a bare digest",
        ),
        pytest.param(
            GVISOR,
            None,
            "sha256:abc",
            "runtime hash: 'sha256:abc' is not a SHA-256 digest: 3 digits instead of 64; "
            "write the 64 lower-case hex digits, with or without `sha256:`",
            id="no digest",
        ),
        pytest.param(
            Profile("gvisor", ("architecture", "cpu_colour")),
            None,
            None,
            "profile: 'cpu_colour' cannot be probed; known are architecture, cpu_features, cpu_vendor, "
            "cpu_model, sandbox_runtime_hash, cpu_cache_line, cpu_flags_hash",
            id="a key that cannot be probed",
        ),
        pytest.param(
            Profile("gvisor", (SANDBOX_RUNTIME_HASH,)),
            None,
            None,
            "$.attributes: 0 attributes; 1 to 32 are allowed",
            id="nothing that could be read",
        ),
    ],
)
def test_what_cannot_be_probed(
    profile: Profile, features: FeatureSet | None, runtime_hash: str | None, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        probe(profile, MILAN, features, runtime_hash)
    assert str(caught.value) == message


@pytest.mark.parametrize("capture", captures(), ids=lambda capture: capture.name)
def test_a_capture_has_an_identity_in_every_profile(capture: Capture) -> None:
    cpu = parse_cpuinfo(capture.text)
    features = FeatureSet.from_names(capture.architecture, capture.listing.split(","))
    for profile in (*PROFILES, GVISOR_CACHE_LINE, EVERYTHING):
        probed = probe(profile, cpu, features, HASH)
        compat = probed.runtime.compat_version
        assert {key for key, _ in compat.attributes} | {*probed.left_out} == {*profile.keys}
        assert CPU_FEATURES not in profile.keys or compat.features == offered(features)
        assert {*probed.left_out} <= {CPU_CACHE_LINE, CPU_VENDOR}


@given(arm64_sets)
def test_on_arm64_cpuinfo_serves_as_a_listing(features: FeatureSet) -> None:
    seen = features | FeatureSet.from_names(Architecture.ARM64, ["fp", "asimd"])
    cpu = parse_cpuinfo(f"processor : 0\nFeatures : {' '.join(seen)} beyond\n")
    assert probe(GVISOR, cpu) == probe(GVISOR, cpu, seen)
