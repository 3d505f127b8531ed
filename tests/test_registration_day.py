"""Random days of a node, its workers and a scheduler, held against the rules."""

from collections.abc import Iterator
from itertools import groupby
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from substrate_compat.registration import NodeRules, Pod, Source, WorkerRules
from world import GARBLED, Config, Entry, World

DAY = 24 * 3600.0
MOST_PODS = 4
CONFIGS, POOLS = ("gvisor", "other"), ("general", "special")
LEFT, DELETING = "left", "the pod is being deleted"
NODE, WORKER = NodeRules(), WorkerRules()
# To a moment: sums of floats.
MOMENT = 1e-6

config_names = st.sampled_from(CONFIGS)
pool_names = st.sampled_from(POOLS)
pauses = st.floats(0, 40) | st.floats(0, 7200)


class Day(RuleBasedStateMachine):
    """Anything may happen in any order; between two events the clock runs on a little, or hours."""

    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed: int) -> None:
        self.world = World(Random(seed), NODE, WORKER)
        self.world.pools = dict(zip(POOLS, CONFIGS, strict=True))
        self.world.configs = {name: Config() for name in CONFIGS}
        self.world.rejected = {Config(revision=2).offers("gvisor")}
        self.born = 0
        for _ in range(2):
            self.a_pod_starts("general")

    def after(self, pause: float) -> None:
        self.world.advance(min(pause, max(DAY - self.world.now, 0.0)))

    def pod(self, choice: int) -> str:
        return sorted(self.world.pods)[choice % len(self.world.pods)]

    def has_pods(self) -> bool:
        return bool(self.world.pods)

    @rule(pool=pool_names | st.none(), pause=pauses)
    def a_pod_starts(self, pool: str | None, pause: float = 0.0) -> None:
        if len(self.world.pods) < MOST_PODS:
            self.born += 1
            self.world.pods[f"pod-{self.born}"] = Pod(pool)
        self.after(pause)

    @precondition(has_pods)
    @rule(choice=st.integers(0, 9), pool=pool_names | st.none(), pause=pauses)
    def a_label_changes(self, choice: int, pool: str | None, pause: float) -> None:
        self.world.pods[self.pod(choice)] = Pod(pool)
        self.after(pause)

    @precondition(has_pods)
    @rule(choice=st.integers(0, 9), pause=pauses)
    def a_pod_is_deleted(self, choice: int, pause: float) -> None:
        self.world.pods[self.pod(choice)] = Pod("general", deleting=True)
        self.after(pause)

    @precondition(has_pods)
    @rule(choice=st.integers(0, 9), pause=pauses)
    def a_pod_is_gone(self, choice: int, pause: float) -> None:
        del self.world.pods[self.pod(choice)]
        self.after(pause)

    @rule(name=config_names, changes=st.integers(0, 3), broken=st.booleans(), pause=pauses)
    def a_config_changes(self, name: str, changes: int, *, broken: bool, pause: float) -> None:
        held = self.world.configs.get(name, Config(0))
        self.world.configs[name] = Config(held.revision + changes, broken if changes else held.broken)
        self.after(pause)

    @rule(name=config_names, pause=pauses)
    def a_config_goes(self, name: str, pause: float) -> None:
        self.world.configs.pop(name, None)
        self.after(pause)

    @rule(pool=pool_names, config=config_names | st.none(), pause=pauses)
    def a_pool_changes(self, pool: str, config: str | None, pause: float) -> None:
        self.world.pools.pop(pool, None)
        if config is not None:
            self.world.pools[pool] = config
        self.after(pause)

    @rule(fails=st.booleans(), pause=pauses)
    def the_disk_fails(self, *, fails: bool, pause: float) -> None:
        self.world.disk_fails = fails
        self.after(pause)

    @rule(pause=pauses)
    def a_folder_is_left(self, pause: float) -> None:
        self.world.leave_folder(LEFT)
        self.after(pause)

    @precondition(has_pods)
    @rule(choice=st.integers(0, 9), pause=pauses)
    def a_file_is_garbled_for_a_while(self, choice: int, pause: float) -> None:
        key = self.pod(choice)
        folder = self.world.folders.get(key)
        content = None if folder is None else folder.content
        if content is not None:
            self.world.write(key, GARBLED)
            self.after(pause)
            if key in self.world.folders and self.world.folders[key].content == GARBLED:
                self.world.write(key, content)
        self.after(0)

    @rule(up=st.booleans(), lost=st.booleans(), pause=pauses)
    def the_scheduler_is_up_or_down(self, *, up: bool, lost: bool, pause: float) -> None:
        self.world.scheduler_up, self.world.answers_lost = up, lost
        self.after(pause)

    @rule(pause=pauses)
    def the_scheduler_forgets(self, pause: float) -> None:
        self.world.scheduler.clear()
        self.after(pause)

    @rule(unsynced=pauses, pause=pauses)
    def the_node_starts_again(self, unsynced: float, pause: float) -> None:
        self.world.restart_node()
        self.world.synced = False
        acted = len(node_entries(self.world))
        self.after(unsynced)
        assert len(node_entries(self.world)) == acted
        self.world.synced = True
        self.after(pause)

    @precondition(has_pods)
    @rule(choice=st.integers(0, 9), pause=pauses)
    def a_worker_starts_again(self, choice: int, pause: float) -> None:
        self.world.restart_worker(self.pod(choice))
        self.after(pause)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        self.after(DAY)
        world.disk_fails = world.answers_lost = False
        world.scheduler_up = True
        world.advance(NODE.backoff.longest + NODE.spread + WORKER.resync + WORKER.spread)
        check_outcome(world)
        for entries in runs(world, "new", "change", "sync", "report"):
            check_syncs(entries)
        for entries in runs(world, "file", "register"):
            check_registrations(entries)
        check_removals(world)


