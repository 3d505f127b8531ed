"""CPUID: gVisor's own listings from registers, its conditions, dumps, and this host."""

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import and_, or_
from pathlib import Path
from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusals import CPUID_ANSWERED_OFF, EXECUTABLE_MEMORY, MOVING, Refusal, under
from substrate_compat.cpufeatures_table import CPUID_REGISTERS, Architecture
from substrate_compat.cpuid import (
    Query,
    Registers,
    common_features,
    execute_cpuid,
    features_from_cpuid,
    made_by_32_bit_program,
    parse_cpuid_dump,
    query_cpuid_device,
    read_cpuid,
    read_every_cpuid,
)
from substrate_compat.errors import HostError, InputError, quoted
from substrate_compat.runsc import parse_cpu_features
from vectors import (
    Host,
    cpuid_dump,
    gvisor_hosts,
    host_registers,
    later_than_the_listings,
    milan_dump,
    milan_listing,
)

HOSTS: Final = gvisor_hosts().hosts
REGISTERS: Final = host_registers()
WORD: Final = 0xFFFFFFFF
ZEROS: Final = (0, 0, 0, 0)
ONES: Final = (WORD, WORD, WORD, WORD)
ELSEWHERE: Final = "give runsc with --runsc, or a listing or dump from elsewhere with --features or --cpuid"

Leaves = Mapping[tuple[int, int], Registers]

on_amd64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="CPUID is an instruction of x86")


def leaf_1(ecx: int = 0, edx: int = 0) -> Leaves:
    return {(1, 0): (0, 0, ecx, edx)}


def names(registers: Leaves) -> set[str]:
    return {*features_from_cpuid(registers)}


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.id)
def test_registers_give_what_gvisor_lists(host: Host) -> None:
    features = features_from_cpuid(REGISTERS[host.id])
    assert features - later_than_the_listings() == host.features


def test_a_dump_gives_what_runsc_lists_on_the_same_machine() -> None:
    common = common_features(parse_cpuid_dump(milan_dump()))
    assert common.features == parse_cpu_features(milan_listing(), Architecture.AMD64)
    assert not common.varying


XSAVE: Final = 1 << 26
XSAVEOPT: Final = 1
LAHF_LM: Final = 1
NX: Final = 1 << 20
AVX_VNNI: Final = 1 << 4
REPEATED: Final = 0x183F3FF


@pytest.mark.parametrize(
    ("without", "with_it", "gained"),
    [
        pytest.param(
            {(1, 0): ZEROS, (0xD, 1): (XSAVEOPT, 0, 0, 0)},
            {(1, 0): (0, 0, XSAVE, 0), (0xD, 1): (XSAVEOPT, 0, 0, 0)},
            {"xsave", "xsaveopt"},
            id="leaf 0xD.1 counts only with xsave",
        ),
        pytest.param(
            {(1, 0): ZEROS, (0x80000000, 0): (0x80000000, 0, 0, 0), (0x80000001, 0): (0, 0, LAHF_LM, NX)},
            {(1, 0): ZEROS, (0x80000000, 0): (0x80000001, 0, 0, 0), (0x80000001, 0): (0, 0, LAHF_LM, NX)},
            {"lahf_lm", "nx"},
            id="leaf 0x80000001 counts only if leaf 0x80000000 reaches it",
        ),
        pytest.param(
            {(1, 0): ZEROS, (0x80000001, 0): (0, 0, LAHF_LM, NX)},
            {(1, 0): ZEROS, (0x80000000, 0): (WORD, 0, 0, 0), (0x80000001, 0): (0, 0, LAHF_LM, NX)},
            {"lahf_lm", "nx"},
            id="leaf 0x80000001 does not count without leaf 0x80000000",
        ),
        pytest.param(
            {(1, 0): ZEROS, (0x80000000, 0): (WORD, 0, 0, 0), (0x80000001, 0): (0, 0, 0, REPEATED)},
            {(1, 0): (0, 0, 0, 1), (0x80000000, 0): (WORD, 0, 0, 0), (0x80000001, 0): (0, 0, 0, REPEATED)},
            {"fpu"},
            id="EDX bits of leaf 0x80000001 that repeat leaf 1 count only there",
        ),
        pytest.param(
            {(1, 0): ZEROS, (7, 0): ZEROS, (7, 1): (AVX_VNNI, 0, 0, 0)},
            {(1, 0): ZEROS, (7, 0): (1, 0, 0, 0), (7, 1): (AVX_VNNI, 0, 0, 0)},
            {"avx_vnni"},
            id="leaf 7.1 counts only if leaf 7.0 says that it is there",
        ),
        pytest.param(
            {(1, 0): ZEROS, (7, 1): (AVX_VNNI, 0, 0, 0)},
            {(1, 0): ZEROS, (7, 0): (2, 0, 0, 0), (7, 1): (AVX_VNNI, 0, 0, 0)},
            {"avx_vnni"},
            id="leaf 7.1 does not count without leaf 7.0",
        ),
    ],
)
def test_each_condition_of_gvisor_flips_the_result(
    without: Leaves, with_it: Leaves, gained: set[str]
) -> None:
    assert names(without) == set()
    assert names(with_it) == gained


