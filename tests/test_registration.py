"""The decisions of node and worker: a table of each, the law of the backoff, and a burst of changes."""

from collections.abc import Callable, Mapping
from random import Random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate_compat.errors import CompatError, FileError, InputError
from substrate_compat.identity import WorkerRuntimes
from substrate_compat.registration import (
    NEVER,
    Backoff,
    Caches,
    NodeRules,
    Pod,
    PodState,
    Register,
    Remove,
    Report,
    Source,
    Sync,
    WorkerRules,
    WorkerState,
)
from world import Config, Folder, World, offer

NOW = 1000.0
V1, V2 = Source("gvisor", "1"), Source("gvisor", "2")
CACHES = Caches({"a": Pod("general")}, {"general": "gvisor"}, {"gvisor": "1"})
CHANGED = attrs.evolve(CACHES, configs={"gvisor": "2"})
NO_CONFIG = attrs.evolve(CACHES, configs={})
NO_POD = attrs.evolve(CACHES, pods={})
DELETING = attrs.evolve(CACHES, pods={"a": Pod("general", deleting=True)})
UNLABELLED = attrs.evolve(CACHES, pods={"a": Pod(None)})
NO_LABEL = "the pod has no pool label"
RESTING = PodState(V1)

# Each row: the state, the caches, the folder's age, the state after it, and what is to be done. draw = 0.5.
NODE = [
    pytest.param(None, CACHES, None, RESTING, Sync(V1), id="a new pod is synced at once"),
    pytest.param(RESTING, CACHES, 5.0, RESTING, None, id="no change is none"),
    pytest.param(
        RESTING,
        attrs.evolve(CACHES, pools={"general": "gvisor", "other": "x"}, configs={"gvisor": "1", "x": "9"}),
        5.0,
        RESTING,
        None,
        id="a change elsewhere is none",
    ),
    pytest.param(RESTING, CHANGED, 5.0, PodState(V2, NOW + 15.5, NOW), None, id="a changed config waits"),
    pytest.param(
        RESTING,
        attrs.evolve(CACHES, pools={"general": "x"}, configs={"x": "7"}),
        5.0,
        PodState(Source("x", "7"), NOW + 15.5, NOW),
        None,
        id="a changed pool waits",
    ),
    pytest.param(PodState(V2, NOW, NOW - 9), CHANGED, 5.0, PodState(V2), Sync(V2), id="until it is due"),
    pytest.param(
        PodState(V1, NOW + 0.25, NOW - 9),
        CHANGED,
        5.0,
        PodState(V2, NOW + 1, NOW - 9),
        None,
        id="a further change lets it settle",
    ),
    pytest.param(
        PodState(V1, NOW + 0.25, NOW - 29.5),
        CHANGED,
        5.0,
        PodState(V2, NOW + 0.5, NOW - 29.5),
        None,
        id="but not beyond the spread",
    ),
    pytest.param(
        PodState(V1, NOW + 9, NOW - 9),
        CHANGED,
        5.0,
        PodState(V2, NOW + 9, NOW - 9),
        None,
        id="and not before its time",
    ),
    pytest.param(
        PodState(V1, NOW + 99, failures=7),
        CHANGED,
        5.0,
        PodState(V2, NOW + 15.5, NOW),
        None,
        id="a change ends the retries of what was",
    ),
    pytest.param(
        RESTING,
        NO_CONFIG,
        5.0,
        PodState("no config is named 'gvisor'", NOW + 15.5, NOW),
        None,
        id="a config that is gone is a change",
    ),
    pytest.param(
        PodState("no config is named 'gvisor'", NOW, NOW - 9),
        NO_CONFIG,
        5.0,
        PodState("no config is named 'gvisor'"),
        Report("no config is named 'gvisor'"),
        id="which is told, and the file stays",
    ),
    pytest.param(
        PodState("no config is named 'gvisor'"),
        NO_CONFIG,
        5.0,
        PodState("no config is named 'gvisor'"),
        None,
        id="once",
    ),
    pytest.param(None, UNLABELLED, None, PodState(NO_LABEL), Report(NO_LABEL), id="no label is told once"),
    pytest.param(PodState(NO_LABEL), UNLABELLED, None, PodState(NO_LABEL), None, id="and not again"),
    pytest.param(
        PodState(NO_LABEL), CACHES, None, PodState(V1, NOW + 15.5, NOW), None, id="until there is one"
    ),
    pytest.param(
        PodState(V1, NOW, failures=3), CACHES, 5.0, PodState(V1, failures=3), Sync(V1), id="a retry is due"
    ),
    pytest.param(
        PodState(V1, NOW + 0.5, failures=3),
        CACHES,
        5.0,
        PodState(V1, NOW + 0.5, failures=3),
        None,
        id="a retry is not yet due",
    ),
    pytest.param(
        PodState(V1, NOW, NOW - 9),
        DELETING,
        5.0,
        PodState("the pod is being deleted"),
        None,
        id="a pod that is being deleted is left alone",
    ),
    pytest.param(RESTING, NO_POD, 5.0, PodState(None), Remove(), id="a pod that is gone loses its folder"),
    pytest.param(RESTING, NO_POD, None, None, None, id="a pod that is gone without one is forgotten"),
    pytest.param(None, NO_POD, 40.0, PodState(None, NOW + 20), None, id="a folder without a pod waits"),
    pytest.param(None, NO_POD, 60.0, PodState(None), Remove(), id="and goes when it is a minute old"),
    pytest.param(PodState(None, NOW), NO_POD, 61.0, PodState(None), Remove(), id="by then or later"),
    pytest.param(
        PodState(None, NOW), NO_POD, 1.0, PodState(None, NOW + 59), None, id="unless it changed meanwhile"
    ),
    pytest.param(
        PodState(None, NOW, failures=1),
        NO_POD,
        61.0,
        PodState(None, failures=1),
        Remove(),
        id="a removal that failed is due again",
    ),
    pytest.param(
        PodState(None, NOW + 2, failures=1),
        NO_POD,
        61.0,
        PodState(None, NOW + 2, failures=1),
        None,
        id="not before its time",
    ),
    pytest.param(PodState(None, NOW + 5), NO_POD, None, None, None, id="or somebody else removed it"),
    pytest.param(
        PodState(None, NOW + 5), CACHES, 55.0, RESTING, Sync(V1), id="its pod turns up and is a new pod"
    ),
    *(
        pytest.param(state, attrs.evolve(caches, synced=False), age, state, None, id=f"not synced: {text}")
        for text, state, caches, age in (
            ("a new pod", None, CACHES, None),
            ("a change", RESTING, CHANGED, 5.0),
            ("a pod that is gone", RESTING, NO_POD, 5.0),
            ("a folder without a pod", None, NO_POD, 99.0),
        )
    ),
]


