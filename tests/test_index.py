"""The index: a table, then its law, index = scan, on fleets small and large, then real machines."""

import copy
import io
import pickle
import threading
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from random import Random

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import vectors
from strategies import gvisor_runtimes, near_snapshots, sandbox_runtimes, worker_runtimes
from substrate_compat.chunks import Chunk
from substrate_compat.cpufeatures import FeatureSet, known_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat, WorkerRuntimes
from substrate_compat.index import WorkerIndex
from substrate_compat.match import Reason, explain_worker, matches
from substrate_compat.why_none import Excluded, NearMiss, WhyNone

AMD64 = Architecture.AMD64
HASHES = ["sha256:" + digit * 64 for digit in "123"]


def gvisor(mask: str | None = "3", runtime_hash: str | None = HASHES[0], **others: str) -> SandboxRuntime:
    """An identity of class gvisor; what is None is left out."""
    values = {"architecture": "amd64", "cpu_features": mask, "sandbox_runtime_hash": runtime_hash}
    recorded = {key: value for key, value in {**values, **others}.items() if value is not None}
    return SandboxRuntime("gvisor", VersionedSandboxCompat.of(recorded))


def worker(default: SandboxRuntime, *restorable: SandboxRuntime) -> WorkerRuntimes:
    return WorkerRuntimes(default, restorable)


def index_of(fleet: Mapping[str, WorkerRuntimes]) -> WorkerIndex:
    index = WorkerIndex()
    for worker_id, runtimes in fleet.items():
        index.put(worker_id, runtimes)
    return index


def scan(fleet: Mapping[str, WorkerRuntimes], snapshot: SandboxRuntime | None) -> list[str]:
    """The candidates, by looking at every worker."""
    return [
        worker_id
        for worker_id, runtimes in fleet.items()
        if any(matches(runtime, snapshot) for runtime in runtimes)
    ]


def explain_fleet(
    fleet: Mapping[str, WorkerRuntimes], snapshot: SandboxRuntime | None
) -> tuple[list[str], WhyNone | None]:
    """The candidates and why there are none, by explaining every worker."""
    verdicts = {worker_id: explain_worker(runtimes, snapshot) for worker_id, runtimes in fleet.items()}
    candidates = [worker_id for worker_id, verdict in verdicts.items() if verdict.compatible]
    if candidates:
        return candidates, None
    excluded: Counter[tuple[Reason, str]] = Counter()
    misses: list[tuple[tuple[str, ...], str, SandboxRuntime]] = []
    for worker_id, verdict in verdicts.items():
        excluded.update({(each.reason, each.key) for one in verdict.verdicts for each in one.mismatches})
        for runtime, one in zip(fleet[worker_id], verdict.verdicts, strict=True):
            if [each.reason for each in one.mismatches] == [Reason.MISSING_FEATURES]:
                misses.append((one.mismatches[0].features, worker_id, runtime))
    fewest = min((len(features) for features, _, _ in misses), default=0)
    nearest = [
        NearMiss(
            features,
            len({worker_id for lacked, worker_id, _ in misses if lacked == features}),
            tuple(dict.fromkeys(runtime for lacked, _, runtime in misses if lacked == features)),
        )
        for features in {features for features, _, _ in misses if len(features) == fewest}
    ]
    return [], WhyNone(
        len(fleet),
        tuple(
            sorted(
                (Excluded(*reason, count) for reason, count in excluded.items()),
                key=lambda each: (-each.workers, each.key, each.reason),
            )
        ),
        tuple(sorted(nearest, key=lambda miss: (-miss.workers, miss.features))),
    )


def assert_scans_alike(
    index: WorkerIndex, fleet: Mapping[str, WorkerRuntimes], snapshot: SandboxRuntime | None
) -> None:
    candidates, why = explain_fleet(fleet, snapshot)
    assert list(index.candidates(snapshot)) == candidates
    assert index.count(snapshot) == len(candidates)
    assert index.why_none(snapshot) == why