def test_every_register_at_its_fullest_gives_every_name() -> None:
    registers = {(leaf, subleaf): ONES for leaf, subleaf, _ in CPUID_REGISTERS} | {(0x80000000, 0): ONES}
    assert len(features_from_cpuid(registers)) == 175


@pytest.mark.parametrize(
    ("registers", "problem"),
    [
        ({}, "there is no leaf 1"),
        ({(0, 0): ONES, (7, 0): ONES}, "there is no leaf 1"),
        ({(1, 1): ONES}, "there is no leaf 1"),
        (leaf_1(ecx=1 << 32), "register ecx of leaf 0x1.0x0 is not a 32-bit number"),
        ({(1, 0): ZEROS, (7, 0): (-1, 0, 0, 0)}, "register eax of leaf 0x7.0x0 is not a 32-bit number"),
    ],
)
def test_registers_that_are_refused(registers: Leaves, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        features_from_cpuid(registers)
    assert (caught.value.subject, caught.value.problem) == ("CPUID", problem)
    assert caught.value.remedy == (
        "dump every leaf, as `cpuid -r` does" if problem == "there is no leaf 1" else ""
    )


words = st.sampled_from([0, 1, WORD]) | st.integers(0, WORD)
leaves = st.dictionaries(
    st.sampled_from(
        [(leaf, subleaf) for leaf, subleaf, _ in CPUID_REGISTERS] + [(0, 0), (0x80000000, 0), (0xB, 2)]
    ),
    st.tuples(words, words, words, words),
    min_size=1,
)


@given(leaves, words, words)
def test_a_bit_more_never_takes_a_feature_away(registers: Leaves, ecx: int, edx: int) -> None:
    some = {**registers, (1, 0): (0, 0, ecx, edx)}
    more = {place: (eax, ebx, WORD, WORD) for place, (eax, ebx, _, _) in some.items()}
    assert features_from_cpuid(some) <= features_from_cpuid(more)


@given(st.lists(leaves, min_size=1, max_size=3))
def test_a_dump_holds_the_registers_that_were_dumped(cpus: list[dict[tuple[int, int], Registers]]) -> None:
    text = cpuid_dump(cpus)
    assert parse_cpuid_dump(text) == tuple(cpus)
    assert parse_cpuid_dump(text.replace("\n", "\r\n\r\n")) == tuple(cpus)


ONE_LEAF: Final = "0x00000001 0x00: eax=0x00000001 ebx=0x00000002 ecx=0x00000003 edx=0x00000004"
ONE_CPU: Final = ({(1, 0): (1, 2, 3, 4)},)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        pytest.param(f"CPU:\n   {ONE_LEAF}\n", ONE_CPU, id="one CPU"),
        pytest.param(f"CPU 7:\n   {ONE_LEAF}\n", ONE_CPU, id="one CPU of a higher number"),
        pytest.param(ONE_LEAF, ONE_CPU, id="no head and no newline"),
        pytest.param(f"\n\nCPU 0:\n\n\t{ONE_LEAF}  \n\n", ONE_CPU, id="blanks"),
        pytest.param(f"CPU 0:\r\n   {ONE_LEAF}\r\n", ONE_CPU, id="CRLF"),
        pytest.param(f"CPU 0:\n{ONE_LEAF}\nCPU 1:\n{ONE_LEAF}\n", ONE_CPU * 2, id="two CPUs"),
        pytest.param(ONE_LEAF.replace("0x00:", "0x00000000:"), ONE_CPU, id="a long subleaf"),
    ],
)
def test_a_dump_that_is_read(text: str, cpus: tuple[Leaves, ...]) -> None:
    assert parse_cpuid_dump(text) == cpus


