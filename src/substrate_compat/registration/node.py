"""The node: when to write a worker's file, and when to remove its folder."""

from collections.abc import Mapping
from typing import Final

import attrs

from substrate_compat.errors import InputError, quoted
from substrate_compat.registration.backoff import NEVER, Backoff, Report

__all__ = ["Caches", "NodeRules", "Pod", "PodState", "Remove", "Source", "Sync"]

_DELETING: Final = "the pod is being deleted"
_BACKOFF: Final = Backoff(1.0, 300.0)


@attrs.frozen
class Source:
    """What a worker's file is made from.

    Attributes:
        config: the name of the `SandboxConfig`.
        revision: what changes exactly when the spec does: of a Kubernetes object its `metadata.uid` and
            `metadata.generation`, which a change of status or labels leaves as they are.
    """

    config: str
    revision: str


@attrs.frozen
class Sync:
    """To do: plan what the worker offers under the config of `source`, and write its file."""

    source: Source


@attrs.frozen
class Remove:
    """To do: remove the worker's folder."""


@attrs.frozen
class Pod:
    """A worker's pod on this node.

    Attributes:
        pool: the value of its pool label; None if it has none.
        deleting: whether it is being deleted.
    """

    pool: str | None
    deleting: bool = False


@attrs.frozen
class Caches:
    """What a node knows of the cluster.

    Attributes:
        pods: the worker pods on this node, by a key that no later pod has again, such as the UID.
        pools: the name of its config for each pool.
        configs: its revision (see `Source`) for each config.
        synced: whether all three were listed at least once.
    """

    pods: Mapping[str, Pod]
    pools: Mapping[str, str]
    configs: Mapping[str, str]
    synced: bool = True

    def source(self, pod: Pod) -> Source | str:
        """What the file of `pod` is made from, or why that is not known.

        >>> caches = Caches({}, {"general": "gvisor"}, {"gvisor": "1"})
        >>> caches.source(Pod("general"))
        Source(config='gvisor', revision='1')
        >>> caches.source(Pod("special"))
        "no pool is named 'special'"
        """
        if pod.deleting:
            return _DELETING
        if pod.pool is None:
            return "the pod has no pool label"
        config = self.pools.get(pod.pool)
        if config is None:
            return f"no pool is named {quoted(pod.pool)}"
        revision = self.configs.get(config)
        if revision is None:
            return f"no config is named {quoted(config)}"
        return Source(config, revision)


@attrs.frozen
class PodState:
    """Where a node is with one pod.

    Attributes:
        source: what the file was last to be made from, or why that was not known; None for a folder
            without a pod.
        due: when to decide next, unless something changes before.
        changed_at: when the first of the changes came that wait for `due`; None if none waits.
        failures: how many attempts in a row failed.
    """

    source: Source | str | None
    due: float = NEVER
    changed_at: float | None = None
    failures: int = 0


@attrs.frozen
class NodeRules:
    """When a node writes the file of a pod, and when it removes a folder.

    A pod that is new is synced at once; for a change of its config a delay is drawn, so that the workers of
    a pool do not all register at once. While a pool or config cannot be found, the file stays.

    Attributes:
        settle: the least delay of a change; each further one delays by as much, so that a burst is one.
        spread: the most that all of that delays the first change.
        orphan_age: how old a folder must be that has no pod: its pod may only not be known yet.
        backoff: the waits after attempts that failed.
        retries: how often a failed one is made again; then it rests until something changes.

    Raises:
        InputError: not 0 <= settle <= spread < infinity.

    >>> caches = Caches({"uid": Pod("general")}, {"general": "gvisor"}, {"gvisor": "1"})
    >>> rules = NodeRules()
    >>> state, action = rules.decide("uid", None, caches, None, now=100.0, draw=0.5)
    >>> action
    Sync(source=Source(config='gvisor', revision='1'))
    >>> rules.failed(state, now=100.0).due
    101.0
    >>> caches = attrs.evolve(caches, configs={"gvisor": "2"})
    >>> rules.decide("uid", rules.done(state), caches, 9.0, now=200.0, draw=0.5)[0].due
    215.5
    """

    settle: float = 1.0
    spread: float = 30.0
    orphan_age: float = 60.0
    backoff: Backoff = _BACKOFF
    retries: int = 8

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.settle <= self.spread < NEVER:
            raise InputError("spread", f"no delay is from {self.settle} s to {self.spread} s long")

    def decide(
        self,
        key: str,
        state: PodState | None,
        caches: Caches,
        folder_age: float | None,
        *,
        now: float,
        draw: float,
    ) -> tuple[PodState | None, Sync | Remove | Report | None]:
        """What to do for a pod now, and its new state; a state of None need not be kept.

        After a `Sync` or `Remove` call `done` or `failed`.

        Args:
            key: the pod's key in `caches.pods`, which is also the name of its folder.
            state: its state; None if this process has none.
            caches: what is known of the cluster.
            folder_age: how many seconds ago its folder was last changed; None if it has none.
            now: the time.
            draw: for the delay of a change.
        """
        if not caches.synced:
            return state, None
        pod = caches.pods.get(key)
        if pod is None:
            return self._decide_folder(state, folder_age, now)
        source = caches.source(pod)
        if pod.deleting:
            return PodState(source), None
        if state is None or state.source is None:
            state = PodState(source, due=now)
        elif source != state.source:
            state = self._changed(state, source, now, draw)
        if now < state.due:
            return state, None
        action = Sync(source) if isinstance(source, Source) else Report(source)
        return attrs.evolve(state, due=NEVER, changed_at=None), action

    def done(self, state: PodState) -> PodState | None:
        """The state after what was to do is done, or failed for good, as with a `ConfigError`."""
        return None if state.source is None else attrs.evolve(state, failures=0)

    def failed(self, state: PodState, *, now: float) -> PodState:
        """The state after an attempt that may succeed another time."""
        if state.changed_at is not None:
            return state
        failures = state.failures + 1
        due = now + self.backoff.delay(failures) if failures <= self.retries else NEVER
        return attrs.evolve(state, due=due, failures=failures)

    def _changed(self, state: PodState, source: Source | str, now: float, draw: float) -> PodState:
        if state.changed_at is None:
            delay = self.settle + draw * (self.spread - self.settle)
            return PodState(source, now + delay, changed_at=now)
        due = min(max(state.due, now + self.settle), state.changed_at + self.spread)
        return attrs.evolve(state, source=source, due=due)

    def _decide_folder(
        self, state: PodState | None, age: float | None, now: float
    ) -> tuple[PodState | None, Remove | None]:
        if age is None:
            return None, None
        ripe = now + max(self.orphan_age - age, 0.0)
        if state is None:
            state = PodState(None, ripe)
        elif state.source is not None:
            state = PodState(None, now)
        else:
            state = attrs.evolve(state, due=max(state.due, ripe) if state.failures else ripe)
        if now < state.due:
            return state, None
        return attrs.evolve(state, due=NEVER), Remove()