# Each row: a worker, a snapshot, whether it is a candidate.
FITTING = [
    pytest.param(worker(gvisor()), None, True, id="no constraint"),
    pytest.param(worker(gvisor()), gvisor(), True, id="equal"),
    pytest.param(worker(gvisor()), gvisor("1"), True, id="fewer features"),
    pytest.param(worker(gvisor("1")), gvisor(), False, id="more features"),
    pytest.param(worker(gvisor()), gvisor("0003"), True, id="zero padding"),
    pytest.param(worker(gvisor()), gvisor(runtime_hash=HASHES[1]), False, id="another hash"),
    pytest.param(worker(gvisor()), gvisor(runtime_hash=None), True, id="no hash in the snapshot"),
    pytest.param(worker(gvisor(runtime_hash=None)), gvisor(), False, id="no hash on the worker"),
    pytest.param(worker(gvisor()), gvisor(None), True, id="no features in the snapshot"),
    pytest.param(worker(gvisor(None)), gvisor(), False, id="no features on the worker"),
    pytest.param(worker(gvisor(None)), gvisor(None), True, id="no features at all"),
    pytest.param(worker(gvisor("x")), gvisor("x"), False, id="unreadable, though equal"),
    pytest.param(worker(gvisor("x")), gvisor(None), True, id="unreadable, but not needed"),
    pytest.param(worker(gvisor()), gvisor("x"), False, id="unreadable in the snapshot"),
    pytest.param(worker(gvisor(cpu_cache_line="64")), gvisor(), True, id="a key of the worker alone"),
    pytest.param(worker(gvisor()), gvisor(cpu_cache_line="64"), False, id="a key of the snapshot alone"),
    pytest.param(
        worker(gvisor(), gvisor(runtime_hash=HASHES[1])),
        gvisor(runtime_hash=HASHES[1]),
        True,
        id="restorable",
    ),
    pytest.param(
        worker(gvisor("1"), gvisor("1", cpu_cache_line="64"), gvisor()),
        gvisor(),
        True,
        id="two masks, the second",
    ),
    pytest.param(worker(gvisor("1"), gvisor("2")), gvisor("3"), False, id="two masks, no one alone"),
    pytest.param(worker(gvisor("1"), gvisor("01")), gvisor("1"), True, id="one mask written in two ways"),
    pytest.param(
        worker(SandboxRuntime("microvm", gvisor().compat_version)), gvisor(), False, id="another class"
    ),
    pytest.param(
        worker(SandboxRuntime("gvisor", VersionedSandboxCompat.of({"architecture": "amd64"}, "v2"))),
        SandboxRuntime("gvisor", VersionedSandboxCompat.of({"architecture": "amd64"})),
        False,
        id="another schema",
    ),
]


@pytest.mark.parametrize(("runtimes", "snapshot", "fits"), FITTING)
def test_one_worker(runtimes: WorkerRuntimes, snapshot: SandboxRuntime | None, fits: bool) -> None:
    index = WorkerIndex()
    index.put("a", runtimes)
    assert list(index.candidates(snapshot)) == ["a"] * fits
    assert_scans_alike(index, {"a": runtimes}, snapshot)
    index.remove("a")
    assert_scans_alike(index, {}, snapshot)


def test_candidates_come_in_order_of_insertion() -> None:
    index = WorkerIndex()
    for number in range(2000):
        index.put(f"w{number}", worker(gvisor("1" if number % 3 else "3")))
    assert list(index.candidates(gvisor("1"))) == [f"w{number}" for number in range(2000)]
    assert list(index.candidates(gvisor("3"))) == [f"w{number}" for number in range(0, 2000, 3)]


def test_a_put_with_equal_runtimes_changes_nothing() -> None:
    index = index_of({"a": worker(gvisor("1")), "b": worker(gvisor("1"))})
    candidates = index.candidates(None)
    assert next(candidates) == "a"
    index.put("a", worker(SandboxRuntime("gvisor", gvisor("1").compat_version, "another name")))
    assert next(candidates) == "b"


