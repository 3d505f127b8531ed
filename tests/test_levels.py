"""Levels: what gVisor is told to show, and what every host of a fleet then can restore."""

import copy
import pickle
import random
import string
from collections.abc import Mapping
from itertools import combinations, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import amd64_sets, feature_sets
from substrate_compat.cpufeatures import FeatureSet, known_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import InputError
from substrate_compat.hosts import equal_hosts, named
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat
from substrate_compat.levels import (
    MOST_SETS,
    Level,
    annotation,
    beyond_level,
    choose_levels,
    claimed,
    common_level,
    guest_flags,
    level_name,
    levelled,
    offered,
    unannounced,
)
from substrate_compat.match import matches, stamp
from vectors import amd64, arm64, demo_hosts, gvisor_hosts, real_restores

BASIS = amd64("cmov,cx8,fpu,fxsr,lm,mmx,osxsave,sse,sse2,tsc,xsave")
ARM64 = arm64("fp,asimd")
MOST_DISTINCT = 12

levelable = st.builds(lambda features: BASIS | features, amd64_sets)
fleets = st.dictionaries(
    st.text(string.ascii_lowercase, min_size=1, max_size=3), levelable, min_size=1, max_size=6
)


def runtime(features: FeatureSet) -> SandboxRuntime:
    """A gVisor worker that offers `features`."""
    values = {"architecture": features.architecture.value, "cpu_features": offered(features).hex}
    return SandboxRuntime("gvisor", VersionedSandboxCompat.of(values))


def accepted(hosts: Mapping[str, FeatureSet], level: FeatureSet | None) -> int:
    """How many ordered pairs restore, each snapshot taken of a cold start under `level`."""
    workers = [runtime(features) for features in hosts.values()]
    snapshots = [stamp(worker, level) for worker in workers]
    return sum(matches(worker, snapshot) for worker in workers for snapshot in snapshots)


NO_OSXSAVE = "without osxsave, without which gVisor reports xsave or not from run to run"
NO_BASIS = "without cmov,cx8,fpu,fxsr,lm,mmx,sse,sse2,tsc, which x86-64 itself requires"
NO_XSAVE = "without xsave, which gVisor never takes away from a guest"
ON_ARM64 = "of arm64, on which gVisor knows no levels"


@pytest.mark.parametrize(
    ("hosts", "problem"),
    [
        pytest.param({"a": BASIS, "b": ARM64}, f"'b': {ON_ARM64}", id="mixed architectures"),
        pytest.param({"b": ARM64}, f"'b': {ON_ARM64}", id="arm64"),
        pytest.param(
            {"a": BASIS, "b": BASIS - amd64("osxsave")},
            f"'b': {NO_OSXSAVE}",
            id="no osxsave",
        ),
        pytest.param({"a": BASIS, "b": BASIS - amd64("xsave")}, f"'b': {NO_XSAVE}", id="no xsave"),
        pytest.param(
            {"a": BASIS, "b": BASIS - amd64("lm,sse2")},
            "'b': without lm,sse2, which x86-64 itself requires",
            id="below x86-64",
        ),
        pytest.param(
            {"a": BASIS, "b": amd64("")},
            f"'b': {NO_BASIS}, and {NO_OSXSAVE.removeprefix('without ')}, and "
            f"{NO_XSAVE.removeprefix('without ')}",
            id="an empty set",
        ),
        pytest.param(
            {"c" * 41: ARM64, "b": BASIS - amd64("osxsave")},
            f"'b': {NO_OSXSAVE}; '{'c' * 40}'... (41 characters): {ON_ARM64}",
            id="two kinds of host, one of a long name",
        ),
        pytest.param(
            {f"h{n}": BASIS - amd64("osxsave") for n in range(9)},
            f"'h0', 'h1', 'h2', 'h3', 'h4' and 4 more: {NO_OSXSAVE}",
            id="many",
        ),
        pytest.param(
            {name: BASIS - amd64(name) for name in ("cx8", "fpu", "fxsr", "lm", "mmx", "tsc", "sse")},
            "".join(
                f"'{name}': without {name}, which x86-64 itself requires; "
                for name in ("cx8", "fpu", "fxsr", "lm", "mmx")
            )
            + "and 2 more kinds of host",
            id="many kinds",
        ),
    ],
)
def test_a_fleet_that_cannot_be_levelled_is_refused_and_the_hosts_are_named(
    hosts: dict[str, FeatureSet], problem: str
) -> None:
    for refuse in (common_level, lambda hosts: choose_levels(hosts, 2)):
        with pytest.raises(InputError) as refused:
            refuse(hosts)
        assert (refused.value.subject, refused.value.problem) == ("level", problem)
        assert refused.value.remedy == "leave these hosts out: a snapshot of theirs needs an equal host"


