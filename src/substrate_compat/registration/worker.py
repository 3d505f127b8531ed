"""The worker: when to register what its file says."""

from typing import Final

import attrs

from substrate_compat.errors import CompatError, InputError
from substrate_compat.identity import WorkerRuntimes
from substrate_compat.registration.backoff import NEVER, Backoff, Report

__all__ = ["Register", "WorkerRules", "WorkerState"]

_BACKOFF: Final = Backoff(0.5, 30.0)


@attrs.frozen
class Register:
    """To do: register `runtimes`."""

    runtimes: WorkerRuntimes


@attrs.frozen
class WorkerState:
    """Where a worker is with its registration.

    Attributes:
        due: when to decide next, unless the file changes before.
        registered: what the scheduler has, as far as is known.
        renew_at: when to register that again.
        refused: what will not be tried again: runtimes that the scheduler rejected, or what is wrong with
            the file.
        failures: how many attempts in a row failed.
        retry_at: no attempt before this time.
    """

    due: float = -NEVER
    registered: WorkerRuntimes | None = None
    renew_at: float = -NEVER
    refused: WorkerRuntimes | str | None = None
    failures: int = 0
    retry_at: float = -NEVER


@attrs.frozen
class WorkerRules:
    """When a worker registers.

    Attributes:
        resync: the file is read at least so often. What is registered is not registered again before, and
            is after: a scheduler may have lost what it knew.
        spread: the most by which that is later, drawn each time, so that workers which registered together
            do not do so for ever.
        backoff: the waits after attempts that failed, whatever the file says by then.

    Raises:
        InputError: not 0 < resync < infinity, or not 0 <= spread < infinity.

    >>> from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat
    >>> compat = VersionedSandboxCompat.of({"architecture": "arm64"})
    >>> runtimes = WorkerRuntimes(SandboxRuntime("gvisor", compat))
    >>> rules = WorkerRules()
    >>> state, action = rules.decide(WorkerState(), runtimes, now=100.0)
    >>> action == Register(runtimes)
    True
    >>> rules.failed(state, now=100.0).due
    100.5
    >>> state = rules.registered(state, runtimes, now=100.0, draw=0.5)
    >>> rules.decide(state, runtimes, now=200.0) == (state, None), state.due
    (True, 415.0)
    """

    resync: float = 300.0
    spread: float = 30.0
    backoff: Backoff = _BACKOFF

    def __attrs_post_init__(self) -> None:
        if not 0 < self.resync < NEVER or not 0 <= self.spread < NEVER:
            raise InputError("resync", f"{self.resync} s and up to {self.spread} s more is no interval")

    def decide(
        self, state: WorkerState, found: WorkerRuntimes | CompatError | None, *, now: float
    ) -> tuple[WorkerState, Register | Report | None]:
        """What to do now, and the new state.

        After a `Register` call `registered`, `failed` or `rejected`.

        Args:
            state: the state so far.
            found: what the file says: the runtimes, why they cannot be read, or None where there is none.
            now: the time.
        """
        if now < state.retry_at:
            return attrs.evolve(state, due=state.retry_at), None
        said = str(found) if isinstance(found, CompatError) else found
        refused = said if said is not None and said == state.refused else None
        resting = attrs.evolve(state, due=now + self.resync, refused=refused)
        if said is None or refused is not None:
            return resting, None
        if isinstance(said, str):
            return attrs.evolve(resting, refused=said), Report(said)
        if said == state.registered and now < state.renew_at:
            return attrs.evolve(resting, due=state.renew_at), None
        return resting, Register(said)

    def registered(
        self, state: WorkerState, runtimes: WorkerRuntimes, *, now: float, draw: float
    ) -> WorkerState:
        """The state after the scheduler took `runtimes`."""
        renew_at = now + self.resync + draw * self.spread
        return attrs.evolve(state, due=renew_at, registered=runtimes, renew_at=renew_at, failures=0)

    def failed(self, state: WorkerState, *, now: float) -> WorkerState:
        """The state after an attempt that may succeed another time.

        Perhaps only the answer was lost; so what the scheduler has is not known any more.
        """
        failures = state.failures + 1
        retry_at = now + self.backoff.delay(failures)
        return attrs.evolve(state, due=retry_at, registered=None, failures=failures, retry_at=retry_at)

    def rejected(self, state: WorkerState, runtimes: WorkerRuntimes, *, now: float) -> WorkerState:
        """The state after the scheduler refused `runtimes` for good."""
        return attrs.evolve(state, due=now + self.resync, refused=runtimes, failures=0)