NOT_RAW: Final = "CPU 0:\n   vendor_id = GenuineIntel\n"
ARABIC: Final = f"CPU \u0663:\n{ONE_LEAF}"
MANY: Final = "CPU:\n" * 65_536


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(NOT_RAW, "line 2 is not understood: 'vendor_id = GenuineIntel'", id="not raw"),
        pytest.param(ARABIC, r"line 1 is not understood: 'CPU \u0663:'", id="Arabic digit"),
        pytest.param(f"{ONE_LEAF}\nCPU 1:X", "line 2 is not understood: 'CPU 1:X'", id="a letter more"),
        *(
            pytest.param(text, f"line 1 is not understood: {quoted(text)}", id=name)
            for name, text in {
                "no hex digit": ONE_LEAF.replace("0x00000003", "0x0000000G"),
                "upper case": ONE_LEAF.upper(),
                "three registers": ONE_LEAF.rpartition(" ")[0],
                "nine digits": ONE_LEAF + "0",
                "vertical tab": f"{ONE_LEAF}\x0b",
                "CR alone": f"CPU 0:\r{ONE_LEAF}",
            }.items()
        ),
    ],
)
def test_a_line_that_is_not_understood(text: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_cpuid_dump(text)
    assert str(caught.value) == f"CPUID dump: {line}; dump the registers with `cpuid -r`"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "it has no registers; dump them with `cpuid -r`", id="empty"),
        pytest.param(
            "CPU 0:\nCPU 1:\n", "it has no registers; dump them with `cpuid -r`", id="heads alone"
        ),
        pytest.param(MANY, "it has no registers; dump them with `cpuid -r`", id="as many heads as may be"),
        pytest.param(f"{MANY}CPU:\n", "more than 65536 CPUs", id="a head more"),
        pytest.param(
            f"CPU 0:\n{ONE_LEAF}\n{ONE_LEAF}\n", "line 3 gives leaf 0x1.0x0 a second time", id="twice"
        ),
        pytest.param(" " * ((8 << 20) + 1), "8388609 characters; 8 MiB are the most", id="over 8 MiB"),
    ],
)
def test_a_dump_that_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_cpuid_dump(text)
    assert str(caught.value) == f"CPUID dump: {message}"


def test_cpus_that_differ_count_as_what_all_of_them_have() -> None:
    common = common_features([leaf_1(ecx=0b11, edx=1), leaf_1(ecx=0b01, edx=1), leaf_1(ecx=0b101)])
    assert common.features.names == ("pni",)
    assert common.varying.names == ("dtes64", "fpu", "pclmulqdq")


leaves_with_leaf_1 = st.builds(
    lambda registers, first: {**registers, (1, 0): first},
    leaves,
    st.tuples(words, words, words, words),
)


