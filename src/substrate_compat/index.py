"""Which workers of a fleet can restore a snapshot now; and if none can, why none.

A scheduler asks this for each restore, while workers come and go. The answer is what a scan of the fleet
with `explain_worker` would give. It costs what the fleet has of different hosts, not of workers: those
with equal runtimes are looked at once, and where all differ, as bitmaps (module `chunks`).
"""

from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace

from substrate_compat.bitmaps import selectors
from substrate_compat.chunks import Chunk, Group
from substrate_compat.families import Families, Family
from substrate_compat.identity import SandboxRuntime, WorkerRuntimes
from substrate_compat.why_none import WhyNone, why_none

__all__ = ["WorkerIndex"]


class WorkerIndex:
    """The workers of a fleet by what they can restore: workers in, candidates out.

    Workers are told apart by id, and stand in order of insertion. One that is put with other runtimes
    goes to the end, as after `remove` and `put`.

    Threads: a query changes nothing, so any number may run at once; `put` and `remove` must run alone.
    Where one thread changes the index and others ask, hold one lock around each call, and around all
    that is taken from `candidates`: `with lock: first = list(islice(index.candidates(snapshot), 100))`.

    >>> from substrate_compat.identity import VersionedSandboxCompat
    >>> rome, milan = (
    ...     SandboxRuntime("gvisor", VersionedSandboxCompat.of({"architecture": "amd64", **features}))
    ...     for features in ({"cpu_features": "1"}, {"cpu_features": "3"})
    ... )
    >>> index = WorkerIndex()
    >>> index.put("worker-a", WorkerRuntimes(rome))
    >>> index.put("worker-b", WorkerRuntimes(milan))
    >>> list(index.candidates(rome)), index.count(milan)
    (['worker-a', 'worker-b'], 1)
    >>> index.remove("worker-b")
    >>> index.why_none(milan).nearest[0].features
    ('pclmulqdq',)
    """

    def __init__(self) -> None:
        self._changes = 0
        self._group_of: dict[str, Group] = {}
        self._ticket_of: dict[str, int] = {}
        self._groups: dict[WorkerRuntimes, Group] = {}
        self._families = Families()
        self._chunks: list[Chunk] = []

    def __len__(self) -> int:
        return len(self._group_of)

    def __contains__(self, worker_id: object) -> bool:
        return worker_id in self._group_of

    def put(self, worker_id: str, runtimes: WorkerRuntimes) -> None:
        """Adds a worker at the end, or replaces what a known one can restore.

        A put with equal runtimes changes nothing: the worker keeps its place.
        """
        if type(worker_id) is not str or type(runtimes) is not WorkerRuntimes:
            raise TypeError("put takes a str and a WorkerRuntimes")
        group = self._groups.get(runtimes)
        held = self._group_of.get(worker_id)
        if held is not None:
            if held is group:
                return
            self.remove(worker_id)
        self._changes += 1
        if group is None:
            group = self._new_group(runtimes)
        self._group_of[worker_id] = group
        self._ticket_of[worker_id] = self._changes
        group.append(self._changes, worker_id)

    def remove(self, worker_id: str) -> None:
        """Removes a worker.

        Raises:
            KeyError: there is no worker of that id.
        """
        group = self._group_of.pop(worker_id)
        self._changes += 1
        group.remove(self._ticket_of.pop(worker_id))
        if not group.blocks:
            self._drop_group(group)

    def candidates(self, snapshot: SandboxRuntime | None) -> Iterator[str]:
        """The ids of the workers that can restore `snapshot`, in order of insertion, lazily.

        A snapshot of None puts no constraint: all workers. What is not taken is not looked for, so the
        first few cost little in any fleet.

        Raises:
            RuntimeError: an item is asked for after the index has changed; as with a dict, take what you
                need before changing it.
        """
        return self._candidates(snapshot, self._changes)

    def count(self, snapshot: SandboxRuntime | None) -> int:
        """How many workers can restore `snapshot`; all of them if it is None."""
        families, needed = self._query(snapshot)
        return sum(chunk.workers(chunk.fitting(families, needed)) for chunk in self._chunks)

    def why_none(self, snapshot: SandboxRuntime | None) -> WhyNone | None:
        """Why no worker can restore `snapshot`; None where one can."""
        families, needed = self._query(snapshot)
        if any(chunk.fitting(families, needed) for chunk in self._chunks):
            return None
        if snapshot is None:
            return WhyNone(0, (), ())
        return why_none(len(self), self._families, self._chunks, snapshot)

    def _query(self, snapshot: SandboxRuntime | None) -> tuple[set[Family], bytes]:
        """The families that satisfy the snapshot, and the columns that it needs of their masks."""
        needs = 0 if snapshot is None else snapshot.compat_version.needs
        return self._families.fitting(snapshot), selectors(needs)

    def _candidates(self, snapshot: SandboxRuntime | None, changes: int) -> Iterator[str]:
        self._check(changes)
        families, needed = self._query(snapshot)
        # The first worker not yet taken of each group that fits. No chunk has one before its start.
        heads: list[tuple[int, str, Iterator[tuple[int, str]]]] = []
        next_starts = [*(chunk.start for chunk in self._chunks[1:]), self._changes + 1]
        for chunk, next_start in zip(self._chunks, next_starts, strict=False):
            for group in chunk.groups(chunk.fitting(families, needed)):
                workers = iter(group)
                heappush(heads, (*next(workers), workers))
            while heads and heads[0][0] < next_start:
                _, worker_id, workers = heads[0]
                yield worker_id
                self._check(changes)
                following = next(workers, None)
                if following is None:
                    heappop(heads)
                else:
                    heapreplace(heads, (*following, workers))

    def _check(self, changes: int) -> None:
        if self._changes != changes:
            raise RuntimeError("the index changed while its candidates were taken")

    def _new_group(self, runtimes: WorkerRuntimes) -> Group:
        if not self._chunks or self._chunks[-1].full:
            self._chunks.append(Chunk(self._changes))
        group = self._groups[runtimes] = Group(runtimes, self._families.take(runtimes))
        self._chunks[-1].add(group)
        return group

    def _drop_group(self, group: Group) -> None:
        del self._groups[group.runtimes]
        self._families.release(group.offers)
        group.chunk.remove(group)
        if group.chunk.sparse:
            self._compact(self._chunks.index(group.chunk))

    def _compact(self, at: int) -> None:
        """Drops a chunk that is empty, or makes one of it and a neighbour where both are sparse."""
        chunks = self._chunks
        if not chunks[at].live:
            del chunks[at]
            return
        for pair in (slice(max(at - 1, 0), at + 1), slice(at, at + 2)):
            if len(chunks[pair]) == 2 and all(chunk.sparse for chunk in chunks[pair]):
                groups = [group for chunk in chunks[pair] for group in chunk.groups()]
                chunks[pair] = [Chunk.of(chunks[pair][0].start, groups)]
                return
