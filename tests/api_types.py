"""The types that the public functions promise, for the type checkers: nothing here is ever called.

Each line says what a caller gets, as mypy and pyright must both understand it. `test_types.py` sees to it
that no exported name is left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, assert_type

from cattrs import Converter
from sqlalchemy import ColumnElement, Connection, MetaData

from substrate_compat import (
    cpufeatures,
    cpufeatures_table,
    cpuid,
    cpuinfo,
    errors,
    files,
    guest,
    hosts,
    identity,
    index,
    levels,
    match,
    matrix,
    pairs,
    plan,
    probe,
    registration,
    rows,
    runsc,
    runtime_hash,
    sandbox_config,
    strictjson,
    tables,
    whatif,
    why_none,
    wire,
    wording,
)
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture, Feature
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat, WorkerRuntimes


def texts(*_: str) -> None:
    """What a checker may know more exactly: constants that are texts."""


def numbers(*_: int) -> None:
    """Constants that are numbers."""


def of_errors(error: errors.CompatError) -> None:
    assert_type((error.subject, error.problem, error.remedy), tuple[str, str, str])
    assert_type(errors.quoted("a", 5), str)
    assert_type(errors.visible("a"), str)
    assert_type(errors.shortened("a", 5), str)
    numbers(errors.LARGEST_TEXT)
    values: tuple[type[ValueError], ...] = (errors.InputError, errors.ConfigError)
    hosts_or_files: tuple[type[OSError], ...] = (errors.HostError, errors.FileError)
    assert_type(len(values) + len(hosts_or_files), int)
    errors.require_size("a", "b")


def of_features(some: FeatureSet, other: FeatureSet, feature: Feature) -> None:
    architecture = cpufeatures.parse_architecture("amd64")
    assert_type(architecture, Architecture)
    assert_type(cpufeatures_table.AMD64_FEATURES, tuple[Feature, ...])
    assert_type(cpufeatures_table.ARM64_FEATURES, tuple[Feature, ...])
    assert_type(cpufeatures_table.CPUID_REGISTERS, tuple[tuple[int, int, str], ...])
    assert_type((feature.value, feature.name, feature.confirmed), tuple[int, str, bool])
    assert_type(cpufeatures.known_features(architecture), tuple[Feature, ...])
    assert_type(cpufeatures.named_bits(architecture), int)
    mask_bits: int = cpufeatures.MASK_BITS
    assert_type(FeatureSet(architecture, mask_bits), FeatureSet)
    assert_type(FeatureSet.from_names(architecture, {"fpu"}), FeatureSet)
    assert_type(FeatureSet.from_hex(architecture, "1"), FeatureSet)
    assert_type(cpufeatures.encode_cpu_features(["fpu"], architecture), str)
    assert_type(cpufeatures.decode_cpu_features("1", architecture), FeatureSet)
    assert_type((some & other, some | other, some - other), tuple[FeatureSet, FeatureSet, FeatureSet])
    assert_type((some <= other, some < other, "fpu" in some, len(some)), tuple[bool, bool, bool, int])
    assert_type(iter(some), Iterator[str])
    assert_type((some.names, some.hex, some.bits), tuple[tuple[str, ...], str, int])


def of_probing(registers: Mapping[tuple[int, int], cpuid.Registers], query: cpuid.Query) -> None:
    assert_type(query(1, 0), tuple[int, int, int, int])
    assert_type(cpuid.features_from_cpuid(registers), FeatureSet)
    assert_type(cpuid.common_features([registers]), cpuid.CommonFeatures)
    assert_type(cpuid.common_features([registers]).varying, FeatureSet)
    assert_type(cpuid.made_by_32_bit_program(cpuid.features_from_cpuid(registers)), bool)
    assert_type(cpuid.parse_cpuid_dump(""), tuple[dict[tuple[int, int], cpuid.Registers], ...])
    assert_type(cpuid.read_cpuid(), dict[tuple[int, int], cpuid.Registers])
    assert_type(cpuid.read_cpuid([cpuid.execute_cpuid]), dict[tuple[int, int], cpuid.Registers])
    assert_type(cpuid.read_every_cpuid(), tuple[dict[tuple[int, int], cpuid.Registers], ...])
    assert_type(cpuid.execute_cpuid(), cpuid.Query)
    assert_type(cpuid.query_cpuid_device(Path("/dev/cpu/1/cpuid")), cpuid.Query)
    info = cpuinfo.parse_cpuinfo("", Architecture.AMD64)
    assert_type(info, cpuinfo.CpuInfo)
    assert_type((info.vendor, info.cache_line, info.processors), tuple[str | None, int | None, int])
    assert_type(info.features, FeatureSet | None)
    assert_type(info.flags, frozenset[str])
    assert_type(cpuinfo.read_cpuinfo(Path("/proc/cpuinfo")), cpuinfo.CpuInfo)
    assert_type(cpuinfo.cpu_flags_hash(info.flags), str)
    assert_type(runsc.parse_cpu_features("", Architecture.AMD64), FeatureSet)
    assert_type(runsc.run_cpu_features("runsc", Architecture.AMD64, timeout=1), FeatureSet)
    assert_type(runsc.run_listing(Path("runsc")), str)
    assert_type(runsc.listed_names(""), Iterator[str])
    assert_type(runsc.unknown_names({"fpu"}, Architecture.AMD64), tuple[str, ...])
    probed = probe.probe(identity.GVISOR, info, None, runtime_hash=None, name="")
    assert_type(probed, probe.Probed)
    assert_type(probed.runtime, SandboxRuntime)
    assert_type(probed.left_out, Mapping[str, str])
    assert_type(probed.notes, tuple[str, ...])
    assert_type(probe.ATTRIBUTE_KEYS, tuple[str, ...])


def of_identities(compat: VersionedSandboxCompat, runtime: SandboxRuntime, worker: WorkerRuntimes) -> None:
    assert_type(VersionedSandboxCompat.of({"a": "b"}, schema_version="v1"), VersionedSandboxCompat)
    assert_type(compat.get("a"), str | None)
    assert_type(compat.attributes, tuple[tuple[str, str], ...])
    assert_type(compat.features, FeatureSet | None)
    assert_type(SandboxRuntime("gvisor", compat, name="").compat_version, VersionedSandboxCompat)
    assert_type(WorkerRuntimes(runtime, (runtime,)).restorable_runtimes, tuple[SandboxRuntime, ...])
    assert_type(list(worker), list[SandboxRuntime])
    profiles: Iterable[identity.Profile] = (
        identity.GVISOR,
        identity.GVISOR_CACHE_LINE,
        identity.MICROVM,
        *identity.PROFILES,
    )
    assert_type([profile.keys for profile in profiles], list[tuple[str, ...]])
    texts(identity.ARCHITECTURE, identity.CPU_CACHE_LINE, identity.CPU_FEATURES, identity.CPU_FLAGS_HASH)
    texts(identity.CPU_MODEL, identity.CPU_VENDOR, identity.SANDBOX_RUNTIME_HASH, identity.SCHEMA_VERSION)
    numbers(identity.MATCH_BITS, identity.MAX_RESTORABLE_RUNTIMES, identity.MAX_VALUE)
    assert_type(identity.is_unicode("a"), bool)
    assert_type(identity.runtime_paths(1), Iterator[str])
    assert_type(runtime_hash.sandbox_runtime_hash({"gvisor": "a"}, "pause"), str)
    assert_type(runtime_hash.image_digest("pause"), str)
    assert_type(runtime_hash.asset_digest("a", "b"), str)


def of_matching(runtime: SandboxRuntime, worker: WorkerRuntimes, workers: index.WorkerIndex) -> None:
    assert_type(match.matches(None, runtime), bool)
    assert_type(match.matches_compat(runtime.compat_version, None), bool)
    verdict = match.explain(runtime, None)
    assert_type(verdict, match.Verdict)
    assert_type((verdict.compatible, verdict.certain), tuple[bool, bool])
    assert_type(verdict.mismatches, tuple[match.Mismatch, ...])
    assert_type([each.reason for each in verdict.mismatches], list[match.Reason])
    texts(match.Unchecked.IDENTITY)
    assert_type(match.explain_worker(worker, runtime), match.WorkerVerdict)
    assert_type(match.explain_worker(worker, None).runtime, SandboxRuntime | None)
    assert_type(match.stamp(runtime, level=None, parent=runtime), SandboxRuntime)
    view = matrix.matrix({"a": worker})
    assert_type(view, matrix.Matrix)
    assert_type(view.rows, tuple[tuple[matrix.Cell, ...], ...])
    assert_type(matrix.worker_of_features(FeatureSet(Architecture.AMD64, 0)), WorkerRuntimes)
    assert_type(workers.candidates(None), Iterator[str])
    assert_type((workers.count(runtime), len(workers), "a" in workers), tuple[int, int, bool])
    why = workers.why_none(runtime)
    assert_type(why, why_none.WhyNone | None)
    if why is not None:
        assert_type(why.excluded, tuple[why_none.Excluded, ...])
        assert_type(why.nearest, tuple[why_none.NearMiss, ...])
    assert_type(pairs.restore_pairs({"a": runtime}, {"b": runtime}), Iterator[tuple[str, str]])
    assert_type(wording.describe(verdict), str)
    assert_type(wording.describe_unchecked("a"), str)
    assert_type(wording.few(["a"]), str)
    assert_type(wording.runtime_name(0), str)


def of_levels(some: FeatureSet, fleet: Mapping[str, FeatureSet]) -> None:
    assert_type((levels.offered(some), levels.claimed(some)), tuple[FeatureSet, FeatureSet])
    level = levels.common_level(fleet)
    assert_type(level, levels.Level)
    assert_type(level.dropped, Mapping[str, tuple[str, ...]])
    assert_type(levels.levelled(some, some), FeatureSet)
    assert_type((levels.annotation(some), levels.level_name(some)), tuple[str, str])
    texts(levels.ANNOTATION, guest.XSAVE_NOTE)
    assert_type(levels.guest_flags(some), frozenset[str])
    assert_type(levels.beyond_level(["a"], some), tuple[str, ...])
    assert_type(levels.unannounced(some), FeatureSet)
    choice = levels.choose_levels(fleet, 2, weights=None)
    assert_type(choice, levels.LevelChoice)
    assert_type(choice.groups, tuple[levels.LevelGroup, ...])
    assert_type((choice.loss, choice.gains), tuple[int, tuple[int, ...]])
    assert_type(whatif.pins(fleet), tuple[whatif.Pin, ...])
    assert_type(whatif.cost_of_adding(fleet, fleet), FeatureSet)
    assert_type(hosts.equal_hosts(fleet), dict[FeatureSet, tuple[str, ...]])
    assert_type(hosts.named(fleet), str)
    guest.require_amd64(some)
    hosts.require_basis(some)


def of_plans(config: plan.SandboxConfig, version: plan.SandboxVersion, asset: plan.Asset) -> None:
    assert_type(config.versions, tuple[sandbox_config.SandboxVersion, ...])
    assert_type(version.assets, tuple[sandbox_config.Asset, ...])
    assert_type(asset.architecture, Architecture)
    assert_type(version.runtime_hash(Architecture.AMD64), str)
    planned = plan.plan_worker_runtimes(config, cpuinfo.read_cpuinfo(), {})
    assert_type(planned, plan.Plan)
    assert_type(planned.runtimes, WorkerRuntimes)
    assert_type(planned.left_out, tuple[plan.LeftOut, ...])
    assert_type([each.reason for each in planned.left_out], list[plan.LeftOutReason])
    assert_type(planned.versions, Mapping[str, sandbox_config.SandboxVersion])
    texts(plan.RUNSC_ASSET)


def of_texts(runtime: SandboxRuntime, worker: WorkerRuntimes, path: Path) -> None:
    converter = wire.make_converter()
    assert_type(converter, Converter)
    assert_type(wire.dumps_identity(runtime, converter=None), str)
    assert_type(wire.loads_identity(b"", converter), SandboxRuntime)
    assert_type(wire.loads_config("", converter), sandbox_config.SandboxConfig)
    assert_type(wire.config_from_mapping({}, converter), sandbox_config.SandboxConfig)
    assert_type(wire.dumps_runtimes(worker, converter), str)
    assert_type(wire.loads_runtimes(b"", "gvisor", converter), WorkerRuntimes)
    assert_type(wire.read_runtimes(path, "gvisor"), WorkerRuntimes)
    assert_type(wire.write_runtimes("path", worker), bool)
    assert_type(wire.dumps_worker("a", worker), str)
    assert_type(wire.loads_worker("", converter), tuple[str, WorkerRuntimes])
    assert_type(strictjson.parse_json(b""), object)
    assert_type(strictjson.canonical_json({}), str)
    assert_type(strictjson.json_line({}), str)
    assert_type(strictjson.key_path("a"), str)
    numbers(
        strictjson.MAX_BYTES,
        strictjson.MAX_CONTAINERS,
        strictjson.MAX_DEPTH,
        strictjson.MAX_PATH,
        strictjson.MAX_VALUES,
    )
    numbers(levels.MOST_SETS, rows.MAX_ID)
    assert_type(files.read_at_most(path, 1), bytes)
    assert_type(files.write_whole(path, b""), bool)


def of_tables(connection: Connection, runtime: SandboxRuntime, worker: WorkerRuntimes) -> None:
    fleet = tables.FleetTables.on(MetaData())
    assert_type(fleet, tables.FleetTables)
    tables.prepare(connection, fleet)
    tables.put_workers(connection, fleet, {"a": worker})
    tables.put_snapshots(connection, fleet, {"a": runtime})
    tables.remove_workers(connection, fleet, ["a"])
    tables.remove_snapshots(connection, fleet, ["a"])
    tables.remove_unused_runtimes(connection, fleet)
    tables.refresh_restore_pairs(connection, fleet)
    assert_type(tables.restores(fleet, None), ColumnElement[bool])
    assert_type(tables.read_runtimes(connection, fleet), dict[str, SandboxRuntime])
    found = connection.execute(tables.candidates(fleet, runtime, limit=1, dialect="sqlite")).tuples().all()
    assert_type([worker_id for worker_id, _ in found], list[str])
    counts = connection.execute(tables.stranded(fleet, ["a"])).tuples().all()
    assert_type([snapshot_id for snapshot_id, _, _ in counts], list[str])
    error: errors.InputError = tables.UnstorableError("a", "b")
    assert_type(error.subject, str)
    assert_type(rows.identity_key(runtime), str)
    assert_type(rows.mask_words(1), tuple[int, ...])
    assert_type(rows.WORDS, tuple[str, ...])
    row: dict[str, rows.Cell] = rows.runtime_row(runtime)
    assert_type(rows.runtime_from_rows(row, {}), SandboxRuntime)
    assert_type(rows.attribute_rows(runtime), list[dict[str, rows.Cell]])
    assert_type(rows.worker_rows("a", worker), list[dict[str, rows.Cell]])
    assert_type(rows.snapshot_row("a", runtime), dict[str, rows.Cell])


def of_registration(worker: WorkerRuntimes, source: registration.Source) -> None:
    rules = registration.NodeRules(backoff=registration.Backoff(1.0, 2.0))
    caches = registration.Caches({"a": registration.Pod("general")}, {}, {})
    state, action = rules.decide("a", None, caches, None, now=0.0, draw=0.0)
    assert_type(state, registration.PodState | None)
    assert_type(action, registration.Sync | registration.Remove | registration.Report | None)
    assert_type(rules.backoff.delay(1), float)
    assert_type(registration.NEVER, float)
    assert_type(source.revision, str)
    after, to_do = registration.WorkerRules().decide(registration.WorkerState(), worker, now=0.0)
    assert_type(after, registration.WorkerState)
    assert_type(to_do, registration.Register | registration.Report | None)


def of_callables() -> None:
    """What a caller passes on as a function."""
    parse: Callable[[str], cpuinfo.CpuInfo] = cpuinfo.parse_cpuinfo
    decide: Callable[[SandboxRuntime | None, SandboxRuntime | None], bool] = match.matches
    architecture: Literal[Architecture.AMD64] = Architecture.AMD64
    assert_type(parse(architecture), cpuinfo.CpuInfo)
    assert_type(decide(None, None), bool)
