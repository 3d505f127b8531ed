"""Every value of the library pickles and copies. The classes are found, so that none can be forgotten."""

import copy
import importlib
import pickle
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import attrs
import pytest
from sqlalchemy import MetaData

import substrate_compat
from substrate_compat.cli.database import Affected, Database, Retirement
from substrate_compat.cli.fleets import Member
from substrate_compat.cli.inputs import Features, Worker
from substrate_compat.cpufeatures import FeatureSet, known_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuid import common_features
from substrate_compat.cpuinfo import parse_cpuinfo
from substrate_compat.identity import (
    GVISOR,
    SandboxRuntime,
)
from substrate_compat.index import WorkerIndex
from substrate_compat.levels import choose_levels
from substrate_compat.match import explain_worker
from substrate_compat.matrix import matrix, worker_of_features
from substrate_compat.partition import partition
from substrate_compat.plan import LeftOut, LeftOutReason, plan_worker_runtimes
from substrate_compat.probe import probe
from substrate_compat.registration import (
    Backoff,
    Caches,
    NodeRules,
    Pod,
    PodState,
    Register,
    Remove,
    Report,
    Source,
    Sync,
    WorkerRules,
    WorkerState,
)
from substrate_compat.sandbox_config import Asset, SandboxConfig, SandboxVersion
from substrate_compat.tables import FleetTables
from substrate_compat.whatif import pins
from substrate_compat.why_none import WhyNone
from substrate_compat.wire.converter import OfferLayout, WorkerLayout

AMD64: Final = Architecture.AMD64
BASIS: Final = FeatureSet.from_names(
    AMD64, ["cmov", "cx8", "fpu", "fxsr", "lm", "mmx", "osxsave", "sse", "sse2", "tsc", "xsave"]
)
MORE: Final = BASIS | FeatureSet.from_names(AMD64, ["avx", "avx2"])
CPU: Final = parse_cpuinfo("processor : 0\nflags : fpu lm\nvendor_id : V\nclflush size : 64\n")
LESS_WORKER, WORKER = worker_of_features(BASIS), worker_of_features(MORE)
RUNTIME: Final = WORKER.default_runtime
COMPAT: Final = RUNTIME.compat_version
ASSET: Final = Asset(AMD64, "gvisor", "https://bucket.example/runsc", "a" * 64)
VERSION: Final = SandboxVersion("v1", True, "pause@sha256:" + "b" * 64, (ASSET,))
CONFIG: Final = SandboxConfig("pool", "gvisor", "v1", (VERSION,))
CHOICE: Final = choose_levels({"a": BASIS, "b": MORE}, 1)
GROUP: Final = CHOICE.groups[0]
VERDICT: Final = explain_worker(LESS_WORKER, RUNTIME)
MATRIX: Final = matrix({"a": LESS_WORKER, "b": WORKER})
SOURCE: Final = Source("gvisor", "1")
POD: Final = Pod("general")


def why_none() -> WhyNone:
    index = WorkerIndex()
    index.put("a", LESS_WORKER)
    why = index.why_none(RUNTIME)
    assert why is not None
    return why


WHY: Final = why_none()

VALUES: Final[Mapping[type[attrs.AttrsInstance], attrs.AttrsInstance]] = {
    type(value): value
    for value in (
        Affected("s1", 2, 1),
        Retirement(1, 0, (Affected("s1", 2, 1),)),
        Member("a", "a.json", WORKER),
        Features(MORE, "mask", ("note",), RUNTIME),
        Worker("a", WORKER),
        MORE,
        known_features(AMD64)[0],
        common_features([{(1, 0): (0, 0, 1, 1)}]),
        CPU,
        GVISOR,
        COMPAT,
        RUNTIME,
        WORKER,
        CHOICE,
        GROUP,
        GROUP.level,
        VERDICT,
        VERDICT.verdicts[0],
        VERDICT.verdicts[0].mismatches[0],
        MATRIX,
        MATRIX.rows[0][0],
        partition([3, 1], [1, 1], 1),
        plan_worker_runtimes(CONFIG, CPU, {"a" * 64: MORE}),
        LeftOut("v2", LeftOutReason.NO_ASSETS, "it has none"),
        probe(GVISOR, CPU, MORE),
        Backoff(1.0, 2.0),
        Caches({"uid": POD}, {"general": "gvisor"}, {"gvisor": "1"}),
        NodeRules(),
        POD,
        PodState(SOURCE),
        Register(WORKER),
        Remove(),
        Report("problem"),
        SOURCE,
        Sync(SOURCE),
        WorkerRules(),
        WorkerState(registered=WORKER),
        ASSET,
        VERSION,
        CONFIG,
        pins({"a": BASIS, "b": MORE})[0],
        WHY,
        WHY.excluded[0],
        WHY.nearest[0],
        OfferLayout(default_runtime={"a": "b"}),
        WorkerLayout(default_runtime={"a": "b"}, worker="a", sandbox_class="gvisor"),
        FleetTables.on(MetaData()),
    )
}

# These hold what belongs to a process: an open connection.
NOT_VALUES: Final[set[type[attrs.AttrsInstance]]] = {Database}


def exported_classes() -> Iterator[type[attrs.AttrsInstance]]:
    package = substrate_compat.__name__
    for module in pkgutil.walk_packages(substrate_compat.__path__, f"{package}."):
        for name, each in vars(importlib.import_module(module.name)).items():
            if isinstance(each, type) and attrs.has(each) and not name.startswith("_"):
                yield each


EXPORTED: Final = sorted(set(exported_classes()), key=lambda each: (each.__module__, each.__name__))


def test_the_classes_are_found() -> None:
    assert {FeatureSet, SandboxRuntime, WorkerState, FleetTables} <= {*EXPORTED}
    assert {*EXPORTED} == {*VALUES} | NOT_VALUES


every_kind: Final = pytest.mark.parametrize(
    "kind", [each for each in EXPORTED if each not in NOT_VALUES], ids=lambda kind: kind.__name__
)


def pickled(value: attrs.AttrsInstance) -> object:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("way", [pickled, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
@every_kind
def test_a_value_pickles_and_copies(
    kind: type[attrs.AttrsInstance], way: Callable[[attrs.AttrsInstance], object]
) -> None:
    value = VALUES[kind]
    again = way(value)
    assert type(again) is kind
    assert repr(again) == repr(value)
    if kind is not FleetTables:  # SQLAlchemy's tables are equal only to themselves
        assert again == value
    for field in attrs.fields(kind):
        if kind is not FleetTables:
            assert getattr(again, field.name) == getattr(value, field.name)


@every_kind
def test_a_value_is_frozen(kind: type[attrs.AttrsInstance]) -> None:
    first, *_ = attrs.fields(kind) or (None,)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(VALUES[kind], "anything" if first is None else first.name, None)
