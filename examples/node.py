"""A node: writes for each of its workers what it offers.

    python -m examples.node --cluster FOLDER --workers FOLDER

The cluster's folder stands for the API server:

    pool.yaml                which config a pool has, and which workers are on this node
        pools: {general: gvisor}
        workers: {worker-1: {pool: general, host: epyc}}
    configs/*.yaml           `SandboxConfig` objects, as `kubectl get -o yaml` prints them
    hosts/epyc/cpuinfo       what the host's /proc/cpuinfo says; on a real node, that file itself
    hosts/epyc/HEX.features  what `runsc cpu-features` prints there, HEX being the SHA-256 of that runsc

Each worker's folder gets a `sandbox-runtimes.json`.
"""

import argparse
import hashlib
import logging
import random
import re
import shutil
import time
from collections.abc import Sequence
from itertools import filterfalse
from pathlib import Path

import attrs
import yaml
from cattrs import Converter

from examples.watching import changes, log_to_stderr, stop_on_sigterm
from substrate_compat.errors import CompatError, ConfigError, InputError
from substrate_compat.plan import SandboxConfig, plan_worker_runtimes
from substrate_compat.probe import parse_cpu_features, read_cpuinfo
from substrate_compat.registration import (
    NEVER,
    Caches,
    NodeRules,
    Pod,
    PodState,
    Remove,
    Report,
    Source,
    Sync,
)
from substrate_compat.wire import config_from_mapping, make_converter, write_runtimes
from substrate_compat.wire.strict import structured
from substrate_compat.wording import describe

_is_folder_name = re.compile(r"[0-9A-Za-z][0-9A-Za-z.-]{0,252}").fullmatch


@attrs.frozen
class Worker:
    """A worker of `pool.yaml`."""

    host: str
    pool: str | None = None


@attrs.frozen
class Pools:
    """What `pool.yaml` says."""

    pools: dict[str, str]
    workers: dict[str, Worker]


class Cluster:
    """What the folder says, read again by `read`; a part that cannot be understood is logged."""

    def __init__(self, folder: Path, log: logging.Logger) -> None:
        self.folder = folder
        self.log = log
        self.converter: Converter = make_converter()
        self.workers: dict[str, Worker] = {}
        self.configs: dict[str, SandboxConfig] = {}

    def read(self) -> Caches:
        try:
            text = (self.folder / "pool.yaml").read_text()
            pools = structured(yaml.safe_load(text), Pools, self.converter)
            for key in filterfalse(_is_folder_name, pools.workers):
                raise InputError(f"$.workers[{key!a}]", "not fit for the name of a folder")
        except (OSError, ValueError, yaml.YAMLError) as error:
            self.log.warning("pool.yaml: nothing is done until it is right: %s", one_line(error))
            return Caches({}, {}, {}, synced=False)
        self.workers = pools.workers
        self.configs = {}
        for path in sorted((self.folder / "configs").glob("*.yaml")):
            try:
                config = config_from_mapping(yaml.safe_load(path.read_text()), self.converter)
            except (OSError, ValueError, yaml.YAMLError) as error:
                self.log.warning("%s: %s", path.name, one_line(error))
            else:
                if self.configs.setdefault(config.name, config) is not config:
                    self.log.warning("%s: ignored, another file has %a", path.name, config.name)
        return Caches(
            {key: Pod(worker.pool) for key, worker in pools.workers.items()},
            pools.pools,
            {name: hashlib.sha256(repr(each).encode()).hexdigest() for name, each in self.configs.items()},
        )


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())


class Node:
    """The workers' folders, and the state of each."""

    def __init__(self, cluster: Cluster, folder: Path, rules: NodeRules, log: logging.Logger) -> None:
        self.cluster = cluster
        self.folder = folder
        self.rules = rules
        self.log = log
        self.states: dict[str, PodState] = {}

    @property
    def due(self) -> float:
        return min((state.due for state in self.states.values()), default=NEVER)

    def act(self, caches: Caches) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        changed_at = {path.name: path.stat().st_mtime for path in self.folder.iterdir() if path.is_dir()}
        for key in sorted({*caches.pods, *changed_at, *self.states}):
            age = max(time.time() - changed_at[key], 0.0) if key in changed_at else None
            now, draw = time.monotonic(), random.random()
            state, action = self.rules.decide(
                key, self.states.pop(key, None), caches, age, now=now, draw=draw
            )
            if isinstance(action, Report):
                self.log.warning("%s: %s", key, action.problem)
            elif action is not None and state is not None:
                state = self.carry_out(key, state, action)
            if state is not None:
                self.states[key] = state

    def carry_out(self, key: str, state: PodState, action: Sync | Remove) -> PodState | None:
        try:
            if isinstance(action, Sync):
                self.sync(key, action.source)
            else:
                shutil.rmtree(self.folder / key)
                self.log.info("%s: folder removed", key)
        except ConfigError as error:
            self.log.warning("%s: %s", key, error)
        except (CompatError, OSError) as error:
            state = self.rules.failed(state, now=time.monotonic())
            self.log.warning("%s: %s (failure %d)", key, error, state.failures)
            return state
        return self.rules.done(state)

    def sync(self, key: str, source: Source) -> None:
        host = self.cluster.folder / "hosts" / self.cluster.workers[key].host
        cpu = read_cpuinfo(host / "cpuinfo")
        features = {
            path.stem: parse_cpu_features(path.read_text(), cpu.architecture)
            for path in host.glob("*.features")
        }
        plan = plan_worker_runtimes(self.cluster.configs[source.config], cpu, features)
        (self.folder / key).mkdir(exist_ok=True)
        written = write_runtimes(
            self.folder / key / "sandbox-runtimes.json", plan.runtimes, self.cluster.converter
        )
        self.log.info("%s: %s", key, "written" if written else "unchanged")
        if written and plan.left_out:
            self.log.info("%s: %s", key, describe(plan))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cluster", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--workers", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--spread", type=float, default=30.0, help="seconds")
    parser.add_argument("--settle", type=float, default=1.0, help="seconds")
    parser.add_argument("--orphan-age", type=float, default=60.0, help="seconds")
    options = parser.parse_args(arguments)
    log = log_to_stderr("node")
    cluster = Cluster(options.cluster, log)
    node = Node(
        cluster, options.workers, NodeRules(options.settle, options.spread, options.orphan_age), log
    )
    caches: Caches | None = None
    for changed in changes(options.cluster, 5.0, stop_on_sigterm()):
        if changed or caches is None:
            caches = cluster.read()
            node.act(caches)
        elif time.monotonic() >= node.due:
            node.act(caches)


if __name__ == "__main__":
    main()
