"""The matrix says for each pair what `explain_worker` says."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import InputError
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat, WorkerRuntimes
from substrate_compat.match import Reason, explain_worker, stamp
from substrate_compat.matrix import Cell, matrix, worker_of_features
from vectors import amd64, demo_hosts, real_restores


def gvisor(**values: str) -> SandboxRuntime:
    return SandboxRuntime("gvisor", VersionedSandboxCompat.of({"architecture": "amd64", **values}))


OLD = gvisor(cpu_features=amd64("osxsave").hex, sandbox_runtime_hash="1")
NEW = gvisor(cpu_features=amd64("osxsave,avx2").hex, sandbox_runtime_hash="2")
MICROVM = SandboxRuntime("microvm", VersionedSandboxCompat.of({"cpu_model": "m"}))

workers = st.builds(
    lambda runtimes: WorkerRuntimes(runtimes[0], tuple(runtimes[1:])),
    st.lists(
        st.builds(
            lambda names, runtime_hash: gvisor(
                cpu_features=FeatureSet.from_names(Architecture.AMD64, names).hex,
                sandbox_runtime_hash=runtime_hash,
            ),
            st.frozensets(st.sampled_from(["osxsave", "xsave", "avx", "avx2"])),
            st.sampled_from("12"),
        ),
        min_size=1,
        max_size=3,
        unique=True,
    ),
)


def test_no_worker_is_refused() -> None:
    with pytest.raises(InputError, match="no worker"):
        matrix({})


def test_a_worker_that_can_take_no_snapshot_is_named() -> None:
    unreadable = WorkerRuntimes(gvisor(cpu_features="zz"))
    with pytest.raises(InputError, match="worker 'b': its cpu_features are unreadable"):
        matrix({"a": WorkerRuntimes(OLD), "b": unreadable})


def test_a_cell_has_the_reasons_of_the_runtime_that_comes_nearest() -> None:
    view = matrix(
        {"old": WorkerRuntimes(OLD), "both": WorkerRuntimes(NEW, (OLD,)), "vm": WorkerRuntimes(MICROVM)}
    )
    (_, accepted, no_class), (missing, _, _), _ = view.rows
    assert accepted == Cell(())
    assert [each.reason for each in missing.mismatches] == [Reason.DIFFERENT_VALUE, Reason.MISSING_FEATURES]
    assert missing.missing == ("avx2",)
    assert no_class.mismatches[0].reason is Reason.SANDBOX_CLASS
    assert no_class.missing == ()
    # The worker `both` lacks nothing under its default and has another hash there.
    nearest = matrix(
        {
            "both": WorkerRuntimes(NEW, (OLD,)),
            "newer": WorkerRuntimes(
                gvisor(cpu_features=amd64("osxsave,avx2").hex, sandbox_runtime_hash="1")
            ),
        }
    ).rows[1][0]
    assert [each.key for each in nearest.mismatches] == ["sandbox_runtime_hash"]


def test_a_machine_without_usable_xsave_does_not_restore_its_own_snapshot() -> None:
    view = matrix({"qemu64": worker_of_features(amd64("fpu,xsave"))})
    assert view.rows[0][0].missing == ("xsave",)
    assert (view.accepted, view.workers) == (0, 1)


def test_what_was_not_recorded_is_named() -> None:
    assert matrix({"a": worker_of_features(amd64("osxsave"))}).unchecked == (
        "cpu_cache_line",
        "sandbox_runtime_hash",
    )


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.text(string.ascii_lowercase, min_size=1, max_size=2), workers, min_size=1, max_size=5
    )
)
def test_the_matrix_is_what_explain_worker_says_of_each_pair(fleet: dict[str, WorkerRuntimes]) -> None:
    view = matrix(fleet)
    place = {name: n for n, names in enumerate(view.groups) for name in names}
    assert place.keys() == fleet.keys()
    assert len({fleet[names[0]] for names in view.groups}) == len(view.groups)
    accepted = 0
    for taken_on, source in fleet.items():
        for name, worker in fleet.items():
            verdict = explain_worker(worker, stamp(source.default_runtime))
            cell = view.rows[place[taken_on]][place[name]]
            assert cell.compatible == verdict.compatible
            assert cell.mismatches in [each.mismatches for each in verdict.verdicts]
            accepted += cell.compatible
            assert worker == fleet[view.groups[place[name]][0]]
    assert view.accepted == accepted
    assert view.workers == len(fleet)


def test_the_matrix_of_emulated_machines_is_what_gvisor_did_and_named() -> None:
    data = real_restores()
    sets = {machine.model: machine.features for machine in data.machines}
    view = matrix({name: worker_of_features(features) for name, features in sets.items()})
    place = {name: n for n, names in enumerate(view.groups) for name in names}
    compared = 0
    for row in data.restores:
        if "osxsave" in sets[row.snapshot] and "osxsave" in sets[row.worker]:
            cell = view.rows[place[row.snapshot]][place[row.worker]]
            assert (cell.compatible, cell.missing) == (row.restored, row.missing)
            compared += 1
    assert compared == 256


def test_the_demo_fleet() -> None:
    view = matrix({host.id: worker_of_features(host.features) for host in demo_hosts().hosts})
    assert (view.workers, len(view.groups)) == (8, 8)
    assert view.accepted == 17
