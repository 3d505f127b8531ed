"""Targets of what is JSON or YAML: identities, runtimes files, lines of workers, configs."""

import json
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Final

from fuzzing.target import DATA, Target, accepted, fresh_file, require, text_of
from substrate_compat.cli.configs import read_config
from substrate_compat.cli.inputs import Worker, names_workers, parse_worker, parse_workers, read_snapshot
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuinfo import parse_cpuinfo
from substrate_compat.identity import (
    PROFILES,
    SandboxRuntime,
    VersionedSandboxCompat,
    WorkerRuntimes,
    is_unicode,
)
from substrate_compat.match import explain, explain_worker, matches, stamp
from substrate_compat.plan import plan_worker_runtimes
from substrate_compat.rows import (
    Cell,
    attribute_rows,
    identity_key,
    runtime_from_rows,
    runtime_row,
    snapshot_row,
    worker_rows,
)
from substrate_compat.sandbox_config import SandboxConfig
from substrate_compat.strictjson import canonical_json, json_line, key_path, parse_json
from substrate_compat.wire import (
    config_from_mapping,
    dumps_identity,
    dumps_runtimes,
    dumps_worker,
    loads_config,
    loads_identity,
    loads_runtimes,
    loads_worker,
    make_converter,
    read_runtimes,
    write_runtimes,
)
from substrate_compat.wording import describe

__all__ = ["TARGETS", "check_identity", "workers_of"]

_CONVERTER: Final = make_converter()
_AMD64_CPU: Final = parse_cpuinfo("processor:0\nvendor_id:a\nmodel name:b\nflags:lm fpu\nclflush size:64\n")
_ARM64_CPU: Final = parse_cpuinfo("processor:0\nFeatures:fp asimd\n")
_A_SET: Final = FeatureSet.from_names(Architecture.AMD64, ["fpu", "osxsave", "xsave"])
_DIGEST: Final = "sha256:" + "a" * 64
_CLASSES: Final = tuple(profile.sandbox_class for profile in PROFILES)


def _json(data: bytes) -> None:
    value = accepted(parse_json, data)
    require(accepted(parse_json, text_of(data)) == value, "text is read as its bytes")
    if isinstance(value, dict | list):
        require(value == json.loads(data, parse_int=float), "what is read is what JSON says")
        # A number too large for JSON is infinite, and halves of surrogate pairs can be escaped only.
        if is_unicode(shown := canonical_json(value)) and "Infinity" not in shown:
            require(accepted(parse_json, shown) in (value, None), "read of write")
            require("\n" not in json_line(value)[:-1], "a line is one line")
    if isinstance(value, dict):
        require(
            all(is_unicode(key_path(key)) or "\n" not in key_path(key) for key in value),
            "a path is one line",
        )


def check_identity(runtime: SandboxRuntime) -> None:
    """Check the laws of one identity."""
    text = dumps_identity(runtime, _CONVERTER)
    read = loads_identity(text, _CONVERTER)
    require((read, read.name) == (runtime, runtime.name), "read of write")
    require(dumps_identity(read, _CONVERTER) == text, "one canonical text")
    verdict = explain(runtime, runtime)
    require(verdict.compatible == matches(runtime, runtime), "explained as matched")
    describe(verdict)
    attributes = {str(row["key"]): str(row["value"]) for row in attribute_rows(runtime)}
    back = runtime_from_rows(runtime_row(runtime), attributes)
    require(
        matches(back, runtime) == matches(runtime, back) == verdict.compatible, "rows match as they did"
    )
    stamped = accepted(stamp, runtime)
    accepted(stamp, runtime, _A_SET)
    if stamped is not None:
        accepted(stamp, runtime, None, stamped)
    accepted(runtime.compat_version.get, "cpu_model")


def _identity(data: bytes) -> None:
    runtime = accepted(loads_identity, data, _CONVERTER)
    if runtime is not None:
        check_identity(runtime)
        require(len(identity_key(runtime)) == 64, "a key has 64 digits")


def _snapshot_file(data: bytes) -> None:
    snapshot = accepted(read_snapshot, str(fresh_file(data)))
    require(snapshot == accepted(loads_identity, data, _CONVERTER), "a file is read as its bytes")