def test_the_distinct_sets_of_a_fleet_are_in_the_order_of_their_masks() -> None:
    low, high = BASIS | amd64("aes"), BASIS | amd64("avx512_bf16")
    assert list(equal_hosts({"a": high, "b": low, "c": high}).items()) == [
        (low, ("b",)),
        (high, ("a", "c")),
    ]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["b", "a"], "'a', 'b'"),
        (["a", "b", "c", "d", "e"], "'a', 'b', 'c', 'd', 'e'"),
        (["a", "b", "c", "d", "e", "f"], "'a', 'b', 'c', 'd', 'e' and 1 more"),
    ],
)
def test_of_many_names_the_first_five_are_told(names: list[str], text: str) -> None:
    assert named(names) == text


def test_a_fleet_without_a_host_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        common_level({})
    assert str(refused.value) == "level: there is no host; name the hosts of the fleet"


ON_EQUAL_HOSTS = "pin the fleet to equal hosts instead"
OF_HOSTS = "take the common level of the hosts of a fleet"


@pytest.mark.parametrize(
    ("features", "message"),
    [
        pytest.param(ARM64, f"gVisor knows no levels on arm64; {ON_EQUAL_HOSTS}", id="arm64"),
        pytest.param(amd64(""), f"it is empty; {OF_HOSTS}", id="empty"),
        pytest.param(
            BASIS - amd64("sse2"),
            f"it lacks sse2, which x86-64 itself requires; {OF_HOSTS}",
            id="below x86-64",
        ),
        pytest.param(
            BASIS - amd64("xsave"),
            f"it lacks xsave, which gVisor never takes away from a guest; {OF_HOSTS}",
            id="no xsave",
        ),
        pytest.param(
            BASIS - amd64("osxsave"),
            "it lacks osxsave, without which gVisor reports xsave or not from run to run; " + OF_HOSTS,
            id="no osxsave",
        ),
    ],
)
def test_an_annotation_that_would_stop_or_mislead_sandboxes_is_refused(
    features: FeatureSet, message: str
) -> None:
    with pytest.raises(InputError) as refused:
        annotation(features)
    assert str(refused.value) == f"level: {message}"


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("x86-64-v2", "ssse3"), ("sse3", "'pni'"), ("AVX2", "'avx2'"), ("clflushopt", "'clfushopt'")],
)
def test_a_name_that_gvisor_does_not_know_gets_a_suggestion(name: str, suggestion: str) -> None:
    with pytest.raises(InputError) as refused:
        amd64(f"fpu,{name}")
    assert suggestion in refused.value.remedy


def test_levels_are_refused_on_arm64() -> None:
    for host, allowed in ((ARM64, ARM64), (BASIS, ARM64), (ARM64, BASIS)):
        with pytest.raises(InputError, match="arm64"):
            levelled(host, allowed)


