"""A node, its workers and a scheduler without I/O, on a clock that a test moves.

Each part does what a service does with the decisions of `substrate_compat.registration`. What happens is
logged, for a test to hold against the rules.
"""

from collections.abc import Iterator
from random import Random
from typing import Final

import attrs

from substrate_compat.errors import InputError
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat, WorkerRuntimes
from substrate_compat.registration import (
    NEVER,
    Caches,
    NodeRules,
    Pod,
    PodState,
    Register,
    Report,
    Source,
    Sync,
    WorkerRules,
    WorkerState,
)

GARBLED: Final = "garbled"
MOST_AT_ONCE: Final = 10


def offer(text: str) -> WorkerRuntimes:
    """Runtimes told apart by `text`."""
    return WorkerRuntimes(
        SandboxRuntime("gvisor", VersionedSandboxCompat.of({"sandbox_runtime_hash": text}))
    )


@attrs.define
class Config:
    """A config whose revisions offer three things in turn; a broken one is a `ConfigError`."""

    revision: int = 1
    broken: bool = False

    def offers(self, name: str) -> WorkerRuntimes:
        return offer(f"{name} {self.revision % 3}")


@attrs.define
class Folder:
    """A worker's folder; `content` is what its file says, GARBLED or None where there is none."""

    changed_at: float
    content: WorkerRuntimes | str | None = None


@attrs.frozen
class Entry:
    """What happened: in the `kind` of a

    new, change: the node saw a pod for the first time, or another source (`what`) for it;
    sync, report: it acted on that; remove: on a folder;
    left: a folder was made or changed that has no pod;
    file: what the worker's file says (`what`) is another;
    register, complain: the worker acted on that.
    `process` counts the starts of who acted.
    """

    kind: str
    at: float
    key: str
    process: int
    what: Source | WorkerRuntimes | str | None
    outcome: str = ""

    @property
    def failed(self) -> bool:
        return self.outcome == "failed"