def _attributes(data: bytes) -> None:
    head, *lines = text_of(data).split("\n")
    sandbox_class, schema, name = f"{head},,".split(",", 2)
    pairs = tuple(line.partition("=")[::2] for line in lines)
    compat = accepted(VersionedSandboxCompat, schema, tuple((key, value) for key, value in pairs))
    accepted(VersionedSandboxCompat.of, dict(pairs), schema)
    if compat is not None:
        runtime = accepted(SandboxRuntime, sandbox_class, compat, schema)
        if runtime is not None:
            check_identity(runtime)
            accepted(snapshot_row, name, runtime)
            accepted(dumps_worker, name, WorkerRuntimes(runtime), _CONVERTER)
            accepted(worker_rows, name, WorkerRuntimes(runtime))


def _table_row(data: bytes) -> None:
    value = accepted(parse_json, data)
    if not isinstance(value, dict):
        return
    row: dict[str, Cell] = dict(
        runtime_row(SandboxRuntime("gvisor", VersionedSandboxCompat.of({"a": "b"})))
    )
    attributes = {}
    for key, cell in value.items():
        if key in row:
            whole = isinstance(cell, float) and cell.is_integer()
            row[key] = int(cell) if isinstance(cell, float) and whole else str(cell)
        else:
            attributes[key] = str(cell)
    runtime = accepted(runtime_from_rows, row, attributes)
    if runtime is not None:
        check_identity(runtime)


def _runtimes(data: bytes) -> None:
    for sandbox_class in _CLASSES:
        runtimes = accepted(loads_runtimes, data, sandbox_class, _CONVERTER)
        if runtimes is None:
            continue
        text = dumps_runtimes(runtimes, _CONVERTER)
        require(loads_runtimes(text, sandbox_class, _CONVERTER) == runtimes, "read of write")
        require(dumps_runtimes(runtimes, _CONVERTER) == text, "one canonical text")
        for snapshot in runtimes:
            verdict = explain_worker(runtimes, snapshot)
            require(verdict.runtime is not None, "a worker restores its own")
            describe(verdict)


def _worker_file(data: bytes) -> None:
    for sandbox_class in (None, *_CLASSES):
        accepted(parse_worker, data, "-", sandbox_class)


def _runtimes_file(data: bytes) -> None:
    path = fresh_file(data)
    runtimes = accepted(read_runtimes, path, "gvisor", _CONVERTER)
    if runtimes is not None:
        write_runtimes(path, runtimes, _CONVERTER)
        require(read_runtimes(path, "gvisor", _CONVERTER) == runtimes, "read of write")
        require(not write_runtimes(path, runtimes, _CONVERTER), "what is there is not written again")


def workers_of(data: bytes, most: int = 12) -> dict[str, WorkerRuntimes]:
    """The first few workers of the lines that are not refused, with one converter for all."""
    read = (accepted(loads_worker, line, _CONVERTER) for line in data.split(b"\n"))
    return dict(islice((worker for worker in read if worker is not None), most))


def _worker(data: bytes) -> None:
    read = accepted(loads_worker, data, _CONVERTER)
    if read is not None:
        line = dumps_worker(*read, _CONVERTER)
        require(loads_worker(line, _CONVERTER) == read, "read of write")


def _read_all(data: bytes) -> list[Worker]:
    return [*parse_workers(data, "lines")]


def _lines(data: bytes) -> None:
    names_workers(data)
    read = accepted(_read_all, data)
    if read is not None:
        written = "".join(dumps_worker(each.name, each.runtimes, _CONVERTER) for each in read).encode()
        require(_read_all(written) == read, "read of write")


@cache
def _listings() -> dict[str, FeatureSet]:
    return {_DIGEST: _A_SET, "b" * 64: _A_SET, "c" * 64: FeatureSet(Architecture.AMD64, 1)}


def _check_config(config: SandboxConfig) -> None:
    for version in config.versions:
        for architecture in version.architectures:
            accepted(version.runtime_hash, architecture)
    for cpu, features in ((_AMD64_CPU, _listings()), (_ARM64_CPU, {})):
        plan = accepted(plan_worker_runtimes, config, cpu, features)
        if plan is not None:
            describe(plan)
            text = dumps_runtimes(plan.runtimes, _CONVERTER)
            require(
                loads_runtimes(text, config.sandbox_class, _CONVERTER) == plan.runtimes, "a plan is read"
            )


