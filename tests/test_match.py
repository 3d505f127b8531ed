"""The match rules as a table, then laws, then gVisor's own verdicts and real restores."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vectors
from strategies import (
    amd64_sets,
    feature_sets,
    gvisor_runtimes,
    near_snapshots,
    sandbox_runtimes,
    worker_runtimes,
)
from substrate_compat.cpufeatures import (
    FeatureSet,
    decode_cpu_features,
    known_features,
    parse_architecture,
)
from substrate_compat.cpufeatures_table import Architecture, Feature
from substrate_compat.errors import InputError
from substrate_compat.identity import (
    GVISOR,
    SandboxRuntime,
    VersionedSandboxCompat,
    WorkerRuntimes,
)
from substrate_compat.match import (
    Mismatch,
    Reason,
    Unchecked,
    explain,
    explain_worker,
    matches,
    matches_compat,
    stamp,
)
from substrate_compat.probe import CpuInfo, parse_cpuinfo, probe
from substrate_compat.wording import describe

AMD64, ARM64 = Architecture.AMD64, Architecture.ARM64
HASH, OTHER_HASH = "sha256:" + "1" * 64, "sha256:" + "2" * 64
BASE = {"architecture": "amd64", "cpu_features": "3", "sandbox_runtime_hash": HASH}


def identity(
    attributes: Mapping[str, str] = BASE,
    sandbox_class: str = "gvisor",
    schema: str = "v1",
    name: str = "",
    **changed: str | None,
) -> SandboxRuntime:
    """An identity of `attributes`, changed; a key changed to None is left out."""
    values = {key: value for key, value in {**attributes, **changed}.items() if value is not None}
    return SandboxRuntime(sandbox_class, VersionedSandboxCompat.of(values, schema), name)


def reasons(worker: SandboxRuntime | None, snapshot: SandboxRuntime | None) -> list[tuple[str, str]]:
    return [(each.reason.value, each.key) for each in explain(worker, snapshot).mismatches]


# Each row: the worker, the snapshot, and the reasons against in their order; none means yes.
RULES = [
    pytest.param(identity(), identity(), [], id="equal"),
    pytest.param(
        identity(sandbox_class="microvm"), identity(), [("sandbox_class", "sandbox_class")], id="class"
    ),
    pytest.param(identity(schema="v2"), identity(), [("schema_version", "schema_version")], id="schema"),
    pytest.param(identity(extra="1"), identity(), [], id="only on the worker"),
    pytest.param(identity(), identity(extra="1"), [("missing_key", "extra")], id="only on the snapshot"),
    pytest.param(identity(extra="1"), identity(extra="2"), [("different_value", "extra")], id="value"),
    pytest.param(identity(dict(reversed(BASE.items()))), identity(), [], id="order"),
    pytest.param(identity(name="a"), identity(name="b"), [], id="name"),
    pytest.param(identity(cpu_features="7"), identity(), [], id="superset"),
    pytest.param(
        identity(cpu_features="1"), identity(), [("missing_features", "cpu_features")], id="subset"
    ),
    pytest.param(
        identity(cpu_features="4"), identity(), [("missing_features", "cpu_features")], id="disjoint"
    ),
    pytest.param(identity(), identity(cpu_features="0"), [], id="empty set"),
    pytest.param(identity(cpu_features="0003"), identity(), [], id="zero padding"),
    pytest.param(
        identity(cpu_features=None),
        identity(),
        [("missing_key", "cpu_features")],
        id="no mask on the worker",
    ),
    pytest.param(
        identity(cpu_features=None),
        identity(cpu_features="0"),
        [("missing_key", "cpu_features")],
        id="no mask on the worker, an empty one on the snapshot",
    ),
    pytest.param(identity(), identity(cpu_features=None), [], id="no mask on the snapshot"),
    pytest.param(
        identity(cpu_features="0x3"),
        identity(cpu_features="0x3"),
        [("unreadable_features", "cpu_features")],
        id="equal masks that cannot be decoded",
    ),
    pytest.param(
        identity(cpu_features=f"{1 << 85:x}"),
        identity(cpu_features="0"),
        [("unreadable_features", "cpu_features")],
        id="a bit without a name on the worker",
    ),
    pytest.param(
        identity(architecture=None),
        identity(architecture=None),
        [("unreadable_features", "cpu_features")],
        id="masks beside no architecture",
    ),
    pytest.param(
        identity(architecture="riscv64"),
        identity(architecture="riscv64"),
        [("unreadable_features", "cpu_features")],
        id="masks beside riscv64",
    ),
    pytest.param(
        identity(architecture=None),
        identity(),
        [("missing_key", "architecture"), ("unreadable_features", "cpu_features")],
        id="the worker has no architecture",
    ),
    pytest.param(
        identity(architecture="arm64"),
        identity(cpu_vendor="GenuineIntel", cpu_cache_line="64"),
        [("different_value", "architecture")],
        id="amd64 snapshot on arm64 worker",
    ),
    pytest.param(
        identity(sandbox_class="microvm", schema="v2", cpu_features="1", zone="a", cpu_vendor="A"),
        identity(sandbox_runtime_hash=OTHER_HASH, cpu_vendor="B", cpu_cache_line="64", board="x", zone="b"),
        [
            ("sandbox_class", "sandbox_class"),
            ("schema_version", "schema_version"),
            ("different_value", "sandbox_runtime_hash"),
            ("missing_key", "cpu_cache_line"),
            ("missing_features", "cpu_features"),
            ("different_value", "cpu_vendor"),
            ("missing_key", "board"),
            ("different_value", "zone"),
        ],
        id="several at once, in the fixed order",
    ),
    pytest.param(
        identity(architecture="arm64", cpu_vendor="A"),
        identity(sandbox_runtime_hash=OTHER_HASH, cpu_vendor="B", zone="b"),
        [
            ("different_value", "architecture"),
            ("different_value", "sandbox_runtime_hash"),
            ("missing_key", "zone"),
        ],
        id="architecture hides only CPU keys",
    ),
]


@pytest.mark.parametrize(("worker", "snapshot", "expected"), RULES)
def test_rules(worker: SandboxRuntime, snapshot: SandboxRuntime, expected: list[tuple[str, str]]) -> None:
    assert reasons(worker, snapshot) == expected
    assert matches(worker, snapshot) is (not expected)
    same_class = worker.sandbox_class == snapshot.sandbox_class
    by_attributes = matches_compat(worker.compat_version, snapshot.compat_version)
    assert by_attributes is (not [each for each in expected if each[0] != "sandbox_class"])
    assert matches(worker, snapshot) is (same_class and by_attributes)


@pytest.mark.parametrize(
    ("worker", "snapshot", "expected"),
    [
        pytest.param(identity(), None, True, id="no snapshot"),
        pytest.param(None, identity(), False, id="no worker"),
        pytest.param(None, None, True, id="neither"),
    ],
)
def test_none(worker: SandboxRuntime | None, snapshot: SandboxRuntime | None, *, expected: bool) -> None:
    assert matches(worker, snapshot) is expected
    verdict = explain(worker, snapshot)
    assert verdict.compatible is expected
    assert verdict.certain is False
    assert reasons(worker, snapshot) == ([] if expected else [("no_worker", "")])
    compat = identity().compat_version
    assert matches_compat(compat if worker else None, compat if snapshot else None) is False


def test_a_mismatch_tells_both_values_and_the_missing_names() -> None:
    worker = identity(cpu_features="8", sandbox_runtime_hash=OTHER_HASH)
    assert explain(worker, identity(cpu_features="2b")).mismatches == (
        Mismatch(Reason.DIFFERENT_VALUE, "sandbox_runtime_hash", OTHER_HASH, HASH),
        Mismatch(Reason.MISSING_FEATURES, "cpu_features", "8", "2b", ("pclmulqdq", "pni", "vmx")),
    )


@pytest.mark.parametrize(
    ("worker", "snapshot", "mismatch"),
    [
        pytest.param(
            identity(sandbox_class="microvm"),
            identity(),
            Mismatch(Reason.SANDBOX_CLASS, "sandbox_class", "microvm", "gvisor"),
            id="class",
        ),
        pytest.param(
            identity(schema="v2"),
            identity(),
            Mismatch(Reason.SCHEMA_VERSION, "schema_version", "v2", "v1"),
            id="schema",
        ),
        pytest.param(
            identity(), identity(zone="a"), Mismatch(Reason.MISSING_KEY, "zone", None, "a"), id="a key"
        ),
        pytest.param(
            identity(zone="b"),
            identity(zone="a"),
            Mismatch(Reason.DIFFERENT_VALUE, "zone", "b", "a"),
            id="a value",
        ),
        pytest.param(
            identity(cpu_features="0x1"),
            identity(cpu_features="0"),
            Mismatch(Reason.UNREADABLE_FEATURES, "cpu_features", "0x1", "0"),
            id="a mask that cannot be decoded",
        ),
        pytest.param(None, identity(), Mismatch(Reason.NO_WORKER, "", None, None), id="no worker"),
    ],
)
def test_each_kind_of_mismatch_tells_both_values(
    worker: SandboxRuntime | None, snapshot: SandboxRuntime, mismatch: Mismatch
) -> None:
    assert explain(worker, snapshot).mismatches == (mismatch,)


@pytest.mark.parametrize(
    ("snapshot", "unchecked"),
    [
        pytest.param(identity(cpu_cache_line="64"), (), id="all that gVisor looks at"),
        pytest.param(identity(), ("cpu_cache_line",), id="no cache line"),
        pytest.param(
            identity({"architecture": "amd64"}),
            ("cpu_features", "sandbox_runtime_hash", "cpu_cache_line"),
            id="little of gvisor",
        ),
        pytest.param(identity(architecture="arm64"), (Unchecked.BEYOND_HWCAP,), id="arm64"),
        pytest.param(
            identity({"cpu_vendor": "A"}, "microvm"),
            ("architecture", "cpu_model", "sandbox_runtime_hash", Unchecked.TSC_RATE),
            id="little of microvm",
        ),
        pytest.param(identity(sandbox_class="wasm"), (Unchecked.SANDBOX_CLASS,), id="unknown class"),
        pytest.param(identity(schema="v2"), (Unchecked.SCHEMA_VERSION,), id="unknown schema"),
    ],
)
def test_unchecked(snapshot: SandboxRuntime, unchecked: tuple[str, ...]) -> None:
    verdict = explain(snapshot, snapshot)
    assert verdict.unchecked == unchecked
    assert verdict.compatible
    assert verdict.certain is not bool(unchecked)
    refused = explain(None, snapshot)
    assert refused.unchecked == unchecked
    assert not refused.certain


FIRST, SECOND, THIRD = (identity(sandbox_runtime_hash=f"sha256:{digit * 64}") for digit in "123")


@pytest.mark.parametrize(
    ("snapshot", "runtime"),
    [(FIRST, FIRST), (SECOND, SECOND), (THIRD, THIRD), (identity(extra="1"), None), (None, FIRST)],
)
def test_explain_worker(snapshot: SandboxRuntime | None, runtime: SandboxRuntime | None) -> None:
    verdict = explain_worker(WorkerRuntimes(FIRST, (SECOND, THIRD)), snapshot)
    assert verdict.runtime == runtime
    assert verdict.compatible is (runtime is not None)
    assert verdict.verdicts == tuple(explain(each, snapshot) for each in (FIRST, SECOND, THIRD))
    assert verdict.certain is False


def test_a_worker_is_certain_by_the_runtime_that_it_restores_under() -> None:
    certain = identity(cpu_cache_line="64")
    assert explain_worker(WorkerRuntimes(FIRST, (certain,)), certain).certain


class TestStamp:
    """What a new snapshot carries."""

    HOST = FeatureSet.from_names(AMD64, ["fpu", "osxsave", "xsave", "avx2"])

    def runtime(self, features: FeatureSet) -> SandboxRuntime:
        return identity(architecture=features.architecture.value, cpu_features=features.hex, name="v1")

    def seen(self, snapshot: SandboxRuntime) -> tuple[str, ...]:
        features = snapshot.compat_version.features
        assert features is not None
        return features.names

    def test_a_cold_start_carries_the_workers_identity(self) -> None:
        worker = self.runtime(self.HOST)
        assert stamp(worker) == worker
        assert stamp(worker).name == "v1"

    def test_under_a_level_the_guest_saw_less(self) -> None:
        level = FeatureSet.from_names(AMD64, ["fpu", "osxsave", "aes"])
        assert self.seen(stamp(self.runtime(self.HOST), level)) == ("fpu", "osxsave", "xsave")

    def test_without_osxsave_the_snapshot_counts_as_needing_xsave(self) -> None:
        worker = self.runtime(FeatureSet.from_names(AMD64, ["fpu"]))
        assert self.seen(stamp(worker)) == ("fpu", "xsave")
        assert not matches(worker, stamp(worker))

    def test_a_level_without_osxsave_counts_as_needing_xsave(self) -> None:
        worker = self.runtime(FeatureSet.from_names(AMD64, ["fpu", "avx2"]))
        assert self.seen(stamp(worker, FeatureSet.from_names(AMD64, ["fpu"]))) == ("fpu", "xsave")

    def test_arm64_is_stamped_as_it_is(self) -> None:
        worker = self.runtime(FeatureSet.from_names(ARM64, ["fp"]))
        assert stamp(worker) == worker

    def test_a_parent_keeps_its_features_whatever_the_level(self) -> None:
        parent = stamp(self.runtime(FeatureSet.from_names(AMD64, ["fpu", "osxsave", "xsave"])))
        level = FeatureSet.from_names(AMD64, ["fpu"])
        again = stamp(self.runtime(self.HOST), level, parent)
        assert self.seen(again) == self.seen(parent)

    def test_a_parent_that_recorded_no_features_keeps_none(self) -> None:
        again = stamp(self.runtime(self.HOST), parent=identity(cpu_features=None))
        assert again.compat_version.get("cpu_features") is None

    def test_a_runtime_that_recorded_no_features_is_stamped_under_a_parent_that_did_not_either(
        self,
    ) -> None:
        worker = identity(cpu_features=None)
        assert stamp(worker, parent=worker) == worker

    def test_the_schema_is_that_of_the_runtime(self) -> None:
        worker = identity(schema="v2", cpu_features=self.HOST.hex)
        assert stamp(worker).compat_version.schema_version == "v2"

    def test_other_attributes_are_those_of_the_runtime(self) -> None:
        worker = identity(cpu_features=self.HOST.hex, cpu_cache_line="64")
        again = stamp(worker, parent=self.runtime(self.HOST))
        assert again.compat_version.get("cpu_cache_line") == "64"

    def test_what_is_not_gvisor_is_stamped_as_it_is(self) -> None:
        worker = identity({"architecture": "amd64", "cpu_vendor": "A", "cpu_features": "1"}, "microvm")
        assert stamp(worker) == worker

    def test_no_features_no_level(self) -> None:
        worker = identity(cpu_features=None)
        assert stamp(worker) == worker

    PROBE_AGAIN = "probe the worker again with the feature set that its runsc reports"
    NO_LEVELS = "level: gVisor knows no levels on arm64; pin the fleet to equal hosts instead"

    @pytest.mark.parametrize(
        ("worker", "level", "parent", "message"),
        [
            pytest.param(
                identity(),
                None,
                identity(zone="a"),
                "runtime: it does not match the parent: the sandbox cannot have been restored under it; "
                "give the runtime that `explain_worker` names for the parent",
                id="another parent",
            ),
            pytest.param(
                identity(sandbox_class="microvm"),
                HOST,
                None,
                "level: a sandbox of class 'microvm' has no level",
                id="microvm",
            ),
            pytest.param(
                identity(cpu_features=None),
                HOST,
                None,
                f"runtime: its cpu_features are not recorded; {PROBE_AGAIN}",
                id="no features",
            ),
            pytest.param(
                identity(cpu_features="0x3"),
                None,
                None,
                f"runtime: its cpu_features are unreadable; {PROBE_AGAIN}",
                id="unreadable",
            ),
            pytest.param(
                identity(cpu_features="0x3"),
                HOST,
                None,
                f"runtime: its cpu_features are unreadable; {PROBE_AGAIN}",
                id="unreadable, level",
            ),
            pytest.param(identity(), FeatureSet(ARM64, 1), None, NO_LEVELS, id="a level of arm64"),
            pytest.param(identity(architecture="arm64"), HOST, None, NO_LEVELS, id="arm64"),
        ],
    )
    def test_refused(
        self, worker: SandboxRuntime, level: FeatureSet | None, parent: SandboxRuntime | None, message: str
    ) -> None:
        with pytest.raises(InputError) as caught:
            stamp(worker, level, parent)
        assert str(caught.value) == message


# Laws


@given(st.data(), st.none() | sandbox_runtimes)
def test_explain_gives_the_answer_of_matches(data: st.DataObject, worker: SandboxRuntime | None) -> None:
    others = st.none() | sandbox_runtimes
    snapshot = data.draw(others if worker is None else others | near_snapshots(worker))
    assert explain(worker, snapshot).compatible is matches(worker, snapshot)


def readable(attributes: Mapping[str, str]) -> set[str] | None:
    """The names behind the mask, or None where they cannot be known."""
    try:
        architecture = parse_architecture(attributes.get("architecture", ""))
        return {*decode_cpu_features(attributes.get("cpu_features", ""), architecture)}
    except InputError:
        return None


def by_the_rules(worker: SandboxRuntime | None, snapshot: SandboxRuntime | None) -> bool:
    """The rules as they are written, with names and texts in the place of masks."""
    if snapshot is None or worker is None:
        return snapshot is None
    has, needs = dict(worker.compat_version.attributes), dict(snapshot.compat_version.attributes)
    if (worker.sandbox_class, worker.compat_version.schema_version) != (
        snapshot.sandbox_class,
        snapshot.compat_version.schema_version,
    ):
        return False
    if "cpu_features" in needs:
        seen, wanted = readable(has), readable(needs)
        if seen is None or wanted is None or not wanted <= seen:
            return False
    return all(has.get(key) == value for key, value in needs.items() if key != "cpu_features")


@given(st.data(), st.none() | sandbox_runtimes)
def test_matches_is_the_rules_as_they_are_written(
    data: st.DataObject, worker: SandboxRuntime | None
) -> None:
    others = st.none() | sandbox_runtimes
    snapshot = data.draw(others if worker is None else others | near_snapshots(worker))
    assert matches(worker, snapshot) is by_the_rules(worker, snapshot)


def place(mismatch: Mismatch) -> tuple[int, str]:
    """Where a reason belongs: class, schema, architecture, runtime hash, CPU keys, other keys."""
    if mismatch.reason in (Reason.SANDBOX_CLASS, Reason.SCHEMA_VERSION):
        return int(mismatch.reason is Reason.SCHEMA_VERSION), ""
    if mismatch.key in ("architecture", "sandbox_runtime_hash"):
        return 2 + (mismatch.key == "sandbox_runtime_hash"), mismatch.key
    return 5 - mismatch.key.startswith("cpu_"), mismatch.key


@given(st.data(), sandbox_runtimes)
def test_reasons_have_the_fixed_order_and_none_comes_twice(
    data: st.DataObject, worker: SandboxRuntime
) -> None:
    snapshot = data.draw(sandbox_runtimes | near_snapshots(worker))
    places = [place(mismatch) for mismatch in explain(worker, snapshot).mismatches]
    assert places == sorted(set(places))
    sides = {each.compat_version.get("architecture") for each in (worker, snapshot)} - {None}
    assert len(sides) < 2 or not any(at == 4 for at, _ in places)


@given(st.data(), worker_runtimes())
def test_a_worker_restores_under_its_first_runtime_that_matches(
    data: st.DataObject, runtimes: WorkerRuntimes
) -> None:
    snapshot = data.draw(st.none() | st.sampled_from([*runtimes]).flatmap(near_snapshots))
    able = [runtime for runtime in runtimes if matches(runtime, snapshot)]
    assert explain_worker(runtimes, snapshot).runtime == (able[0] if able else None)


@given(sandbox_runtimes, st.data())
def test_a_key_more_on_the_worker_or_less_on_the_snapshot_never_turns_yes_into_no(
    worker: SandboxRuntime, data: st.DataObject
) -> None:
    snapshot = data.draw(near_snapshots(worker))
    if not matches(worker, snapshot):
        return
    has, needs = dict(worker.compat_version.attributes), dict(snapshot.compat_version.attributes)
    more = {"zone": "a", **has}
    assert matches(identity(more, worker.sandbox_class, worker.compat_version.schema_version), snapshot)
    dropped = data.draw(st.sampled_from(sorted(needs)))
    del needs[dropped]
    # Without its architecture a mask cannot be read.
    if needs and not (dropped == "architecture" and "cpu_features" in needs):
        less = identity(needs, snapshot.sandbox_class, snapshot.compat_version.schema_version)
        assert matches(worker, less)


@given(gvisor_runtimes(), feature_sets(st.just(AMD64)))
def test_a_snapshot_is_restored_where_it_was_taken_if_xsave_is_usable(
    worker: SandboxRuntime, level: FeatureSet
) -> None:
    features = worker.compat_version.features
    assert features is not None
    usable = features.architecture is ARM64 or {"osxsave", "xsave"} <= {*features}
    assert not usable or matches(worker, stamp(worker))
    if usable and features.architecture is AMD64:
        allowed = level | FeatureSet.from_names(AMD64, ["osxsave"])
        assert matches(worker, stamp(worker, allowed))
        assert matches(worker, stamp(worker, allowed, parent=stamp(worker, allowed)))


@given(gvisor_runtimes(), st.data())
def test_a_snapshot_of_what_was_restored_needs_what_its_parent_needed(
    worker: SandboxRuntime, data: st.DataObject
) -> None:
    parent = data.draw(near_snapshots(worker))
    if not matches(worker, parent):
        return
    again = stamp(worker, parent=parent)
    assert again.compat_version.get("cpu_features") == parent.compat_version.get("cpu_features")
    assert matches(worker, again)
    assert stamp(worker, parent=again) == again


@given(sandbox_runtimes)
def test_an_identity_restores_itself_where_its_features_can_be_read(runtime: SandboxRuntime) -> None:
    compat = runtime.compat_version
    readable = compat.features is not None or compat.get("cpu_features") is None
    assert matches(runtime, runtime) is readable


@given(amd64_sets, amd64_sets, amd64_sets)
def test_more_features_on_the_worker_never_turn_yes_into_no(
    worker: FeatureSet, more: FeatureSet, snapshot: FeatureSet
) -> None:
    needs = identity(cpu_features=snapshot.hex)
    if matches(identity(cpu_features=worker.hex), needs):
        assert matches(identity(cpu_features=(worker | more).hex), needs)
    less = identity(cpu_features=(snapshot - more).hex)
    if matches(identity(cpu_features=worker.hex), needs):
        assert matches(identity(cpu_features=worker.hex), less)


@given(amd64_sets, amd64_sets)
def test_missing_names_are_the_set_difference(worker: FeatureSet, snapshot: FeatureSet) -> None:
    verdict = explain(identity(cpu_features=worker.hex), identity(cpu_features=snapshot.hex))
    assert verdict.compatible is (snapshot <= worker)
    named = [mismatch.features for mismatch in verdict.mismatches]
    assert named == ([] if snapshot <= worker else [(snapshot - worker).names])


@pytest.mark.parametrize(
    ("architecture", "feature"),
    [(architecture, feature) for architecture in Architecture for feature in known_features(architecture)],
    ids=lambda value: value.name,
)
def test_every_bit_counts(architecture: Architecture, feature: Feature) -> None:
    every = FeatureSet.from_names(architecture, [row.name for row in known_features(architecture)])
    less = every - FeatureSet.from_names(architecture, [feature.name])
    whole = identity(architecture=architecture.value, cpu_features=every.hex)
    worker = identity(architecture=architecture.value, cpu_features=less.hex)
    assert matches(whole, whole)
    assert not matches(worker, whole)
    (mismatch,) = explain(worker, whole).mismatches
    assert mismatch.features == (feature.name,)


# Vectors


def test_real_restores_between_amd64_models() -> None:
    """400 restores that runsc tried, the identities made as a worker and a snapshot make them."""
    real = vectors.real_restores()
    workers = {
        machine.model: probe(
            GVISOR, cpu(AMD64, machine.features, machine.clflush_size), machine.features, HASH
        ).runtime
        for machine in real.machines
    }
    sets = {machine.model: machine.features for machine in real.machines}
    snapshots = {model: stamp(worker) for model, worker in workers.items()}
    for restore in real.restores:
        verdict = explain(workers[restore.worker], snapshots[restore.snapshot])
        missing = tuple(name for each in verdict.mismatches for name in each.features)
        if "osxsave" in sets[restore.worker]:
            assert verdict.compatible is restore.restored
            assert missing == restore.missing
        else:
            assert not verdict.compatible
            assert "xsave" in missing
            assert "xsave" in describe(verdict)
            assert "osxsave" in describe(verdict)
    assert len(real.restores) == 400


def test_real_restores_between_arm64_models() -> None:
    """49 restores; the worker's set comes from the Features line of its cpuinfo."""
    real = vectors.real_restores().arm64
    workers = {
        machine.model: probe(
            GVISOR,
            parse_cpuinfo(f"processor : 0\nFeatures : {machine.cpuinfo_features}\n", ARM64),
            runtime_hash=HASH,
        ).runtime
        for machine in real.machines
    }
    for restore in real.restores:
        verdict = explain(workers[restore.worker], stamp(workers[restore.snapshot]))
        assert verdict.compatible is restore.restored
        assert tuple(name for each in verdict.mismatches for name in each.features) == restore.missing
    assert len(real.restores) == 49


def cpu(architecture: Architecture, features: FeatureSet, cache_line: int) -> CpuInfo:
    return CpuInfo(
        architecture=architecture,
        flags=frozenset(features),
        varying_flags=frozenset(),
        vendor=None,
        model=None,
        cache_line=cache_line,
        processors=1,
        looks_like_gvisor=False,
    )