@attrs.define
class World:
    """The whole of it; what a test changes it changes here, and then calls `advance`."""

    chance: Random
    node_rules: NodeRules = attrs.field(factory=NodeRules)
    worker_rules: WorkerRules = attrs.field(factory=WorkerRules)
    now: float = 0.0

    pods: dict[str, Pod] = attrs.field(factory=dict)
    pools: dict[str, str] = attrs.field(factory=dict)
    configs: dict[str, Config] = attrs.field(factory=dict)
    synced: bool = True
    disk_fails: bool = False
    folders: dict[str, Folder] = attrs.field(factory=dict)

    scheduler_up: bool = True
    answers_lost: bool = False
    rejected: set[WorkerRuntimes] = attrs.field(factory=set)
    scheduler: dict[str, WorkerRuntimes] = attrs.field(factory=dict)

    node: dict[str, PodState] = attrs.field(factory=dict)
    node_process: int = 1
    workers: dict[str, WorkerState] = attrs.field(factory=dict)
    worker_process: dict[str, int] = attrs.field(factory=dict)

    log: list[Entry] = attrs.field(factory=list)
    seen: dict[str, Source | str] = attrs.field(factory=dict)

    def caches(self) -> Caches:
        revisions = {name: str(config.revision) for name, config in self.configs.items()}
        return Caches(dict(self.pods), dict(self.pools), revisions, self.synced)

    def entries(self, kind: str, key: str | None = None) -> list[Entry]:
        """What happened of one kind, to one pod or all."""
        return [entry for entry in self.log if entry.kind == kind and key in {None, entry.key}]

    def leave_folder(self, key: str) -> None:
        """Makes the folder of a pod that is not known, or changes it."""
        self.folders[key] = Folder(self.now)
        self._log("left", key, 0, None)

    def write(self, key: str, content: WorkerRuntimes | str | None) -> bool:
        """Makes `content` that of the file; whether it was another."""
        folder = self.folders.setdefault(key, Folder(self.now))
        if folder.content == content:
            return False
        folder.content, folder.changed_at = content, self.now
        self._log("file", key, 0, content)
        return True

    def advance(self, seconds: float) -> None:
        """Lets the clock run on, with everything that falls due on the way."""
        until = self.now + seconds
        self._act()
        at_once = 0
        while (due := max(self.now, min(self._due(), default=NEVER))) <= until:
            at_once = at_once + 1 if due == self.now else 0
            assert at_once < MOST_AT_ONCE, "somebody waits for nothing"
            self.now = due
            self._act()
        self.now = until

    def restart_node(self) -> None:
        self.node.clear()
        self.seen.clear()
        self.node_process += 1

    def restart_worker(self, key: str) -> None:
        self.workers[key] = WorkerState()
        self.worker_process[key] = self.worker_process.get(key, 0) + 1

    def _due(self) -> Iterator[float]:
        yield from (state.due for state in self.node.values())
        yield from (state.due for state in self.workers.values())

    def _act(self) -> None:
        caches = self.caches()
        for key in sorted({*self.pods, *self.folders, *self.node}):
            self._act_on_pod(key, caches)
        for key in sorted({*self.workers} - {*self.pods}):
            del self.workers[key]
            self.scheduler.pop(key, None)
        for key in sorted(self.pods):
            if key not in self.workers:
                self.restart_worker(key)
            self._act_as_worker(key)

    def _act_on_pod(self, key: str, caches: Caches) -> None:
        rules, folder = self.node_rules, self.folders.get(key)
        self._watch_source(key, caches)
        age = None if folder is None else self.now - folder.changed_at
        draw = self.chance.random()
        state, action = rules.decide(key, self.node.get(key), caches, age, now=self.now, draw=draw)
        if isinstance(action, Report):
            self._log("report", key, self.node_process, action.problem)
        elif action is not None and state is not None:
            outcome = self._sync(key, action.source) if isinstance(action, Sync) else self._remove(key)
            failed = outcome == "failed"
            state = rules.failed(state, now=self.now) if failed else rules.done(state)
        if state is None:
            self.node.pop(key, None)
        else:
            self.node[key] = state

    def _watch_source(self, key: str, caches: Caches) -> None:
        if key in caches.pods and caches.synced:
            source = caches.source(caches.pods[key])
            if self.seen.get(key) != source:
                self._log("change" if key in self.seen else "new", key, self.node_process, source)
                self.seen[key] = source

    def _sync(self, key: str, source: Source) -> str:
        config = self.configs[source.config]
        outcome = "failed" if self.disk_fails else "config error"
        if not self.disk_fails and not config.broken:
            outcome = "written" if self.write(key, config.offers(source.config)) else "the same"
        self._log("sync", key, self.node_process, source, outcome)
        return outcome

    def _remove(self, key: str) -> str:
        outcome = "failed" if self.disk_fails else "removed"
        self._log("remove", key, self.node_process, None, outcome)
        if not self.disk_fails:
            del self.folders[key]
        return outcome

    def _act_as_worker(self, key: str) -> None:
        rules, folder = self.worker_rules, self.folders.get(key)
        content = None if folder is None else folder.content
        found = InputError("$", content) if isinstance(content, str) else content
        state, action = rules.decide(self.workers[key], found, now=self.now)
        process = self.worker_process[key]
        match action:
            case Report(problem):
                self._log("complain", key, process, problem)
            case Register(runtimes):
                outcome = self._register(key, runtimes)
                self._log("register", key, process, runtimes, outcome)
                if outcome == "registered":
                    state = rules.registered(state, runtimes, now=self.now, draw=self.chance.random())
                elif outcome == "rejected":
                    state = rules.rejected(state, runtimes, now=self.now)
                else:
                    state = rules.failed(state, now=self.now)
            case None:
                pass
        self.workers[key] = state

    def _register(self, key: str, runtimes: WorkerRuntimes) -> str:
        if not self.scheduler_up:
            return "failed"
        if runtimes in self.rejected:
            return "rejected"
        self.scheduler[key] = runtimes
        return "failed" if self.answers_lost else "registered"

    def _log(
        self,
        kind: str,
        key: str,
        process: int,
        what: Source | WorkerRuntimes | str | None,
        outcome: str = "",
    ) -> None:
        self.log.append(Entry(kind, self.now, key, process, what, outcome))
