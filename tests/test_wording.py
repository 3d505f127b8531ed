"""The words for a person: what each value says, and that its direction and names are in it."""

import pytest
from hypothesis import given

from strategies import sandbox_runtimes, worker_runtimes
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat, WorkerRuntimes
from substrate_compat.levels import Level, LevelChoice, LevelGroup, common_level, level_name
from substrate_compat.match import Mismatch, Reason, Unchecked, Verdict, explain_worker
from substrate_compat.whatif import pins
from substrate_compat.why_none import Excluded, NearMiss, WhyNone
from substrate_compat.wording import describe, describe_unchecked, runtime_name
from vectors import amd64

NO = Mismatch(Reason.DIFFERENT_VALUE, "zone", "a", "b")


@pytest.mark.parametrize(
    ("mismatch", "words"),
    [
        (Mismatch(Reason.NO_WORKER, "", None, None), "there is no worker identity to restore it"),
        (
            Mismatch(Reason.SANDBOX_CLASS, "sandbox_class", "microvm", "gvisor"),
            "the sandbox class differs: worker 'microvm', snapshot 'gvisor'",
        ),
        (
            Mismatch(Reason.DIFFERENT_VALUE, "sandbox_runtime_hash", "x", "y"),
            "the runtime hash (the binaries and the pause image) differs: worker 'x', snapshot 'y'",
        ),
        (NO, "zone differs: worker 'a', snapshot 'b'"),
        (
            Mismatch(Reason.MISSING_KEY, "cpu_vendor", None, "0x41"),
            "the worker has no cpu_vendor, the snapshot needs '0x41'",
        ),
        (
            Mismatch(Reason.UNREADABLE_FEATURES, "cpu_features", "A\n", "1"),
            "the CPU features cannot be read: worker 'A\\n', snapshot '1'",
        ),
        (
            Mismatch(Reason.MISSING_FEATURES, "cpu_features", "8", "b", ("pclmulqdq", "pni")),
            "the worker lacks 2 CPU features that the guest saw: pclmulqdq, pni",
        ),
    ],
)
def test_mismatches(mismatch: Mismatch, words: str) -> None:
    assert describe(mismatch) == words


@pytest.mark.parametrize(
    ("worker", "trap"),
    [
        pytest.param("0", True, id="no osxsave on the worker"),
        pytest.param("8000000", False, id="osxsave on the worker"),
    ],
)
def test_the_xsave_trap_is_told_where_it_is_the_reason(worker: str, *, trap: bool) -> None:
    words = describe(Mismatch(Reason.MISSING_FEATURES, "cpu_features", worker, "4000000", ("xsave",)))
    assert ("no usable XSAVE" in words) is trap


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (Verdict((), ()), "yes"),
        (
            Verdict((), ("cpu_model", Unchecked.TSC_RATE)),
            "\n".join(
                (
                    "yes, as far as was recorded",
                    "- unchecked: cpu_model: not recorded in the snapshot",
                    "- unchecked: the TSC rate",
                )
            ),
        ),
        (Verdict((NO, NO), ("cpu_model",)), f"no\n- {describe(NO)}\n- {describe(NO)}"),
    ],
)
def test_verdicts(verdict: Verdict, words: str) -> None:
    assert describe(verdict) == words


def runtime(number: int) -> SandboxRuntime:
    attributes = {"architecture": "amd64", "cpu_features": "0", "cpu_cache_line": "64"}
    return SandboxRuntime(
        "gvisor",
        VersionedSandboxCompat.of({**attributes, "sandbox_runtime_hash": f"sha256:{number:064}"}),
    )


@pytest.mark.parametrize(
    ("runtimes", "snapshot", "words"),
    [
        pytest.param((runtime(1),), runtime(1), ["yes"], id="by the default"),
        pytest.param(
            (runtime(1), runtime(2)), runtime(2), ["yes (under its restorable runtime 1)"], id="by another"
        ),
        pytest.param((runtime(1),), runtime(2), ["no", "- the runtime hash"], id="not by the only one"),
        pytest.param(
            (runtime(1), runtime(3)),
            runtime(2),
            [
                "no",
                "- default runtime:",
                "  - the runtime hash",
                "- restorable runtime 1:",
                "  - the runtime",
            ],
            id="by none of two",
        ),
    ],
)
def test_worker_verdicts(
    runtimes: tuple[SandboxRuntime, ...], snapshot: SandboxRuntime, words: list[str]
) -> None:
    lines = describe(explain_worker(WorkerRuntimes(runtimes[0], runtimes[1:]), snapshot)).split("\n")
    assert len(lines) == len(words)
    assert all(line.startswith(start) for line, start in zip(lines, words, strict=True))


