"""The services of `examples/` as real processes, with real files, on the loopback interface."""

import http.client
import json
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Final, Self

import attrs
import pytest

from substrate_compat.errors import CompatError
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat, WorkerRuntimes
from substrate_compat.match import stamp
from substrate_compat.strictjson import parse_json
from substrate_compat.wire import dumps_identity, dumps_worker, make_converter, read_runtimes
from vectors import GvisorHosts, Host, gvisor_hosts

ROOT: Final = Path(__file__).parent.parent
PATIENCE: Final = 60.0
WORKERS: Final = 20
DIGEST: Final = {"v1": "1" * 64, "v2": "2" * 64, "v3": "3" * 64}

# The intervals of the services, in seconds.
SETTLE, NODE_SPREAD, ORPHAN_AGE = 0.4, 2.4, 0.5
RESYNC, WORKER_SPREAD = 3.0, 1.5
RETRY, LONGEST_RETRY = 0.25, 1.0


@cache
def known_hosts() -> GvisorHosts:
    return gvisor_hosts()


def eventually(holds: Callable[[], object], what: str) -> None:
    """Waits until something holds."""
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until, what
        time.sleep(0.1)


def replace(path: Path, text: str) -> None:
    """Writes a file as an editor does, whole."""
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    draft.rename(path)