@pytest.mark.parametrize(("state", "caches", "age", "after", "action"), NODE)
def test_what_a_node_does(
    state: PodState | None,
    caches: Caches,
    age: float | None,
    after: PodState | None,
    action: Sync | Remove | Report | None,
) -> None:
    assert NodeRules().decide("a", state, caches, age, now=NOW, draw=0.5) == (after, action)


def test_a_failed_sync_is_tried_8_times_more_and_then_rests() -> None:
    rules, state, waits = NodeRules(), RESTING, []
    for _ in range(9):
        state = rules.failed(state, now=NOW)
        waits.append(state.due - NOW)
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, NEVER]
    assert rules.done(state) == RESTING


def test_a_failure_does_not_hold_up_a_change_that_came_meanwhile() -> None:
    waiting = PodState(V2, NOW + 15.5, NOW)
    assert NodeRules().failed(waiting, now=NOW + 1) == waiting


def test_a_removal_that_failed_is_tried_again_and_one_that_is_done_is_forgotten() -> None:
    assert NodeRules().failed(PodState(None), now=NOW) == PodState(None, NOW + 1, failures=1)
    assert NodeRules().done(PodState(None)) is None


A, B = offer("a"), offer("b")
FAULT = InputError("$.defaultRuntime", "missing")
FRESH = WorkerState()
HAS_A = WorkerState(NOW + 200, A, NOW + 200)
FAILED = WorkerState(NOW + 2, failures=2, retry_at=NOW + 2)
REFUSED_B = WorkerState(NOW + 9, A, NOW + 200, B)

# Each row: the state, what the file says, and what changes in the state, and what is to be done.
WORKER = [
    pytest.param(FRESH, None, {"due": NOW + 300}, None, id="no file: wait"),
    pytest.param(FRESH, A, {"due": NOW + 300}, Register(A), id="a new file: register"),
    pytest.param(HAS_A, A, {}, None, id="the same as registered: nothing"),
    pytest.param(HAS_A, B, {"due": NOW + 300}, Register(B), id="changed: register"),
    pytest.param(HAS_A, None, {"due": NOW + 300}, None, id="gone: what is registered stays"),
    pytest.param(
        attrs.evolve(HAS_A, renew_at=NOW), A, {"due": NOW + 300}, Register(A), id="time to renew: register"
    ),
    pytest.param(FAILED, A, {}, None, id="no attempt before its time"),
    pytest.param(FAILED, B, {}, None, id="nor with another file"),
    pytest.param(
        attrs.evolve(FAILED, retry_at=NOW), A, {"due": NOW + 300}, Register(A), id="at its time: again"
    ),
    pytest.param(REFUSED_B, B, {"due": NOW + 300}, None, id="rejected: never again"),
    pytest.param(
        REFUSED_B, A, {"due": NOW + 200, "refused": None}, None, id="back to what is registered: nothing"
    ),
    pytest.param(
        attrs.evolve(REFUSED_B, registered=None),
        A,
        {"due": NOW + 300, "refused": None},
        Register(A),
        id="rejected and changed: register",
    ),
    pytest.param(REFUSED_B, None, {"due": NOW + 300, "refused": None}, None, id="rejected and gone: wait"),
    pytest.param(
        HAS_A,
        FAULT,
        {"due": NOW + 300, "refused": "$.defaultRuntime: missing"},
        Report("$.defaultRuntime: missing"),
        id="not understood: tell",
    ),
    pytest.param(
        attrs.evolve(HAS_A, refused="$.defaultRuntime: missing"),
        FAULT,
        {"due": NOW + 300},
        None,
        id="not understood: tell once",
    ),
    pytest.param(
        REFUSED_B,
        FileError("f", "cannot be read"),
        {"due": NOW + 300, "refused": "f: cannot be read"},
        Report("f: cannot be read"),
        id="not readable: tell",
    ),
]


