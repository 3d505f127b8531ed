"""All pairs at once equal each pair asked for itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import near_snapshots, sandbox_runtimes
from substrate_compat.identity import SandboxRuntime
from substrate_compat.match import matches
from substrate_compat.pairs import restore_pairs
from test_match import RULES


@pytest.mark.parametrize(("worker", "snapshot", "expected"), RULES)
def test_rules(worker: SandboxRuntime, snapshot: SandboxRuntime, expected: list[tuple[str, str]]) -> None:
    assert list(restore_pairs({"w": worker}, {"s": snapshot})) == ([] if expected else [("w", "s")])


@given(st.lists(sandbox_runtimes, max_size=5), st.data())
def test_pairs_are_those_that_match(workers: list[SandboxRuntime], data: st.DataObject) -> None:
    near = [near_snapshots(worker) for worker in workers]
    carried = data.draw(st.lists(st.one_of(sandbox_runtimes, *near, *map(st.just, workers)), max_size=5))
    offered = {f"w{number}": worker for number, worker in enumerate(workers)}
    snapshots = {f"s{number}": snapshot for number, snapshot in enumerate(carried)}
    assert sorted(restore_pairs(offered, snapshots)) == sorted(
        (worker_key, key)
        for worker_key, worker in offered.items()
        for key, snapshot in snapshots.items()
        if matches(worker, snapshot)
    )
