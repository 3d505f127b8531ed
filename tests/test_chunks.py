"""Groups and chunks, against the lists of workers and masks that they stand for."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import amd64_sets, near_snapshots, sandbox_runtimes, worker_runtimes
from substrate_compat.bitmaps import COLUMNS, selectors, transposed
from substrate_compat.chunks import Chunk, Group, Layer, fewest_missing
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.families import Families
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat, WorkerRuntimes
from substrate_compat.match import explain_worker

fleets = st.lists(st.tuples(worker_runtimes(), st.integers(1, 5)), max_size=6)


def runtimes(number: int) -> WorkerRuntimes:
    compat = VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": "3", "n": str(number)})
    return WorkerRuntimes(SandboxRuntime("gvisor", compat))


def filled(fleet: Sequence[tuple[WorkerRuntimes, int]]) -> tuple[Chunk, Families, list[Group]]:
    """A chunk with a group for each of the fleet, of so many workers."""
    chunk, families, ticket = Chunk(1), Families(), 0
    groups = []
    for offered, workers in fleet:
        group = Group(offered, families.take(offered))
        chunk.add(group)
        for _ in range(workers):
            ticket += 1
            group.append(ticket, f"w{ticket}")
        groups.append(group)
    return chunk, families, groups


def content(chunk: Chunk) -> object:
    """All that can be asked of a chunk, by row."""
    rows = range(chunk.live)
    return (
        chunk.start,
        chunk.live,
        [(layer.lacking, layer.offering) for layer in chunk.layers],
        [(chunk.workers(1 << row), *chunk.groups(1 << row)) for row in rows],
    )


def test_a_group_stands_in_blocks_of_512_and_keeps_its_order() -> None:
    chunk, _, (group,) = filled([(runtimes(0), 1100)])
    assert [len(tickets) for tickets, _ in group.blocks] == [512, 512, 76]
    for ticket in [*range(513, 1025), 1, 1100]:
        group.remove(ticket)
    left = [*range(2, 513), *range(1025, 1100)]
    assert [len(tickets) for tickets, _ in group.blocks] == [511, 75]
    assert list(group) == [(ticket, f"w{ticket}") for ticket in left]
    assert (len(group), group.first_ticket(), chunk.workers(1)) == (len(left), 2, len(left))


def test_a_chunk_is_full_at_1024_rows_and_sparse_at_half_of_them() -> None:
    chunk, families = Chunk(1), Families()
    assert chunk.sparse
    groups = []
    for number in range(1024):
        assert not chunk.full
        assert chunk.sparse is (number <= 512)
        groups.append(Group(runtimes(number), families.take(runtimes(number))))
        chunk.add(groups[-1])
    assert chunk.full
    for number, group in enumerate(groups):
        chunk.remove(group)
        assert chunk.live == 1023 - number
        assert chunk.sparse is (number >= 511)
    assert chunk.full
    assert list(chunk.groups()) == []
    assert [layer.offering for layer in chunk.layers] == [{}]


@given(fleets)
def test_a_chunk_of_groups_is_as_if_each_were_added(fleet: list[tuple[WorkerRuntimes, int]]) -> None:
    chunk, _, groups = filled(fleet)
    expected = content(chunk)
    again = Chunk.of(1, groups)
    assert content(again) == expected
    assert [(group.chunk, group.row) for group in groups] == [(again, row) for row in range(len(groups))]


@given(fleets, st.data())
def test_the_rows_that_fit_are_the_groups_that_can_restore(
    fleet: list[tuple[WorkerRuntimes, int]], data: st.DataObject
) -> None:
    chunk, families, groups = filled(fleet)
    gone = data.draw(st.sets(st.sampled_from(groups))) if groups else set()
    for group in gone:
        for ticket, _ in [*group]:
            group.remove(ticket)
        chunk.remove(group)
        families.release(group.offers)
    near = [near_snapshots(runtime) for offered, _ in fleet for runtime in offered]
    snapshot = data.draw(st.one_of(sandbox_runtimes, *near))
    rows = chunk.fitting(families.fitting(snapshot), selectors(snapshot.needs))
    left = [group for group in groups if group not in gone]
    fit = [group for group in left if explain_worker(group.runtimes, snapshot).compatible]
    assert list(chunk.groups(rows)) == fit
    assert list(chunk.groups()) == left
    assert chunk.workers(rows) == sum(len(group) for group in fit)


@given(st.lists(amd64_sets, min_size=1, max_size=8), amd64_sets, st.data())
def test_the_rows_that_lack_fewest(sets: list[FeatureSet], needed: FeatureSet, data: st.DataObject) -> None:
    masks = [
        VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": each.hex}).lacks
        for each in sets
    ]
    needs = VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": needed.hex}).needs
    layer = Layer()
    layer.lacking = transposed(masks)
    chosen = data.draw(st.sets(st.sampled_from(range(len(masks))), min_size=1))
    missing = {row: (masks[row] & needs).bit_count() for row in chosen}
    fewest = min(missing.values())
    rows = sum(1 << row for row in chosen)
    assert fewest_missing(layer, rows, selectors(needs)) == (
        fewest,
        sum(1 << row for row in chosen if missing[row] == fewest),
    )


@pytest.mark.parametrize("mask", [0, 1, 1 << COLUMNS - 1])
def test_an_empty_layer_lacks_nothing_and_offers_nothing(mask: int) -> None:
    _, families, _ = filled([(runtimes(0), 1)])
    assert Layer().lacking_any(selectors(mask)) == 0
    assert Layer().offering_any({*families}) == 0