@pytest.mark.parametrize(
    ("k", "weights", "message"),
    [
        pytest.param(0, None, "levels: 0 levels cover no host; ask for at least 1", id="no level"),
        pytest.param(1, {"a": 1}, "weights: there is none for 'b'; give each host a weight", id="missing"),
        pytest.param(
            1,
            {"a": 1, "b": 1, "c": 1},
            "weights: no host is called 'c'; name hosts of the fleet",
            id="unknown",
        ),
        pytest.param(
            1, {"a": 1, "b": -1}, "weights: negative for 'b'; a weight is 0 or more", id="negative"
        ),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(
    k: int, weights: dict[str, int] | None, message: str
) -> None:
    with pytest.raises(InputError) as refused:
        choose_levels({"a": BASIS, "b": BASIS}, k, weights)
    assert str(refused.value) == message


def test_a_host_may_weigh_nothing() -> None:
    hosts = {"a": BASIS, "b": BASIS | amd64("avx"), "c": BASIS | amd64("aes,avx2")}
    choice = choose_levels(hosts, 2, {"a": 1, "b": 0, "c": 1})
    assert [group.hosts for group in choice.groups] == [("a", "b"), ("c",)]
    assert choice.losses == (2, 0, 0)


def test_a_choice_among_too_many_sets_is_refused() -> None:
    names = [row.name for row in known_features(Architecture.AMD64) if row.name not in BASIS]
    pairs = (amd64(f"{one},{other}") for one, other in combinations(names, 2))
    hosts = {f"h{number}": BASIS | pair for number, pair in enumerate(islice(pairs, MOST_SETS + 1))}
    with pytest.raises(InputError) as refused:
        choose_levels(hosts, 1)
    assert str(refused.value) == (
        "levels: 513 distinct feature sets; 512 are the most to choose levels for; "
        "take the common level, or choose for fewer kinds of host"
    )
    assert common_level(hosts).features == BASIS
    del hosts["h0"]
    assert len(choose_levels(hosts, 1).groups) == 1


@pytest.mark.parametrize(("count", "exact"), [(12, True), (13, False)])
def test_a_choice_among_up_to_12_sets_is_the_best(count: int, *, exact: bool) -> None:
    every = known_features(Architecture.AMD64)[:count]
    hosts = {row.name: BASIS | FeatureSet.from_names(Architecture.AMD64, [row.name]) for row in every}
    choice = choose_levels(hosts, 2)
    assert len(choice.losses) == len(equal_hosts(hosts)) == count
    assert choice.exact is exact


def test_a_choice_among_more_sets_than_can_be_tried_says_so() -> None:
    hosts = {host.id: host.features for host in gvisor_hosts().hosts if "osxsave" in host.features}
    choice = choose_levels(hosts, 3)
    assert len(choice.groups) == 3
    assert not choice.exact
    assert choice.loss < choose_levels(hosts, 2).loss


def test_dropped_names_the_hosts_that_lack_each_feature() -> None:
    hosts = {"c": BASIS | amd64("avx"), "b": BASIS | amd64("aes"), "a": BASIS | amd64("aes,avx")}
    assert common_level(hosts) == Level(BASIS, {"aes": ("c",), "avx": ("b",)})


def test_values_can_be_hashed_copied_and_pickled() -> None:
    level = common_level({"a": BASIS, "b": BASIS | amd64("avx")})
    assert len({level, pickle.loads(pickle.dumps(level)), copy.deepcopy(level)}) == 1


def test_what_no_runsc_knows_is_left_out_of_the_annotation_and_named() -> None:
    level = BASIS | amd64("avx_vnni,avx512_bf16")
    assert annotation(level) == annotation(BASIS)
    assert unannounced(level).names == ("avx512_bf16", "avx_vnni")


def test_a_guest_that_sees_more_than_its_level_is_found_out() -> None:
    level = BASIS | amd64("aes")
    assert beyond_level(guest_flags(level), level) == ()
    assert beyond_level([*guest_flags(BASIS), "constant_tsc"], level) == ("constant_tsc",)
    assert beyond_level(guest_flags(BASIS | amd64("aes,avx2")), level) == ("avx2",)


@given(feature_sets())
def test_what_is_offered_is_within_the_set_and_the_set_within_what_is_claimed(features: FeatureSet) -> None:
    less, more = offered(features), claimed(features)
    assert less <= features <= more
    assert offered(less) == less == offered(more)
    assert claimed(more) == more == claimed(less)
    assert (more - less).names in {(), ("xsave",)}


@given(amd64_sets, amd64_sets, amd64_sets)
def test_a_levelled_set_is_within_the_host_and_grows_with_the_level(
    host: FeatureSet, allowed: FeatureSet, more: FeatureSet
) -> None:
    shown = levelled(host, allowed)
    assert host & allowed <= shown <= host
    assert shown <= levelled(host, allowed | more)
    assert levelled(shown, allowed) == shown
    level = allowed | amd64("xsave")  # as every level has
    assert beyond_level(guest_flags(shown), level) == ()
    assert set(beyond_level(guest_flags(host), level)) == guest_flags(host) - guest_flags(shown)


@given(fleets, st.randoms(use_true_random=False))
def test_order_and_repetition_of_hosts_change_nothing(
    hosts: dict[str, FeatureSet], source: random.Random
) -> None:
    level = common_level(hosts)
    names = list(hosts)
    source.shuffle(names)
    assert common_level({name: hosts[name] for name in names}) == level
    repeated = common_level({**hosts, "again": hosts[names[0]]})
    assert repeated.features == level.features
    assert repeated.dropped.keys() == level.dropped.keys()


@given(fleets)
def test_the_level_is_what_all_hosts_share_and_dropped_is_the_rest(hosts: dict[str, FeatureSet]) -> None:
    level = common_level(hosts)
    for name, features in hosts.items():
        assert level.features <= features
        lacked = {feature for feature, without in level.dropped.items() if name in without}
        assert lacked.isdisjoint(features)
        assert set(level.dropped) - lacked == set(features - level.features)


@given(fleets)
def test_under_the_level_every_host_restores_every_snapshot(hosts: dict[str, FeatureSet]) -> None:
    level = common_level(hosts).features
    assert accepted(hosts, level) == len(hosts) ** 2
    for host in hosts.values():
        assert levelled(host, level) == claimed(levelled(host, level)) == level


@given(fleets, st.data())
def test_the_level_is_the_greatest(hosts: dict[str, FeatureSet], data: st.DataObject) -> None:
    level = common_level(hosts)
    if level.dropped:
        more = level.features | amd64(data.draw(st.sampled_from(sorted(level.dropped))))
        assert accepted(hosts, more) < len(hosts) ** 2


@given(fleets)
def test_the_level_of_a_level_is_itself(hosts: dict[str, FeatureSet]) -> None:
    level = common_level(hosts).features
    assert common_level({"level": level}) == Level(level, {})


@given(fleets)
def test_removing_a_host_never_shrinks_the_level(hosts: dict[str, FeatureSet]) -> None:
    level = common_level(hosts).features
    for name in hosts:
        rest = {other: features for other, features in hosts.items() if other != name}
        assert not rest or level <= common_level(rest).features


@given(levelable)
def test_an_annotation_reads_back_as_the_same_set(features: FeatureSet) -> None:
    text = annotation(features)
    assert text == ",".join(sorted(text.split(",")))
    assert set(text) <= set(string.ascii_lowercase + string.digits + "_,")
    assert amd64(text) | unannounced(features) == features
    assert set(text.split(",")).isdisjoint({"avx_vnni", "avx512_bf16"})


@given(levelable, levelable)
def test_the_short_name_fits_a_label_and_tells_levels_apart(a: FeatureSet, b: FeatureSet) -> None:
    assert (level_name(a) == level_name(b)) == (a == b)
    assert len(level_name(a)) == len("level-") + 12
    assert set(level_name(a)) <= set(string.ascii_lowercase + string.digits + "-")


@given(fleets, st.integers(1, 9))
def test_a_choice_covers_each_host_once_by_a_level_that_holds(hosts: dict[str, FeatureSet], k: int) -> None:
    choice = choose_levels(hosts, k)
    assert len(choice.groups) <= k
    assert sorted(name for group in choice.groups for name in group.hosts) == sorted(hosts)
    lost = 0
    for group in choice.groups:
        assert group.level == common_level({name: hosts[name] for name in group.hosts})
        lost += sum(len(hosts[name] - group.level.features) for name in group.hosts)
    assert choice.loss == lost
    assert choice.gains == tuple(
        choice.losses[n] - choice.losses[n + 1]
        for n in range(len(choice.groups) - 1, len(choice.losses) - 1)
    )
    assert choice.losses[-1] == 0 == choose_levels(hosts, len(equal_hosts(hosts))).loss
    assert len(choice.losses) == len(equal_hosts(hosts))
    assert choice.exact == (len(choice.losses) <= MOST_DISTINCT)


@given(fleets, st.integers(1, 4), st.randoms(use_true_random=False))
def test_a_choice_does_not_depend_on_the_order_of_hosts(
    hosts: dict[str, FeatureSet], k: int, source: random.Random
) -> None:
    names = list(hosts)
    source.shuffle(names)
    assert choose_levels({name: hosts[name] for name in names}, k) == choose_levels(hosts, k)


@given(fleets, st.integers(1, 4), st.integers(1, 5))
def test_a_weight_is_so_many_equal_hosts(hosts: dict[str, FeatureSet], k: int, copies: int) -> None:
    name = min(hosts)
    many = {**hosts, **{f"{name}-copy-{n}": hosts[name] for n in range(copies - 1)}}
    weights = {**dict.fromkeys(hosts, 1), name: copies}
    assert choose_levels(hosts, k, weights).losses == choose_levels(many, k).losses


def test_gvisor_accepts_every_pair_of_any_real_machines_under_their_level() -> None:
    machines = {host.id: host.features for host in gvisor_hosts().hosts}
    fit = [name for name, features in machines.items() if amd64("lm,osxsave") <= features]
    assert len(fit) == 105
    source = random.Random(20260905)
    for _ in range(2_000):
        hosts = {name: machines[name] for name in source.sample(fit, source.randint(1, len(fit)))}
        level = common_level(hosts).features
        shown = {levelled(host, level).bits for host in set(hosts.values())}
        # gVisor's check: no feature that it froze into the snapshot is missing on the host.
        assert not any(snapshot & ~host.bits for snapshot in shown for host in hosts.values())
        few = dict(source.sample(sorted(hosts.items()), min(3, len(hosts))))
        assert accepted(few, level) == len(few) ** 2


def test_fifty_real_restores_of_five_machines_of_two_vendors() -> None:
    names = ("Haswell-noTSX", "Skylake-Client-noTSX-IBRS", "EPYC-Rome", "EPYC-Milan", "max")
    data = real_restores()
    hosts = {row.model: row.features for row in data.machines if row.model in names}
    level = common_level(hosts).features
    assert (len(level), level.names[0], level.names[-1]) == (49, "abm", "xsaveopt")
    restored = {(row.snapshot, row.worker): row.restored for row in data.restores}
    for snapshot in names:
        for worker in names:
            # Without an annotation gVisor restored 13 of 25; under the level's, all 25.
            taken = stamp(runtime(hosts[snapshot]))
            assert matches(runtime(hosts[worker]), taken) == restored[snapshot, worker]
            assert matches(runtime(hosts[worker]), stamp(runtime(hosts[snapshot]), level))
    assert accepted(hosts, None) == 13
    assert accepted(hosts, level) == 25


def test_threadripper_of_rome_class_and_genoa() -> None:
    machines = gvisor_hosts().hosts
    rome, genoa = (
        next(machine.features for machine in machines if model in machine.brand)
        for model in ("3975WX", "EPYC 9124")
    )
    level = common_level({"rome": rome, "genoa": genoa})
    assert level.features == rome
    assert (len(rome), len(genoa - level.features)) == (86, 22)
    assert level.dropped == dict.fromkeys((genoa - rome).names, ("rome",))


def test_the_eight_machines_of_the_demo() -> None:
    data = demo_hosts()
    level = common_level({host.id: host.features for host in data.hosts})
    assert annotation(level.features) == data.level
    assert len(level.features) == 56