@given(st.lists(leaves_with_leaf_1, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_what_cpus_share_is_the_meet_and_their_order_changes_nothing(
    cpus: list[dict[tuple[int, int], Registers]], order: Random
) -> None:
    common = common_features(cpus)
    each = [features_from_cpuid(registers) for registers in cpus]
    assert common.features == reduce(and_, each)
    assert common.features | common.varying == reduce(or_, each)
    assert not len(common.features & common.varying)
    shuffled = [dict(order.sample([*cpu.items()], len(cpu))) for cpu in order.sample(cpus, len(cpus))]
    assert common_features(parse_cpuid_dump(cpuid_dump(shuffled))) == common


def test_no_cpu_is_refused() -> None:
    with pytest.raises(InputError, match=r"^CPUID: there is no CPU$"):
        common_features([])


def test_a_cpu_without_leaf_1_is_refused_beside_others() -> None:
    with pytest.raises(InputError, match="there is no leaf 1"):
        common_features(parse_cpuid_dump(f"CPU 0:\n{ONE_LEAF}\nCPU 1:\n"))


def test_62_of_the_dumps_were_made_by_a_32_bit_program() -> None:
    made = [host.vendor for host in HOSTS if made_by_32_bit_program(host.features)]
    assert made == ["GenuineIntel"] * 62


def refusing(reason: str) -> Callable[[], Query]:
    def way() -> Query:
        raise HostError(reason, "not here", "elsewhere")

    return way


def answering(registers: Leaves) -> Callable[[], Query]:
    return lambda: lambda leaf, subleaf: registers[leaf, subleaf]


def test_a_cpu_is_read_in_the_first_way_that_works() -> None:
    registers: Leaves = {(0, 0): (1, 0, 0, 0), (1, 0): (1, 2, 3, 4), (0x80000000, 0): (0, 0, 0, 0)}
    other: Leaves = dict.fromkeys(registers, ZEROS)
    assert read_cpuid([refusing("one"), answering(registers), answering(other)]) == registers


def test_a_leaf_above_the_highest_is_not_asked_for() -> None:
    highest: Leaves = {(0, 0): (7, 0, 0, 0), (0x80000000, 0): (0x80000000, 0, 0, 0)}
    asked: Leaves = {(1, 0): ONES, (7, 0): ONES, (7, 1): ONES}
    assert read_cpuid([answering({**highest, **asked})]) == {**highest, **asked}


def test_where_no_way_works_each_says_why_and_runsc_is_named() -> None:
    with pytest.raises(HostError) as caught:
        read_cpuid([refusing("one"), refusing("two")])
    assert (caught.value.subject, caught.value.problem) == ("CPUID", "one: not here; two: not here")
    assert caught.value.remedy == ELSEWHERE


def test_a_fault_that_is_no_refusal_is_not_hidden() -> None:
    with pytest.raises(KeyError):
        read_cpuid([answering({})])


@pytest.fixture
def device(tmp_path: Path) -> Path:
    """A file with the bytes that a CPUID device would give at each leaf, and a hole between."""
    path = tmp_path / "cpuid"
    with path.open("wb") as file:
        # Leaf 1 lies one byte above leaf 0: EAX of leaf 0 is 1, EDX of leaf 1 is 0x01020304.
        file.write(bytes([1, 0, 0, 0]) + bytes(9) + bytes([4, 3, 2, 1]))
        file.truncate(0x80000000 + 16)
    return path


def test_a_device_is_read_at_leaf_and_subleaf(device: Path) -> None:
    with device.open("r+b") as file:
        file.seek(1 << 32 | 7)
        file.write(bytes(range(0xF0, 0x100)))
    query = query_cpuid_device(device)
    assert query(1, 0) == (0, 0, 0, 0x01020304)
    assert query(7, 1) == (0xF3F2F1F0, 0xF7F6F5F4, 0xFBFAF9F8, 0xFFFEFDFC)


def test_a_cpu_is_read_through_its_device(device: Path) -> None:
    registers = read_cpuid([refusing("executing"), lambda: query_cpuid_device(device)])
    assert registers == {
        (0, 0): (1, 0, 0, 0x02030400),
        (1, 0): (0, 0, 0, 0x01020304),
        (0x80000000, 0): ZEROS,
    }


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        pytest.param(lambda _: None, "No such file or directory", id="missing"),
        pytest.param(Path.mkdir, "Is a directory", id="folder"),
        pytest.param(Path.touch, "leaf 0x0 reads as 0 bytes instead of 16", id="empty"),
        pytest.param(
            lambda path: path.write_bytes(bytes(15)), "leaf 0x0 reads as 15 bytes instead of 16", id="short"
        ),
    ],
)
def test_a_device_that_cannot_be_read(tmp_path: Path, make: Callable[[Path], object], problem: str) -> None:
    path = tmp_path / "cpuid"
    make(path)
    with pytest.raises(HostError) as caught:
        query_cpuid_device(path)
    assert (caught.value.subject, caught.value.problem) == (str(path), problem)
    assert caught.value.remedy == ELSEWHERE