def node_entries(world: World) -> list[Entry]:
    return [entry for entry in world.log if entry.kind in {"sync", "report", "remove"}]


def runs(world: World, *kinds: str) -> Iterator[list[Entry]]:
    """What happened to each pod, of some kinds, in order."""
    entries = sorted((entry for entry in world.log if entry.kind in kinds), key=lambda entry: entry.key)
    for _, run in groupby(entries, key=lambda entry: entry.key):
        yield list(run)


def check_outcome(world: World) -> None:
    """Every file is what its config offers, and every worker is registered with what its file says."""
    assert set(world.scheduler) <= set(world.pods)
    for key in world.folders.keys() - world.pods.keys():
        assert [entry.failed for entry in world.entries("remove", key)][-9:] == [True] * 9
    for key, pod in world.pods.items():
        folder = world.folders.get(key)
        content = None if folder is None else folder.content
        syncs = world.entries("sync", key)
        source = world.caches().source(pod)
        if isinstance(source, Source) and not world.configs[source.config].broken:
            gave_up = len(syncs) >= 9 and all(entry.failed for entry in syncs[-9:])
            assert gave_up or content == world.configs[source.config].offers(source.config)
            assert gave_up or syncs[-1].what == source
        if content is not None and content not in world.rejected:
            assert world.scheduler[key] == content


def check_syncs(entries: list[Entry]) -> None:
    """A new pod at once; a change after its delay; a retry not before its time, none after the last."""
    changed_at: float | None = None
    new, failures, failed_at = False, 0, 0.0
    for entry in entries:
        if entry.kind in {"new", "change"}:
            new = entry.kind == "new" and entry.what != DELETING
            if entry.what == DELETING:
                changed_at = None
            elif new or changed_at is None:
                changed_at = entry.at
            failures = 0
            continue
        if new:
            assert entry.at == changed_at
        elif changed_at is not None:
            assert NODE.settle - MOMENT <= entry.at - changed_at <= NODE.spread + MOMENT
        else:
            assert 1 <= failures <= NODE.retries
            assert abs(entry.at - failed_at - min(2.0 ** (failures - 1), 300)) <= MOMENT
        changed_at, new = None, False
        failures = failures + 1 if entry.failed else 0
        failed_at = entry.at


def check_registrations(entries: list[Entry]) -> None:
    """No attempt sooner than allowed; what is registered, or rejected and unchanged, not again."""
    last: Entry | None = None
    failures = 0
    changed = False
    for entry in entries:
        if entry.kind == "file":
            changed = True
            continue
        if last is not None and last.process == entry.process:
            if last.failed:
                late = entry.at - last.at - min(0.5 * 2.0 ** min(failures - 1, 9), 30)
                assert late >= -MOMENT
                assert late <= MOMENT or changed
            elif last.outcome == "registered" and last.what == entry.what:
                assert entry.at - last.at >= WORKER.resync - MOMENT
            else:
                assert changed
        else:
            failures = 0
        failures = failures + 1 if entry.failed else 0
        last, changed = entry, False


def check_removals(world: World) -> None:
    """A folder goes when its pod is gone, or when it has none and is old; never one that has a pod."""
    last: Entry | None = None
    for entry in world.log:
        if entry.key == LEFT:
            if entry.kind == "remove" and last is not None and last.kind == "left":
                assert entry.at - last.at >= NODE.orphan_age - MOMENT
            last = entry
    for key in world.pods:
        assert not world.entries("remove", key)


TestDay = Day.TestCase
TestDay.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