@pytest.mark.parametrize(
    ("why", "words"),
    [
        pytest.param(WhyNone(0, (), ()), ["there are no workers"], id="empty"),
        pytest.param(
            WhyNone(
                12_000,
                (
                    Excluded(Reason.DIFFERENT_VALUE, "sandbox_runtime_hash", 12_000),
                    Excluded(Reason.MISSING_FEATURES, "cpu_features", 3_000),
                    Excluded(Reason.MISSING_KEY, "cpu_vendor", 2),
                    Excluded(Reason.UNREADABLE_FEATURES, "cpu_features", 1),
                ),
                (),
            ),
            [
                "none of 12,000 workers can restore the snapshot; a worker counts under each reason:",
                "- 12,000 workers: the runtime hash (the binaries and the pause image) differs",
                "- 3,000 workers: CPU features that the guest saw are missing",
                "- 2 workers: there is no cpu_vendor",
                "- 1 worker: the CPU features cannot be read",
                "nearest: none; more than missing CPU features speaks against every runtime",
            ],
            id="every reason",
        ),
        pytest.param(
            WhyNone(
                1,
                (Excluded(Reason.MISSING_FEATURES, "cpu_features", 1),),
                (NearMiss(("avx", "avx2"), 1, ()),),
            ),
            [
                "the only worker cannot restore the snapshot; a worker counts under each reason:",
                "- 1 worker: CPU features that the guest saw are missing",
                "nearest, where only CPU features are missing:",
                "- 1 worker: avx, avx2",
            ],
            id="one worker",
        ),
        pytest.param(
            WhyNone(8, (), tuple(NearMiss((name,), 1, ()) for name in "abcdefg")),
            [
                "none of 8 workers can restore the snapshot; a worker counts under each reason:",
                "nearest, where only CPU features are missing:",
                *(f"- 1 worker: {name}" for name in "abcde"),
                "- 2 workers: as many features, but others",
            ],
            id="more near misses than are shown",
        ),
    ],
)
def test_why_none(why: WhyNone, words: list[str]) -> None:
    assert describe(why).split("\n") == words


def test_every_unchecked_item_has_words() -> None:
    for item in (*Unchecked, "cpu_cache_line"):
        assert describe_unchecked(item) != f"{item}: not recorded in the snapshot"


def test_runtimes_are_counted_from_the_default() -> None:
    assert [runtime_name(position) for position in range(2)] == ["default runtime", "restorable runtime 1"]


def test_a_value_without_words_is_an_error() -> None:
    with pytest.raises(TypeError, match="no words for a int"):
        describe(1)


def test_a_level_by_the_hosts_that_lack_what_it_drops() -> None:
    basis = amd64("cmov,cx8,fpu,fxsr,lm,mmx,osxsave,sse,sse2,tsc,xsave,avx_vnni")
    hosts = {
        "old": basis,
        "new": basis | amd64("aes,avx,avx2"),
        "no\x1b[31m aes": basis | amd64("avx,avx2"),
    }
    level = common_level(hosts)
    assert describe(level).split("\n") == [
        f"{level_name(basis)}: 12 CPU features that every host has",
        "- not on 'no\\x1b[31m aes', old: aes",
        "- not on old: avx, avx2",
        "- not in the annotation, since no runsc is known to know it: avx_vnni",
    ]
    assert [describe(pin) for pin in pins(hosts)] == [
        "without old the level would gain 2 CPU features: avx, avx2",
        "without new the level would gain nothing",
        "without 'no\\x1b[31m aes' the level would gain nothing",
    ]


def test_a_choice_of_levels_by_what_more_would_gain() -> None:
    group = LevelGroup(("a",), Level(amd64("lm"), {}))
    assert describe(LevelChoice((group,), (5, 2, 0), exact=True)).split("\n") == [
        "with 1 level the hosts give up 5 in all (features, times each host's weight)",
        "- with 2 levels: 2, which is 3 less",
        "- with 3 levels: 0, which is 2 less",
    ]
    assert describe(LevelChoice((group, group), (5, 2), exact=False)).split("\n") == [
        "with 2 levels the hosts give up 2 in all (features, times each host's weight)",
        "- there may be better choices: with so many feature sets not all can be tried",
    ]


@given(worker_runtimes(), sandbox_runtimes)
def test_words_say_yes_exactly_where_the_verdict_does(
    runtimes: WorkerRuntimes, snapshot: SandboxRuntime
) -> None:
    verdict = explain_worker(runtimes, snapshot)
    words = describe(verdict)
    assert words.startswith("yes") is verdict.compatible
    assert words.startswith("no") is not verdict.compatible
    assert words.isascii()
    assert all(character == "\n" or character.isprintable() for character in words)