def test_a_device_that_is_gone_later_is_an_error_of_the_query(device: Path) -> None:
    query = query_cpuid_device(device)
    device.unlink()
    with pytest.raises(HostError, match="No such file or directory"):
        query(1, 0)


# What a 64-bit program sees on every x86-64 CPU (System V ABI, x86-64 baseline).
BASELINE: Final = {"cmov", "cx8", "fpu", "fxsr", "lm", "mmx", "sse", "sse2", "syscall", "tsc"}


@on_amd64
def test_this_host_executes_cpuid() -> None:
    registers = read_cpuid()
    assert names(registers) >= BASELINE
    assert registers[0, 0] == execute_cpuid()(0, 0)


@on_amd64
def test_every_cpu_of_this_host_is_read_and_the_thread_may_run_on_all_again() -> None:
    allowed = os.sched_getaffinity(0)
    cpus = read_every_cpuid()
    assert os.sched_getaffinity(0) == allowed
    assert len(cpus) == len(allowed)
    assert {*common_features(cpus).features} >= BASELINE
    # EBX of leaf 1 has the number of the CPU's interrupt controller, which is its own.
    assert len({registers[1, 0][1] >> 24 for registers in cpus}) >= min(len(cpus), 2)


@on_amd64
def test_only_the_cpus_that_the_thread_may_run_on_are_read() -> None:
    def confined() -> tuple[int, set[int]]:
        os.sched_setaffinity(0, {cpu})
        return len(read_every_cpuid()), os.sched_getaffinity(0)

    cpu = min(os.sched_getaffinity(0))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(confined).result() == (1, {cpu})


@pytest.mark.parametrize(
    ("refusal", "work", "problem"),
    [
        pytest.param(
            CPUID_ANSWERED_OFF,
            execute_cpuid,
            "executing CPUID: the kernel refuses it to this process",
            id="faulting",
        ),
        pytest.param(
            EXECUTABLE_MEMORY,
            execute_cpuid,
            "executing CPUID: [Errno 1] Operation not permitted",
            id="no executable memory",
            # archspec's destructor complains of what its constructor could not make.
            marks=pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
        ),
        pytest.param(
            MOVING,
            read_every_cpuid,
            "CPUID: no moving between CPUs: Operation not permitted",
            id="no moving",
        ),
    ],
)
def test_a_host_that_refuses_says_so(refusal: Refusal, work: Callable[[], object], problem: str) -> None:
    assert under(refusal, lambda: complaint(work)) == f"{problem}; {ELSEWHERE}"


def complaint(work: Callable[[], object]) -> str:
    try:
        work()
    except HostError as error:
        return str(error)
    return "no complaint"


FAULTING: Final = """
import ctypes, sys
from substrate_compat.cpuid import execute_cpuid
from substrate_compat.errors import HostError

ARCH_PRCTL, ARCH_SET_CPUID = 158, 0x1012
if ctypes.CDLL(None).syscall(ARCH_PRCTL, ARCH_SET_CPUID, 0):
    sys.exit("this CPU or kernel cannot make CPUID fault")
try:
    execute_cpuid()
except HostError as error:
    print(error.problem)
"""


@on_amd64
def test_a_process_to_which_cpuid_faults_is_told_and_not_killed() -> None:
    done = subprocess.run([sys.executable, "-c", FAULTING], capture_output=True, text=True, check=False)
    if done.stderr.startswith("this CPU or kernel"):
        pytest.skip(done.stderr.strip())
    assert (done.returncode, done.stdout) == (0, "the kernel refuses it to this process\n")


def test_without_archspec_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    # None in sys.modules is Python's own way to say that a module cannot be imported.
    monkeypatch.setitem(sys.modules, "archspec.vendor.cpuid.cpuid", None)
    with pytest.raises(HostError) as caught:
        execute_cpuid()
    assert str(caught.value) == f"executing CPUID: archspec is not installed; {ELSEWHERE}"