@attrs.define
class Service:
    """A process of one of the examples; its log goes to a file, which outlives a restart."""

    arguments: Sequence[str]
    log: Path
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *self.arguments], cwd=ROOT, stdin=subprocess.DEVNULL, stderr=log
            )

    def stop(self, how: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        status = self.process.wait(PATIENCE)
        self.process = None
        return status

    def said(self, pattern: str, since: float = 0.0) -> list[tuple[float, str]]:
        """The lines of the log that have a pattern, with their times."""
        found = []
        for line in self.log.read_text().splitlines():
            at, _, said = line.partition(" ")
            if re.fullmatch(r"\d+\.\d{3}", at) and float(at) >= since and re.search(pattern, said):
                found.append((float(at), said))
        return found


@contextmanager
def stopped_at_the_end(service: Service) -> Iterator[Service]:
    try:
        yield service
    finally:
        if service.process is not None:
            service.process.kill()
            service.process.wait()


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


@attrs.define
class Scheduler:
    """The scheduler, and what it answers."""

    service: Service
    port: int

    @classmethod
    def at(cls, folder: Path, *options: str) -> "Scheduler":
        port = free_port()
        arguments = ["examples.scheduler", "--port", str(port), *options]
        return cls(Service(arguments, folder / f"scheduler-{port}.log"), port)

    def start(self) -> None:
        self.service.start()
        eventually(self.listens, "the scheduler listens")

    def listens(self) -> bool:
        try:
            self.ask("GET", "/")
        except ConnectionError:
            return False
        return True

    def ask(self, method: str, path: str, body: str | bytes | None = None) -> tuple[int, object]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        is_json = response.headers.get_content_type() == "application/json"
        return response.status, parse_json(text) if is_json else text.decode()

    def place(self, snapshot: SandboxRuntime) -> set[str]:
        """The candidates; none where it is refused."""
        status, answer = self.ask("POST", "/placements", dumps_identity(snapshot))
        if status == 409:
            return set()
        assert status == 200
        assert isinstance(answer, dict)
        return set(answer["candidates"])

    def refuse(self, snapshot: SandboxRuntime) -> Mapping[str, object]:
        """The reasons why nobody can restore a snapshot."""
        status, answer = self.ask("POST", "/placements", dumps_identity(snapshot))
        assert status == 409
        assert isinstance(answer, dict)
        return answer


def machines() -> tuple[list[int], int]:
    """The places in `gvisor_hosts` of 20 different machines, and of an older one."""
    chosen: dict[frozenset[str], int] = {}
    for place, host in enumerate(known_hosts().hosts):
        listed = frozenset(host.listing.split(","))
        if {"lm", "osxsave", "syscall"} <= listed:
            chosen.setdefault(listed, place)
    by_size = sorted(chosen, key=len)
    return [chosen[listed] for listed in by_size[-WORKERS:]], chosen[by_size[0]]


def config(
    default: str, enabled: Sequence[str], disabled: Sequence[str] = (), pause: str = "0" * 64
) -> str:
    versions = [
        {
            "name": name,
            "state": "Enabled" if name in enabled else "Disabled",
            "pauseImage": f"registry.example/pause@sha256:{pause}",
            "assets": {
                "amd64": {"gvisor": {"url": f"https://bucket.example/{name}", "sha256": DIGEST[name]}}
            },
        }
        for name in (*enabled, *disabled)
    ]
    spec = {"sandboxClass": "gvisor", "defaultVersion": default, "versions": versions}
    return json.dumps({"kind": "SandboxConfig", "metadata": {"name": "gvisor"}, "spec": spec})


class Fleet:
    """A node, its workers and a scheduler."""

    def __init__(self, folder: Path) -> None:
        self.cluster, self.folders = folder / "cluster", folder / "workers"
        self.scheduler = Scheduler.at(folder, "--most", "100")
        node = ["examples.node", "--cluster", str(self.cluster), "--workers", str(self.folders)]
        node += ["--settle", str(SETTLE), "--spread", str(NODE_SPREAD), "--orphan-age", str(ORPHAN_AGE)]
        self.node = Service(node, folder / "node.log")
        self.workers: dict[str, Service] = {}
        self.hosts: dict[str, int] = {}
        self.converter = make_converter()
        (self.cluster / "configs").mkdir(parents=True)

    @property
    def services(self) -> list[Service]:
        return [self.scheduler.service, self.node, *self.workers.values()]

    def add_worker(self, key: str, place: int) -> Service:
        host = known_hosts().hosts[place]
        folder = self.cluster / "hosts" / key
        folder.mkdir(parents=True)
        (folder / "cpuinfo").write_text(cpuinfo(host))
        for digest in DIGEST.values():
            (folder / f"{digest}.features").write_text(host.listing + "\n")
        self.hosts[key] = place
        worker = ["examples.worker", key, "--file", str(self.file(key)), "--class", "gvisor"]
        worker += ["--scheduler", f"127.0.0.1:{self.scheduler.port}", "--poll", "0.2"]
        worker += ["--resync", str(RESYNC), "--spread", str(WORKER_SPREAD)]
        worker += ["--retry", str(RETRY), "--longest-retry", str(LONGEST_RETRY)]
        self.workers[key] = Service(worker, self.cluster.parent / f"{key}.log")
        return self.workers[key]

    def list_workers(self) -> None:
        """Makes `pool.yaml` list the workers."""
        listed = {key: {"pool": "general", "host": key} for key in self.workers}
        replace(self.cluster / "pool.yaml", json.dumps({"pools": {"general": "gvisor"}, "workers": listed}))

    def configure(self, text: str) -> None:
        replace(self.cluster / "configs" / "gvisor.yaml", text)

    def file(self, key: str) -> Path:
        return self.folders / key / "sandbox-runtimes.json"

    def offers(self, key: str) -> WorkerRuntimes:
        return read_runtimes(self.file(key), "gvisor", self.converter)

    def snapshot(self, key: str) -> SandboxRuntime:
        """The identity of a snapshot that is taken on a worker now."""
        return stamp(self.offers(key).default_runtime)

    def able(self, key: str) -> set[str]:
        """Who can restore what `key` took, by gVisor's own verdicts and with the same binaries."""
        verdicts = known_hosts().verdicts[self.hosts[key]]
        return {other for other, place in self.hosts.items() if verdicts[place] != "0"}

    def hashes(self, key: str) -> list[str | None]:
        return [runtime.compat_version.get("sandbox_runtime_hash") for runtime in self.offers(key)]

    def puts(self, since: float) -> dict[str, list[float]]:
        """When the scheduler took a registration of each worker."""
        found: dict[str, list[float]] = {key: [] for key in self.workers}
        for at, said in self.scheduler.service.said(r"INFO put ", since):
            found[said.split()[-1]].append(at)
        return found


def cpuinfo(host: Host) -> str:
    flags = host.listing.replace(",", " ")
    return f"processor : 0\nvendor_id : {host.vendor}\nmodel name : {host.brand}\nflags : {flags}\n"


class Readers(threading.Thread):
    """Reads every worker's file all the time: once there, it is always there, and whole."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__()
        self.fleet = fleet
        self.end = threading.Event()
        self.seen: set[str] = set()
        self.faults: list[str] = []
        self.reads = 0
        self.converter = make_converter()

    def run(self) -> None:
        while not self.end.wait(0.05):
            for key in list(self.fleet.workers):
                try:
                    read_runtimes(self.fleet.file(key), "gvisor", self.converter)
                    self.seen.add(key)
                    self.reads += 1
                except FileNotFoundError:
                    if key in self.seen:
                        self.faults.append(f"{key}: lost")
                except CompatError as error:
                    self.faults.append(f"{key}: {error}")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end.set()
        self.join()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """20 workers with the identities of real machines; everything runs, and is registered."""
    fleet = Fleet(tmp_path)
    places, _ = machines()
    for number, place in enumerate(places):
        fleet.add_worker(f"worker-{number:02}", place)
    fleet.list_workers()
    fleet.configure(config("v1", ["v1"]))
    with ExitStack() as stack:
        for service in fleet.services:
            stack.enter_context(stopped_at_the_end(service))
        for service in (fleet.node, *fleet.workers.values()):
            service.start()
        fleet.scheduler.start()
        yield fleet


def test_a_fleet(fleet: Fleet) -> None:
    old = fleet.add_worker("old", machines()[1])
    with Readers(fleet) as readers, stopped_at_the_end(old):
        snapshot = place_a_snapshot(fleet)
        roll_to_v2(fleet, snapshot)
        disable_v1(fleet, snapshot)
        add_an_old_worker(fleet)
        kill_the_node(fleet)
        kill_each_worker(fleet)
        kill_the_scheduler(fleet)
        stop_the_scheduler_for_a_while(fleet)
        leave_only_the_old_worker(fleet)
    assert readers.faults == []
    assert readers.seen == set(fleet.workers)
    assert readers.reads > 100 * WORKERS


def taken_on(fleet: Fleet) -> str:
    """A worker whose snapshots some of the others can restore, and some cannot."""
    return min(fleet.workers, key=lambda key: abs(len(fleet.able(key)) - WORKERS // 2))


def place_a_snapshot(fleet: Fleet) -> SandboxRuntime:
    eventually(lambda: all(fleet.file(key).exists() for key in young(fleet)), "every file is written")
    snapshot = fleet.snapshot(taken_on(fleet))
    able = fleet.able(taken_on(fleet)) - {"old"}
    assert 1 < len(able) < WORKERS
    eventually(lambda: fleet.scheduler.place(snapshot) == able, "the snapshot is placed")
    return snapshot


def young(fleet: Fleet) -> list[str]:
    return [key for key in fleet.workers if key != "old"]


def roll_to_v2(fleet: Fleet, snapshot: SandboxRuntime) -> None:
    """A burst of 1,000 changes that ends with v2 as the default: one write and registration per worker."""
    eventually(lambda: all(fleet.puts(0.0)[key] for key in young(fleet)), "all are registered")
    drafts = [config("v2", ["v2", "v1"], pause=f"{number:064x}") for number in range(1, 1000)]
    began = time.time()
    for draft in [*drafts, config("v2", ["v2", "v1"])]:
        fleet.configure(draft)
    burst = time.time() - began
    v1 = snapshot.compat_version.get("sandbox_runtime_hash")
    eventually(lambda: all(fleet.hashes(key)[1:] == [v1] for key in young(fleet)), "v2 is offered")
    eventually(lambda: settled(fleet, began), "and registered")
    written = [said.split()[1] for _, said in fleet.node.said("written", began)]
    assert max(written.count(f"{key}:") for key in young(fleet)) <= 1 + burst // (NODE_SPREAD - SETTLE)
    first = [min(at) for at in changed(fleet, began).values()]
    assert min(first) - began >= SETTLE
    # A slow burst uses the spread up.
    assert max(first) - min(first) >= (NODE_SPREAD - SETTLE - burst) / 4
    assert fleet.scheduler.place(snapshot) == fleet.able(taken_on(fleet)) - {"old"}
    assert fleet.scheduler.place(fleet.snapshot(taken_on(fleet))) == fleet.able(taken_on(fleet)) - {"old"}


def changed(fleet: Fleet, since: float) -> dict[str, list[float]]:
    """When each young worker registered after its file was last written."""
    written = {said.split()[1].rstrip(":"): at for at, said in fleet.node.said(": written", since)}
    puts = fleet.puts(since)
    return {key: [at for at in puts[key] if at >= written.get(key, at)] for key in young(fleet)}


def settled(fleet: Fleet, since: float) -> bool:
    return all(changed(fleet, since).values())


def disable_v1(fleet: Fleet, snapshot: SandboxRuntime) -> None:
    began = time.time()
    fleet.configure(config("v2", ["v2"], ["v1"]))
    eventually(lambda: all(len(fleet.hashes(key)) == 1 for key in young(fleet)), "v1 is not offered")
    eventually(lambda: settled(fleet, began), "that is registered")
    answer = fleet.scheduler.refuse(snapshot)
    runtime_hash = snapshot.compat_version.get("sandbox_runtime_hash")
    assert {
        "reason": "different_value",
        "key": "sandbox_runtime_hash",
        "workers": WORKERS,
        "needed": runtime_hash,
    } in as_list(answer["excluded"])
    assert "runtime hash" in str(answer["text"])


def as_list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def add_an_old_worker(fleet: Fleet) -> None:
    """It starts before the node knows of it, so that there is no folder to watch yet."""
    fleet.workers["old"].start()
    eventually(lambda: fleet.workers["old"].said("WARNING cannot watch .* polling every 0.2 s"), "it polls")
    fleet.list_workers()
    eventually(lambda: fleet.workers["old"].said("registered"), "the old worker is registered")
    for key in (taken_on(fleet), "old"):
        assert fleet.scheduler.place(fleet.snapshot(key)) == fleet.able(key)


def kill_the_node(fleet: Fleet) -> None:
    """Each time while it writes; in the end every file is what the config says."""
    chance = random.Random(7)
    for enabled in (["v2", "v3"], ["v2"], ["v2", "v3"]):
        fleet.node.stop(signal.SIGKILL)
        fleet.configure(config("v2", enabled, ["v1"]))
        began = time.time()
        fleet.node.start()
        eventually(partial(fleet.node.said, "written", began), "it writes")
        time.sleep(chance.uniform(0, 0.02))
    eventually(lambda: all(len(fleet.hashes(key)) == 2 for key in fleet.workers), "all files are current")
    eventually(lambda: settled(fleet, began), "all are registered")
    before = {key: fleet.file(key).stat() for key in fleet.workers}
    began = time.time()
    fleet.node.stop(signal.SIGKILL)
    fleet.node.start()
    eventually(lambda: len(fleet.node.said("unchanged", began)) == WORKERS + 1, "the node is back")
    assert {key: fleet.file(key).stat() for key in fleet.workers} == before


def kill_each_worker(fleet: Fleet) -> None:
    began = time.time()
    for worker in fleet.workers.values():
        assert worker.stop(signal.SIGKILL) == -signal.SIGKILL
        worker.start()
    eventually(
        lambda: all(each.said("registered", began) for each in fleet.workers.values()), "all are back"
    )
    assert all(fleet.scheduler.place(fleet.snapshot(key)) == fleet.able(key) for key in fleet.workers)


def kill_the_scheduler(fleet: Fleet) -> None:
    """It has forgotten everybody; each worker comes back when it renews, and not all at once."""
    began = time.time()
    fleet.scheduler.service.stop(signal.SIGKILL)
    fleet.scheduler.start()
    eventually(lambda: all(fleet.puts(began).values()), "all are back")
    assert all(fleet.scheduler.place(fleet.snapshot(key)) == fleet.able(key) for key in fleet.workers)
    first = [min(at) for at in fleet.puts(began).values()]
    assert max(first) - min(first) >= WORKER_SPREAD / 4
    for worker in fleet.workers.values():
        registered = [at for at, _ in worker.said("INFO registered", began)]
        assert all(later - at >= RESYNC for at, later in pairwise(registered))


def stop_the_scheduler_for_a_while(fleet: Fleet) -> None:
    began = time.time()
    assert fleet.scheduler.service.stop(signal.SIGTERM) in {0, -signal.SIGTERM}
    failed = r"WARNING failed, again in ([0-9.]+) s"
    eventually(
        lambda: all(len(each.said(failed, began)) >= 4 for each in fleet.workers.values()), "they try"
    )
    up = time.time()
    fleet.scheduler.start()
    eventually(
        lambda: all(each.said("INFO registered", up) for each in fleet.workers.values()), "all are back"
    )
    assert all(fleet.puts(up).values())
    for worker in fleet.workers.values():
        failures = [(at, float(re.findall(failed, said)[0])) for at, said in worker.said(failed, began)]
        assert [delay for _, delay in failures[:4]] == [RETRY, 2 * RETRY, LONGEST_RETRY, LONGEST_RETRY]
        for (at, delay), (later, _) in pairwise(failures):
            assert later - at >= delay
        recovered = min(at for at, _ in worker.said("INFO registered", up))
        assert recovered - failures[-1][0] >= failures[-1][1]


def leave_only_the_old_worker(fleet: Fleet) -> None:
    """The others end as they should, and sign off."""
    newest = fleet.snapshot(max(young(fleet)))
    for key in young(fleet):
        assert fleet.workers[key].stop(signal.SIGTERM) == 0
    answer = fleet.scheduler.refuse(newest)
    old = fleet.offers("old").default_runtime
    needed, offered = newest.compat_version.features, old.compat_version.features
    assert needed is not None
    assert offered is not None
    missing = list((needed - offered).names)
    assert answer["nearest"] == [{"features": missing, "workers": 1}]
    assert missing[0] in str(answer["text"])


def test_a_node_leaves_alone_what_it_does_not_understand(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    for key, place in zip(("a", "b"), machines()[0], strict=False):
        fleet.add_worker(key, place)
    left = fleet.folders / "left"
    left.mkdir(parents=True)
    (fleet.cluster / "pool.yaml").write_text("{")
    fleet.configure(config("v1", ["v1"]))
    with stopped_at_the_end(fleet.node):
        fleet.node.start()
        eventually(lambda: fleet.node.said("nothing is done until it is right"), "it tells of pool.yaml")
        time.sleep(2 * ORPHAN_AGE)
        assert [path.name for path in fleet.folders.iterdir()] == ["left"]

        workers = {"a": {"pool": "general", "host": "a"}, "b": {"host": "b"}}
        pool = {"pools": {"general": "gvisor"}, "workers": workers}
        replace(fleet.cluster / "pool.yaml", json.dumps(pool))
        eventually(lambda: fleet.file("a").exists() and not left.exists(), "it acts")
        (written,) = fleet.node.said("a: written")
        offered = fleet.offers("a")

        fleet.configure("spec: 5")
        eventually(lambda: fleet.node.said("a: no config is named 'gvisor'"), "it tells of the config")
        fleet.configure(config("v2", ["v1"], ["v2"]))
        eventually(lambda: fleet.node.said("a: .*'v2' cannot be the default"), "it tells of the default")
        assert fleet.offers("a") == offered
        assert fleet.node.said("a: written") == [written]
        assert len(fleet.node.said("b: the pod has no pool label")) == 1
        assert fleet.node.stop(signal.SIGTERM) == 0
    assert [path.name for path in fleet.folders.iterdir()] == ["a"]


WORKER = SandboxRuntime("gvisor", VersionedSandboxCompat.of({"architecture": "amd64", "cpu_features": "3"}))
LINE = dumps_worker("a/b c", WorkerRuntimes(WORKER))
IDENTITY = dumps_identity(WORKER)


@pytest.fixture(
    scope="module", params=[pytest.param((), id=""), pytest.param(("--allow-unknown",), id="allow")]
)
def scheduler(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scheduler]:
    scheduler = Scheduler.at(tmp_path_factory.mktemp("scheduler"), *request.param)
    with stopped_at_the_end(scheduler.service):
        scheduler.start()
        yield scheduler


def test_what_a_scheduler_answers(scheduler: Scheduler) -> None:
    allowed = "--allow-unknown" in scheduler.service.arguments
    ask = scheduler.ask
    nobody = {"workers": 0, "excluded": [], "nearest": []}
    status, answer = ask("POST", "/placements", IDENTITY)
    assert isinstance(answer, dict)
    assert (status, {key: answer[key] for key in nobody}) == (409, nobody)
    assert ask("PUT", "/workers/a%2Fb%20c", LINE) == (204, "")
    assert ask("POST", "/placements", IDENTITY) == (200, {"candidates": ["a/b c"]})
    unknown, _ = ask("POST", "/placements", "null")
    assert unknown == (200 if allowed else 422)
    assert ask("DELETE", "/workers/a%2Fb%20c") == (204, "")
    assert ask("DELETE", "/workers/a%2Fb%20c")[0] == 404
    assert ask("GET", "/placements")[0] == 405
    assert ask("GET", "/nothing")[0] == 404


@pytest.mark.parametrize(
    ("request_line", "body", "status", "fault"),
    [
        pytest.param("POST /placements", "", 400, "$", id="empty"),
        pytest.param("POST /placements", "{", 400, "$", id="not JSON"),
        pytest.param("POST /placements", b"\xff", 400, "$", id="not UTF-8"),
        pytest.param("POST /placements", "[]", 400, "$", id="a list"),
        pytest.param(
            "POST /placements",
            '{"sandboxClass": 5, "compatVersion": {}}',
            400,
            "$.sandboxClass",
            id="a number",
        ),
        pytest.param("POST /placements", '{"a": 1, "a": 1}', 400, "$.a", id="twice"),
        pytest.param(
            "POST /placements",
            IDENTITY.replace('"cpu_features"', '""'),
            400,
            "$.compatVersion.attributes[1].key",
            id="an empty key",
        ),
        pytest.param("PUT /workers/w", LINE, 400, "$.worker", id="another worker"),
        pytest.param("PUT /workers/w", '{"worker": "w"}', 400, "$.defaultRuntime", id="no runtime"),
        pytest.param("PUT /workers/w", b" " * (1 << 20), 400, "$", id="1 MiB"),
        pytest.param("PUT /workers/w", b" " * ((1 << 20) + 1), 413, None, id="over 1 MiB"),
        pytest.param("POST /placements", b" " * ((1 << 20) + 1), 413, None, id="over 1 MiB to place"),
    ],
)
def test_what_a_scheduler_refuses(
    scheduler: Scheduler, request_line: str, body: str | bytes, status: int, fault: str | None
) -> None:
    method, path = request_line.split()
    answered, answer = scheduler.ask(method, path, body)
    assert answered == status
    if fault is not None:
        assert isinstance(answer, dict)
        assert answer["path"] == fault