def test_a_put_with_other_runtimes_goes_to_the_end() -> None:
    index = index_of({"a": worker(gvisor("1")), "b": worker(gvisor("1"))})
    index.put("a", worker(gvisor("3")))
    assert list(index.candidates(gvisor("1"))) == ["b", "a"]
    assert len(index) == 2


def test_the_workers_are_known_by_id() -> None:
    index = index_of({"a": worker(gvisor())})
    assert "a" in index
    assert "b" not in index
    assert 1 not in index
    index.remove("a")
    assert "a" not in index
    assert len(index) == 0


def test_an_unknown_worker_cannot_be_removed() -> None:
    index = index_of({"a": worker(gvisor())})
    with pytest.raises(KeyError, match="b"):
        index.remove("b")
    assert list(index.candidates(None)) == ["a"]


@pytest.mark.parametrize(
    ("worker_id", "runtimes"),
    [
        pytest.param(1, worker(gvisor()), id="a number for an id"),
        pytest.param("a", gvisor(), id="one runtime"),
        pytest.param("a", None, id="none"),
    ],
)
def test_put_takes_nothing_else(worker_id: str, runtimes: WorkerRuntimes) -> None:
    index = WorkerIndex()
    with pytest.raises(TypeError, match=r"^put takes a str and a WorkerRuntimes$"):
        index.put(worker_id, runtimes)
    assert len(index) == 0


@pytest.mark.parametrize("change", ["put", "remove"])
@pytest.mark.parametrize("taken", [0, 1, 2])
def test_candidates_are_of_the_index_as_it_was_asked(change: str, taken: int) -> None:
    index = index_of({"a": worker(gvisor()), "b": worker(gvisor())})
    candidates = index.candidates(gvisor())
    assert list(islice(candidates, taken)) == ["a", "b"][:taken]
    if change == "put":
        index.put("c", worker(gvisor()))
    else:
        index.remove("b")
    with pytest.raises(RuntimeError, match=r"^the index changed while its candidates were taken$"):
        next(candidates)


def test_why_none_counts_a_worker_under_each_reason() -> None:
    index = index_of(
        {
            "a": worker(gvisor("1"), gvisor("3", HASHES[1])),
            "b": worker(gvisor("1", HASHES[1])),
            "c": worker(gvisor("0"), gvisor("1", cpu_cache_line="64")),
        }
    )
    assert index.why_none(gvisor("3")) == WhyNone(
        3,
        (
            Excluded(Reason.MISSING_FEATURES, "cpu_features", 3),
            Excluded(Reason.DIFFERENT_VALUE, "sandbox_runtime_hash", 2),
        ),
        (NearMiss(("pclmulqdq",), 2, (gvisor("1"), gvisor("1", cpu_cache_line="64"))),),
    )


@pytest.mark.parametrize(
    "runtimes",
    [
        pytest.param(worker(gvisor("1"), gvisor("0", cpu_cache_line="64")), id="by the default"),
        pytest.param(worker(gvisor("0", cpu_cache_line="64"), gvisor("1")), id="by another runtime"),
        pytest.param(worker(gvisor("1"), gvisor("0", HASHES[1])), id="beside a mask of other binaries"),
        pytest.param(worker(gvisor("1"), gvisor("1", HASHES[1])), id="beside its mask, of other binaries"),
        pytest.param(worker(gvisor("1", HASHES[1]), gvisor("1")), id="after its mask, of other binaries"),
        pytest.param(worker(gvisor("0", HASHES[1]), gvisor("1")), id="after a mask of other binaries"),
        pytest.param(worker(gvisor("1"), gvisor("x")), id="beside an unreadable mask"),
        pytest.param(worker(gvisor("x"), gvisor("1")), id="after an unreadable mask"),
    ],
)
def test_the_nearest_miss_is_that_of_the_runtime_that_lacks_least(runtimes: WorkerRuntimes) -> None:
    told = index_of({"a": runtimes}).why_none(gvisor("3"))
    assert told is not None
    assert told.nearest == (NearMiss(("pclmulqdq",), 1, (gvisor("1"),)),)


