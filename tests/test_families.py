"""Families: which runtimes share one, which a snapshot finds, and how long one is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import near_snapshots, sandbox_runtimes, worker_runtimes
from substrate_compat.families import Families, Mask, Shape
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat, WorkerRuntimes


def runtime(mask: str | None = "3", digest: str = "1", **more: str) -> SandboxRuntime:
    recorded = {"architecture": "amd64", "sandbox_runtime_hash": digest, **more}
    if mask is not None:
        recorded["cpu_features"] = mask
    return SandboxRuntime("gvisor", VersionedSandboxCompat.of(recorded))


@pytest.mark.parametrize(
    ("mask", "kind"), [(None, Mask.ABSENT), ("0x3", Mask.UNREADABLE), ("0", Mask.READABLE)]
)
def test_what_a_runtime_has_of_a_mask(mask: str | None, kind: Mask) -> None:
    assert Mask.of(runtime(mask)) is kind
    keys = frozenset(["architecture", "sandbox_runtime_hash"])
    assert Shape.of(runtime(mask)) == ("gvisor", "v1", keys, kind)


def test_a_group_offers_each_mask_once_with_its_families() -> None:
    families = Families()
    poor, rich, other = runtime("1"), runtime("3"), runtime("1", "2")
    offers = families.take(WorkerRuntimes(poor, (rich, other, runtime("01"))))
    assert [lacks for lacks, _ in offers] == [poor.lacks, rich.lacks]
    (first, second), (third,) = (each for _, each in offers)
    assert first is third
    assert (first.runtime, second.runtime) == (poor, other)
    assert (first.users, second.users) == (2, 1)
    assert {*families} == {first, second}


def test_families_of_one_shape_share_it() -> None:
    families = Families()
    offers = families.take(WorkerRuntimes(runtime(), (runtime(digest="2"), runtime(zone="a"))))
    one, other, third = (family for _, each in offers for family in each)
    assert one.shape is other.shape
    assert one.shape != third.shape


def test_a_family_is_kept_as_long_as_a_group_uses_it() -> None:
    families = Families()
    both = families.take(WorkerRuntimes(runtime("1"), (runtime("1", "2"),)))
    one = families.take(WorkerRuntimes(runtime("3")))
    families.release(both)
    assert [family.runtime for family in families] == [runtime("1")]
    assert families.fitting(runtime("0")) == {*families}
    assert families.fitting(runtime("0", "2")) == set()
    families.release(one)
    assert list(families) == []
    assert families.fitting(runtime("0")) == set()
    assert families.fitting(None) == set()


@given(st.lists(worker_runtimes(), max_size=4), st.data())
def test_those_that_a_snapshot_finds_have_all_that_it_needs_by_equality(
    workers: list[WorkerRuntimes], data: st.DataObject
) -> None:
    families = Families()
    taken = [families.take(each) for each in workers]
    every = {family for offers in taken for _, each in offers for family in each}
    near = [near_snapshots(runtime) for each in workers for runtime in each]
    snapshot = data.draw(st.one_of(sandbox_runtimes, *near))
    needed = snapshot.compat_version
    assert families.fitting(None) == {*families} == every
    assert families.fitting(snapshot) == {
        family
        for family in every
        if family.runtime.sandbox_class == snapshot.sandbox_class
        and family.runtime.compat_version.schema_version == needed.schema_version
        and family.runtime.compat_version.equalities >= needed.equalities
    }
    for offers in taken:
        families.release(offers)
    assert list(families) == []