@pytest.mark.parametrize(("state", "found", "changes", "action"), WORKER)
def test_what_a_worker_does(
    state: WorkerState,
    found: WorkerRuntimes | CompatError | None,
    changes: Mapping[str, object],
    action: Register | Report | None,
) -> None:
    after, done = WorkerRules().decide(state, found, now=NOW)
    assert done == action
    assert attrs.asdict(after, recurse=False) == {**attrs.asdict(state, recurse=False), **changes}


def test_what_a_worker_remembers_of_an_attempt() -> None:
    rules = WorkerRules()
    assert rules.registered(FAILED, A, now=NOW, draw=0.5) == WorkerState(
        NOW + 315, A, NOW + 315, retry_at=NOW + 2
    )
    assert rules.rejected(FAILED, B, now=NOW) == WorkerState(NOW + 300, refused=B, retry_at=NOW + 2)
    state, waits = HAS_A, []
    for _ in range(8):
        state = rules.failed(state, now=NOW)
        waits.append(state.due - NOW)
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert state.registered is None, "the answer may have been lost"


delays = st.floats(0.001, 1e6)


@given(first=delays, longest=delays, failures=st.integers(1, 1 << 80))
def test_a_backoff_doubles_within_its_bounds(first: float, longest: float, failures: int) -> None:
    first, longest = sorted((first, longest))
    backoff = Backoff(first, longest)
    assert first <= backoff.delay(failures) <= longest
    assert backoff.delay(1) == first
    assert backoff.delay(failures + 1) == min(2 * backoff.delay(failures), longest)


@given(draw=st.floats(0, 1, exclude_max=True), settle=st.floats(0.001, 30))
def test_the_delay_of_a_change_is_within_its_bounds(draw: float, settle: float) -> None:
    rules = NodeRules(settle)
    state, _ = rules.decide("a", RESTING, CHANGED, 5.0, now=NOW, draw=draw)
    assert state is not None
    assert NOW + settle <= state.due <= NOW + 30


NAN = float("nan")


@pytest.mark.parametrize(
    "make",
    [
        *(
            pytest.param(
                lambda first=first, longest=longest: Backoff(first, longest), id=f"{first} {longest}"
            )
            for first, longest in ((0.0, 1.0), (2.0, 1.0), (1.0, NEVER), (NAN, 1.0), (1.0, NAN))
        ),
        *(
            pytest.param(
                lambda settle=settle, spread=spread: NodeRules(settle, spread), id=f"{settle} {spread}"
            )
            for settle, spread in ((-1.0, 1.0), (2.0, 1.0), (1.0, NEVER), (NAN, 1.0), (1.0, NAN))
        ),
        *(
            pytest.param(
                lambda resync=resync, spread=spread: WorkerRules(resync, spread), id=f"{resync} {spread}"
            )
            for resync, spread in (
                (0.0, 1.0),
                (NEVER, 1.0),
                (NAN, 1.0),
                (1.0, -1.0),
                (1.0, NEVER),
                (1.0, NAN),
            )
        ),
    ],
)
def test_intervals_that_are_none_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        make()


def world_of(workers: int) -> World:
    """A world with one pool, its config, and workers that are registered."""
    world = World(Random(6), pools={"general": "gvisor"}, configs={"gvisor": Config()})
    world.pods.update({f"worker-{number}": Pod("general") for number in range(workers)})
    world.advance(60)
    return world


@pytest.mark.parametrize("seconds", [0.0, 1.0, 28.0])
def test_a_burst_of_1000_changes_is_one_write_and_one_registration_per_worker(seconds: float) -> None:
    world = world_of(10)
    config = world.configs["gvisor"]
    for _ in range(1000):
        config.revision += 1
        world.advance(seconds / 1000)
    world.advance(60)
    for key in world.pods:
        assert len(world.entries("file", key)) == len(world.entries("register", key)) == 2
        assert world.scheduler[key] == world.folders[key].content == config.offers("gvisor")


def test_a_node_that_starts_again_writes_nothing_anew() -> None:
    world = world_of(10)
    world.folders["left"] = Folder(world.now)
    world.restart_node()
    world.advance(120)
    assert [entry.outcome for entry in world.entries("sync")] == ["written"] * 10 + ["the same"] * 10
    assert [(entry.key, entry.at) for entry in world.entries("remove")] == [("left", 120.0)]


def test_workers_that_registered_together_do_not_renew_together() -> None:
    world = world_of(300)
    world.scheduler.clear()
    world.advance(270)
    renewals = [entry.at for entry in world.entries("register")[300:]]
    assert len(renewals) == len(world.scheduler) == 300
    for start in range(300, 330):
        assert sum(start <= at < start + 1 for at in renewals) < 30