def test_the_nearest_misses_are_in_order_of_their_workers() -> None:
    fleet = {"a": worker(gvisor("3")), "b": worker(gvisor("5")), "c": worker(gvisor("5"))}
    told = index_of(fleet).why_none(gvisor("7"))
    assert told is not None
    assert told.nearest == (
        NearMiss(("pclmulqdq",), 2, (gvisor("5"),)),
        NearMiss(("dtes64",), 1, (gvisor("3"),)),
    )


def test_an_index_that_shrinks_forgets_nothing() -> None:
    """Three chunks of workers that all differ: thinned out until they are merged, then emptied."""
    fleet = {f"w{number}": worker(gvisor(f"{number:x}")) for number in range(2100)}
    index = index_of(fleet)
    for number in range(2100):
        if number % 3:
            index.remove(f"w{number}")
            del fleet[f"w{number}"]
    assert list(index.candidates(gvisor("3"))) == scan(fleet, gvisor("3"))
    assert index.count(gvisor("3")) == len(scan(fleet, gvisor("3")))
    for worker_id in [*fleet]:
        index.remove(worker_id)
    assert len(index) == 0
    assert list(index.candidates(None)) == []


class ChunkCounter(pickle.Pickler):
    """Counts the chunks that something holds, by what pickling it comes by."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.chunks: set[int] = set()

    def persistent_id(self, held: object) -> None:
        if isinstance(held, Chunk):
            self.chunks.add(id(held))


FIRST, SECOND, THIRD = range(1024), range(1024, 2048), range(2048, 3072)


@pytest.mark.parametrize(
    ("gone", "chunks"),
    [
        pytest.param([], 3, id="none"),
        pytest.param([FIRST], 2, id="the first is empty"),
        pytest.param([SECOND], 2, id="the second is empty"),
        pytest.param([THIRD], 2, id="the third is empty"),
        pytest.param([FIRST[:512], SECOND[:512]], 2, id="the second becomes as sparse as the first"),
        pytest.param([SECOND[::2], FIRST[512:]], 2, id="the first becomes as sparse as the second"),
        pytest.param([SECOND[:512], THIRD[::2]], 2, id="the third becomes as sparse as the second"),
        pytest.param([THIRD[:512], SECOND[512:]], 2, id="the second becomes as sparse as the third"),
        pytest.param([FIRST[:512], THIRD[:512]], 3, id="no neighbours"),
        pytest.param([FIRST[:511], SECOND[:512]], 3, id="the first has one more than half"),
        pytest.param([FIRST[:512], SECOND[:511]], 3, id="the second has one more than half"),
        pytest.param([FIRST[:512], SECOND[:512], THIRD[:512], FIRST[512:]], 1, id="all are sparse at last"),
    ],
)
def test_chunks_that_are_sparse_beside_each_other_become_one(gone: list[range], chunks: int) -> None:
    fleet = {f"w{number}": worker(DIFFERENT[number]) for number in range(3072)}
    index = index_of(fleet)
    for numbers in gone:
        for number in numbers:
            del fleet[f"w{number}"]
            index.remove(f"w{number}")
    counter = ChunkCounter()
    counter.dump(index)
    assert len(counter.chunks) == chunks
    assert list(index.candidates(None)) == list(fleet)
    assert list(index.candidates(DIFFERENT[0])) == scan(fleet, DIFFERENT[0])


def test_chunks_that_became_one_keep_the_order_of_insertion() -> None:
    fleet = {f"w{number}": worker(DIFFERENT[number]) for number in SECOND}
    fleet |= {f"w{number}": worker(DIFFERENT[number]) for number in FIRST}
    fleet["again"] = fleet[f"w{SECOND[0]}"]
    fleet |= {f"w{number}": worker(DIFFERENT[number]) for number in THIRD}
    index = index_of(fleet)
    for number in (*FIRST[::2], *THIRD[::2]):
        del fleet[f"w{number}"]
        index.remove(f"w{number}")
    assert list(index.candidates(None)) == list(fleet)


def test_why_none_of_an_empty_index() -> None:
    for snapshot in (None, gvisor()):
        assert WorkerIndex().why_none(snapshot) == WhyNone(0, (), ())


def test_an_index_can_be_copied_and_pickled() -> None:
    fleet = {f"w{number}": worker(DIFFERENT[number % 1500]) for number in range(3000)}
    index = index_of(fleet)
    for twin in (copy.deepcopy(index), pickle.loads(pickle.dumps(index))):
        twin.remove("w0")
        assert list(twin.candidates(None)) == list(fleet)[1:]
        assert list(index.candidates(None)) == list(fleet)


def test_threads_that_hold_the_lock_see_a_whole_index() -> None:
    index = index_of({f"w{number}": worker(gvisor(f"{1 << number % 2:x}")) for number in range(100)})
    lock, done = threading.Lock(), threading.Event()
    seen: list[tuple[int, list[str]]] = []

    def ask() -> None:
        while not done.is_set():
            with lock:
                seen.append((index.count(gvisor("1")), list(index.candidates(gvisor("1")))))

    readers = [threading.Thread(target=ask) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for step in range(2000):
            with lock:
                index.put(f"w{step % 100}", worker(gvisor(f"{1 << step // 100 % 2:x}")))
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert seen
    assert all(count == len(candidates) for count, candidates in seen)


class SmallFleet(RuleBasedStateMachine):
    """Any runtimes, few workers: the index gives what a scan with `explain_worker` gives."""

    def __init__(self) -> None:
        super().__init__()
        self.index = WorkerIndex()
        self.fleet: dict[str, WorkerRuntimes] = {}

    @rule(
        worker_id=st.sampled_from("abcdef"),
        runtimes=worker_runtimes() | worker_runtimes(gvisor_runtimes(st.just(AMD64))),
    )
    def put(self, worker_id: str, runtimes: WorkerRuntimes) -> None:
        if self.fleet.get(worker_id) != runtimes:
            self.fleet.pop(worker_id, None)
        self.fleet[worker_id] = runtimes
        self.index.put(worker_id, runtimes)

    @precondition(lambda self: self.fleet)
    @rule(data=st.data(), worker_id=st.sampled_from("abcdef"))
    def put_what_another_has(self, data: st.DataObject, worker_id: str) -> None:
        self.put(worker_id, self.fleet[data.draw(st.sampled_from(sorted(self.fleet)))])

    @precondition(lambda self: self.fleet)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        worker_id = data.draw(st.sampled_from(sorted(self.fleet)))
        del self.fleet[worker_id]
        self.index.remove(worker_id)

    @rule(snapshot=st.none() | sandbox_runtimes)
    def ask_anything(self, snapshot: SandboxRuntime | None) -> None:
        assert_scans_alike(self.index, self.fleet, snapshot)

    @precondition(lambda self: self.fleet)
    @rule(data=st.data())
    def ask_something_near(self, data: st.DataObject) -> None:
        runtimes = data.draw(st.sampled_from(sorted(self.fleet.items())))[1]
        runtime = data.draw(st.sampled_from([*runtimes]))
        assert_scans_alike(self.index, self.fleet, data.draw(near_snapshots(runtime)))

    @invariant()
    def the_same_workers(self) -> None:
        assert len(self.index) == len(self.fleet)
        assert all((worker_id in self.index) is (worker_id in self.fleet) for worker_id in "abcdef")


TestSmallFleet = SmallFleet.TestCase
TestSmallFleet.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)

_NAMES = sorted(row.name for row in known_features(AMD64))
# Bit k of a number says whether the k-th name of each eight is in its set: 4,096 sets of every size.
DIFFERENT = [
    gvisor(
        FeatureSet.from_names(
            AMD64, [name for place, name in enumerate(_NAMES) if number >> place % 12 & 1]
        ).hex,
        HASHES[number % 2],
    )
    for number in range(4096)
]


OTHERS = [gvisor("1", HASHES[2]), gvisor(None, HASHES[2])]
RANDOM = st.randoms(use_true_random=True)


class LargeFleet(RuleBasedStateMachine):
    """Thousands of workers that all differ come and go: chunks are filled, emptied and merged."""

    def __init__(self) -> None:
        super().__init__()
        self.index = WorkerIndex()
        self.fleet: dict[str, WorkerRuntimes] = {}

    @initialize(randomness=RANDOM)
    def start(self, randomness: Random) -> None:
        self.put_many(2500, randomness)

    @rule(count=st.sampled_from([10, 300, 1100]), randomness=RANDOM)
    def put_many(self, count: int, randomness: Random) -> None:
        for number in randomness.sample(range(len(DIFFERENT)), count):
            worker_id = f"w{number}"
            runtimes = worker(DIFFERENT[number], *randomness.sample(OTHERS, randomness.randrange(2)))
            if self.fleet.get(worker_id) != runtimes:
                self.fleet.pop(worker_id, None)
            self.fleet[worker_id] = runtimes
            self.index.put(worker_id, runtimes)

    @rule(share=st.sampled_from([0.1, 0.5, 0.9, 1]))
    def remove_oldest(self, share: float) -> None:
        self.remove(list(self.fleet)[: round(len(self.fleet) * share)])

    @rule(share=st.sampled_from([0.1, 0.5, 0.9, 1]), randomness=RANDOM)
    def remove_any(self, share: float, randomness: Random) -> None:
        self.remove(randomness.sample(list(self.fleet), round(len(self.fleet) * share)))

    def remove(self, worker_ids: list[str]) -> None:
        for worker_id in worker_ids:
            del self.fleet[worker_id]
            self.index.remove(worker_id)

    @rule(number=st.integers(0, len(DIFFERENT) - 1), runtime_hash=st.sampled_from([None, *HASHES]))
    def ask(self, number: int, runtime_hash: str | None) -> None:
        mask = DIFFERENT[number].compat_version.get("cpu_features")
        snapshot = gvisor(mask, runtime_hash)
        candidates = scan(self.fleet, snapshot)
        assert list(self.index.candidates(snapshot)) == candidates
        assert self.index.count(snapshot) == len(candidates)
        assert (self.index.why_none(snapshot) is None) is bool(candidates)

    @invariant()
    def all_in_order(self) -> None:
        assert list(self.index.candidates(None)) == list(self.fleet)
        assert self.index.count(None) == len(self.index) == len(self.fleet)


TestLargeFleet = LargeFleet.TestCase
TestLargeFleet.settings = settings(
    # A step takes long and its size is the point: shrinking would take minutes and help nobody.
    max_examples=5,
    stateful_step_count=10,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


def test_why_none_over_several_chunks() -> None:
    fleet = {f"w{number}": worker(runtime) for number, runtime in enumerate(DIFFERENT[::2])}
    index = index_of(fleet)
    whole = FeatureSet.from_names(AMD64, _NAMES).hex
    for snapshot in (gvisor(whole, HASHES[0]), gvisor(whole, HASHES[2]), gvisor(whole, None)):
        assert (list(index.candidates(snapshot)), index.why_none(snapshot)) == explain_fleet(
            fleet, snapshot
        )


def test_the_160_real_machines() -> None:
    """Half of them have a restorable runtime beside the default."""
    masks = [host.features.hex for host in vectors.gvisor_hosts().hosts]
    fleet = {
        f"w{number}": worker(*(gvisor(mask, each) for each in HASHES[: 1 + number % 2]))
        for number, mask in enumerate(masks)
    }
    index = index_of(fleet)
    for mask in masks[::8]:
        for runtime_hash in HASHES:
            assert_scans_alike(index, fleet, gvisor(mask, runtime_hash))