def _config(data: bytes) -> None:
    config = accepted(loads_config, data, _CONVERTER)
    mapping = accepted(parse_json, data)
    require(accepted(config_from_mapping, mapping, _CONVERTER) == config, "text is read as its value")
    if config is not None:
        _check_config(config)


def _config_file(data: bytes) -> None:
    path = fresh_file(data)
    config = accepted(read_config, str(path))
    if config is not None:
        _check_config(config)


def _plan_features(data: bytes) -> None:
    names = text_of(data).split("\n")
    config = loads_config(_CONFIG, _CONVERTER)
    plan = accepted(plan_worker_runtimes, config, _AMD64_CPU, dict.fromkeys(names, _A_SET))
    if plan is not None:
        describe(plan)


_ASSETS: Final = {"amd64": {"gvisor": {"url": "https://b.example/runsc", "sha256": "a" * 64}}, "arm64": {}}
_PAUSE: Final = "registry.example/pause:3.10@sha256:" + "b" * 64
_CONFIG: Final = json.dumps(
    {
        "kind": "SandboxConfig",
        "metadata": {"name": "pool"},
        "spec": {
            "sandboxClass": "gvisor",
            "defaultVersion": "v2",
            "versions": [
                {"name": "v2", "state": "Enabled", "pauseImage": _PAUSE, "assets": _ASSETS},
                {"name": "v1", "state": "Disabled", "pauseImage": _PAUSE, "assets": _ASSETS},
            ],
        },
    }
)
_OLDER_CONFIG: Final = json.dumps(
    {
        "metadata": {"name": "pool"},
        "spec": {"sandboxClass": "microvm", "pauseImage": _PAUSE, "assets": _ASSETS},
    }
)


def _attributes_seen() -> Iterator[dict[str, str]]:
    rows: list[dict[str, str]] = json.loads((DATA / "gvisor_hosts.json").read_text())["hosts"]
    for row in rows[::20]:
        features = FeatureSet.from_names(Architecture.AMD64, row["features"].split(","))
        yield {
            "architecture": "amd64",
            "cpu_features": features.hex,
            "sandbox_runtime_hash": _DIGEST,
            "cpu_cache_line": "64",
        }
    yield {"architecture": "arm64", "cpu_features": "fb", "cpu_model": "0xd0c r3p1", "cpu_vendor": "0x41"}


def _identities() -> Iterator[bytes]:
    for attributes in _attributes_seen():
        runtime = SandboxRuntime("gvisor", VersionedSandboxCompat.of(attributes), "v1")
        yield dumps_identity(runtime, _CONVERTER).encode()


def _offers() -> Iterator[WorkerRuntimes]:
    runtimes = [SandboxRuntime("gvisor", VersionedSandboxCompat.of(each)) for each in _attributes_seen()]
    for number, runtime in enumerate(runtimes):
        yield WorkerRuntimes(runtime, tuple(runtimes[:number]))


def _worker_lines() -> Iterator[bytes]:
    return (dumps_worker(f"w{number}", each, _CONVERTER).encode() for number, each in enumerate(_offers()))


TARGETS: Final = (
    Target("json", _json, lambda: (*_identities(), _CONFIG.encode())),
    Target("identity", _identity, _identities),
    Target("snapshot_file", _snapshot_file, _identities),
    Target("attributes", _attributes),
    Target("table_row", _table_row),
    Target(
        "runtimes", _runtimes, lambda: (dumps_runtimes(each, _CONVERTER).encode() for each in _offers())
    ),
    Target("runtimes_file", _runtimes_file, lambda: [dumps_runtimes(next(_offers()), _CONVERTER).encode()]),
    Target("worker", _worker, _worker_lines),
    Target("lines", _lines, lambda: [b"".join(_worker_lines())]),
    Target("worker_file", _worker_file, lambda: (*_identities(), dumps_runtimes(next(_offers())).encode())),
    Target("config", _config, lambda: (_CONFIG.encode(), _OLDER_CONFIG.encode())),
    Target("config_file", _config_file, lambda: (_CONFIG.encode(), _OLDER_CONFIG.encode())),
    Target("plan_features", _plan_features),
)
