"""What the laws are tried on: hypothesis strategies for every value of the library.

Values that often agree find more than values that never do: keys, texts and features come from small
pools as well as from all that is allowed, so that two draws are equal, nested or apart about as often.
"""

from collections.abc import Mapping
from typing import Final

from hypothesis import strategies as st

from substrate_compat.cpufeatures import MASK_BITS, FeatureSet, known_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.identity import (
    ARCHITECTURE,
    CPU_CACHE_LINE,
    CPU_FEATURES,
    CPU_FLAGS_HASH,
    CPU_MODEL,
    CPU_VENDOR,
    MAX_RESTORABLE_RUNTIMES,
    MAX_VALUE,
    SANDBOX_RUNTIME_HASH,
    SandboxRuntime,
    VersionedSandboxCompat,
    WorkerRuntimes,
)

MOST_ATTRIBUTES: Final = 32
LONGEST_KEY: Final = 128
LONGEST_SANDBOX_CLASS: Final = 63
LONGEST_SCHEMA_VERSION: Final = 64
_CPU_KEYS: Final = (CPU_VENDOR, CPU_MODEL, CPU_CACHE_LINE, CPU_FLAGS_HASH)

architectures = st.sampled_from(Architecture)


def texts(longest: int) -> st.SearchStrategy[str]:
    """Any Unicode text of 1 to `longest` characters: what an identity may carry."""
    return st.text(st.characters(codec="utf-8"), min_size=1, max_size=longest)


def names(architecture: Architecture) -> st.SearchStrategy[str]:
    """The name of a feature."""
    return st.sampled_from([feature.name for feature in known_features(architecture)])


@st.composite
def feature_sets(draw: st.DrawFn, of: st.SearchStrategy[Architecture] = architectures) -> FeatureSet:
    """A set of one architecture: a few features, all but a few, or any."""
    architecture = draw(of)
    every = FeatureSet.from_names(architecture, [row.name for row in known_features(architecture)])
    chosen = FeatureSet.from_names(architecture, draw(st.sets(names(architecture), max_size=8)))
    any_bits = st.integers(0, every.bits).map(lambda bits: FeatureSet(architecture, bits & every.bits))
    return draw(st.one_of(st.just(chosen), st.just(every - chosen), any_bits))


amd64_sets = feature_sets(st.just(Architecture.AMD64))
arm64_sets = feature_sets(st.just(Architecture.ARM64))


@st.composite
def pairs_of_sets(draw: st.DrawFn) -> tuple[FeatureSet, FeatureSet]:
    """Two sets of one architecture: anything, nested or equal."""
    of_one = feature_sets(st.just(draw(architectures)))
    one, other = draw(of_one), draw(of_one)
    return draw(st.sampled_from([(one, other), (one & other, one), (one, one | other), (one, one)]))


def masks(architecture: Architecture) -> st.SearchStrategy[str]:
    """The text of a mask that can be decoded, with up to 96 digits in all."""
    digits = MASK_BITS // 4
    return st.builds(
        lambda features, zeros: features.hex.rjust(min(len(features.hex) + zeros, digits), "0"),
        feature_sets(st.just(architecture)),
        st.integers(0, 4) | st.just(digits),
    )


unreadable_masks = st.sampled_from(
    ["", "0x1", "A", "1\n", " 1", "-1", "1_0", "\u0661", f"{1 << 85:x}", "f" * 97]
)
"""Texts that are no mask, on either architecture."""

cpu_features_values = (
    masks(Architecture.AMD64)
    | masks(Architecture.ARM64)
    | unreadable_masks.filter(len)
    | st.sampled_from("013")
)
"""Any value that the attribute `cpu_features` may carry."""

runtime_hashes = st.sampled_from(["sha256:" + digit * 64 for digit in "abc"])


@st.composite
def attributes(draw: st.DrawFn) -> Mapping[str, str]:
    """Attributes within every limit, in any order: the known keys, and others."""
    known = draw(
        st.fixed_dictionaries(
            {},
            optional={
                ARCHITECTURE: st.sampled_from(["amd64", "amd64", "arm64", "riscv64"]),
                CPU_FEATURES: cpu_features_values,
                SANDBOX_RUNTIME_HASH: runtime_hashes,
                **{key: st.sampled_from("ab") for key in _CPU_KEYS},
            },
        )
    )
    others = draw(
        st.dictionaries(
            st.sampled_from(["a", "cpu", "cpu_", "cpu_a", "z"]) | texts(LONGEST_KEY),
            st.sampled_from("ab") | texts(MAX_VALUE),
            min_size=0 if known else 1,
            max_size=4,
        )
    )
    pairs = draw(st.permutations([*{**others, **known}.items()]))
    return dict(pairs)


schema_versions = st.sampled_from(["v1", "v1", "v1", "v2"]) | texts(LONGEST_SCHEMA_VERSION)
sandbox_classes = st.sampled_from(["gvisor", "gvisor", "microvm"]) | texts(LONGEST_SANDBOX_CLASS)

compats = st.builds(VersionedSandboxCompat.of, attributes(), schema_versions)
"""Any compat version, readable or not."""

sandbox_runtimes = st.builds(SandboxRuntime, sandbox_classes, compats, st.just("") | texts(4))
"""Any identity."""


@st.composite
def gvisor_runtimes(draw: st.DrawFn, of: st.SearchStrategy[Architecture] = architectures) -> SandboxRuntime:
    """An identity of class gvisor whose feature set can be read."""
    architecture = draw(of)
    recorded = {
        ARCHITECTURE: architecture.value,
        CPU_FEATURES: draw(masks(architecture)),
        SANDBOX_RUNTIME_HASH: draw(runtime_hashes),
    }
    if draw(st.booleans()):
        recorded[CPU_CACHE_LINE] = draw(st.sampled_from(["0", "64"]))
    return SandboxRuntime("gvisor", VersionedSandboxCompat.of(recorded))


@st.composite
def worker_runtimes(
    draw: st.DrawFn,
    of: st.SearchStrategy[SandboxRuntime] = sandbox_runtimes,
    most: int = 3,
) -> WorkerRuntimes:
    """What a worker offers: a default and at most `most` others of its class, all different."""
    default = draw(of)
    others = draw(st.lists(of, max_size=min(most, MAX_RESTORABLE_RUNTIMES)))
    restorable = dict.fromkeys(
        SandboxRuntime(default.sandbox_class, other.compat_version, other.name) for other in others
    )
    restorable.pop(default, None)
    return WorkerRuntimes(default, tuple(restorable))


@st.composite
def near_snapshots(draw: st.DrawFn, runtime: SandboxRuntime) -> SandboxRuntime:
    """An identity that `runtime` may well restore: some of its attributes, and less of its features."""
    compat = runtime.compat_version
    kept = draw(st.lists(st.sampled_from(compat.attributes), min_size=1, unique=True))
    recorded = dict(kept)
    if CPU_FEATURES in recorded and compat.features is not None:
        fewer = draw(feature_sets(st.just(compat.features.architecture)))
        recorded[CPU_FEATURES] = draw(
            st.sampled_from([compat.features & fewer, compat.features | fewer])
        ).hex
    return SandboxRuntime(
        runtime.sandbox_class, VersionedSandboxCompat.of(recorded, compat.schema_version), "snapshot"
    )
