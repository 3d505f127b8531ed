"""What gVisor makes of a CPU, computed from its CPUID registers.

runsc reads the registers of the host that it runs on. The same registers, dumped on another machine by
`cpuid -r` or read here, give the same set without runsc, so that a fleet can be planned before it is
bought. runsc stays the authority: an older one does not know every block, so a fleet keeps to one source.
"""

import ctypes
import functools
import importlib
import io
import os
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from substrate_compat.cpufeatures import FeatureSet, named_bits
from substrate_compat.cpufeatures_table import CPUID_REGISTERS, Architecture
from substrate_compat.errors import HostError, InputError, quoted, require_size

__all__ = [
    "CommonFeatures",
    "Query",
    "Registers",
    "common_features",
    "execute_cpuid",
    "features_from_cpuid",
    "made_by_32_bit_program",
    "parse_cpuid_dump",
    "query_cpuid_device",
    "read_cpuid",
    "read_every_cpuid",
]

Registers = tuple[int, int, int, int]
"""EAX, EBX, ECX, EDX."""
Query = Callable[[int, int], Registers]
"""Answers one CPUID leaf and subleaf."""

_NAMES: Final = ("eax", "ebx", "ecx", "edx")
_MOST_CPUS: Final = 1 << 16
_ABSENT: Final = (0, 0, 0, 0)
_WORD: Final = 0xFFFFFFFF
_EXTENDED: Final = 0x80000000
_XSAVE: Final = 1 << 26

_HEAD: Final = re.compile(r"CPU(?: [0-9]{1,9})?:")
_LEAF: Final = re.compile(
    r"0x([0-9a-f]{8}) 0x([0-9a-f]{2,8}): "
    r"eax=0x([0-9a-f]{8}) ebx=0x([0-9a-f]{8}) ecx=0x([0-9a-f]{8}) edx=0x([0-9a-f]{8})"
)

_SYS_ARCH_PRCTL: Final = 158
_ARCH_GET_CPUID: Final = 0x1011
_CPUID_FAULTS: Final = 0
_OTHER_WAY: Final = (
    "give runsc with --runsc, or a listing or dump from elsewhere with --features or --cpuid"
)


def features_from_cpuid(registers: Mapping[tuple[int, int], Registers]) -> FeatureSet:
    """The set that gVisor reports for a CPU with these registers (amd64).

    Args:
        registers: EAX, EBX, ECX and EDX by leaf and subleaf; an absent leaf reads as zeros.

    Raises:
        InputError: no leaf 1, or a register that is not a 32-bit number.

    The conditions are those of gVisor's `pkg/cpuid`: leaf 0xD.1 counts only with `xsave`, leaf 0x80000001
    only if leaf 0x80000000 reaches it, leaf 7.1 only if leaf 7.0 says that it is there. Bits without a
    row in the table are dropped, among them those of leaf 0x80000001 EDX that repeat leaf 1 on AMD.

    >>> features_from_cpuid({(1, 0): (0, 0, 1 << 0 | 1 << 26, 1 << 15)}).names
    ('cmov', 'pni', 'xsave')
    """
    if (1, 0) not in registers:
        raise InputError("CPUID", "there is no leaf 1", "dump every leaf, as `cpuid -r` does")
    words = [
        _register(registers, leaf, subleaf, _NAMES.index(name)) for leaf, subleaf, name in CPUID_REGISTERS
    ]
    if not words[0] & _XSAVE:
        words[4] = 0
    if _register(registers, _EXTENDED, 0, 0) < _EXTENDED + 1:
        words[5] = words[6] = 0
    if _register(registers, 7, 0, 0) < 1:
        words[8] = 0
    bits = functools.reduce(lambda above, word: above << 32 | word, reversed(words))
    return FeatureSet(Architecture.AMD64, bits & named_bits(Architecture.AMD64))


def _register(
    registers: Mapping[tuple[int, int], Registers], leaf: int, subleaf: int, position: int
) -> int:
    value = registers.get((leaf, subleaf), _ABSENT)[position]
    if not 0 <= value <= _WORD:
        raise InputError(
            "CPUID", f"register {_NAMES[position]} of leaf {leaf:#x}.{subleaf:#x} is not a 32-bit number"
        )
    return value


@attrs.frozen
class CommonFeatures:
    """What the CPUs of one machine share.

    Attributes:
        features: what every CPU has.
        varying: what some CPUs have and others lack.
    """

    features: FeatureSet
    varying: FeatureSet


def common_features(cpus: Sequence[Mapping[tuple[int, int], Registers]]) -> CommonFeatures:
    r"""What all of the given CPUs have, and what only some have.

    Raises:
        InputError: no CPU, or one of which `features_from_cpuid` makes nothing.

    >>> cpus = parse_cpuid_dump(
    ...     "CPU 0:\n   0x00000001 0x00: eax=0x00000000 ebx=0x00000000 ecx=0x00000001 edx=0x00000001\n"
    ...     "CPU 1:\n   0x00000001 0x00: eax=0x00000000 ebx=0x00000000 ecx=0x00000000 edx=0x00000001\n"
    ... )
    >>> common = common_features(cpus)
    >>> common.features.names, common.varying.names
    (('fpu',), ('pni',))
    """
    if not cpus:
        raise InputError("CPUID", "there is no CPU")
    sets = [features_from_cpuid(registers) for registers in cpus]
    every = functools.reduce(FeatureSet.__and__, sets)
    some = functools.reduce(FeatureSet.__or__, sets)
    return CommonFeatures(every, some - every)


def made_by_32_bit_program(features: FeatureSet) -> bool:
    """Whether a dump gives itself away as made by a 32-bit program: `lm` without `syscall`.

    Intel CPUs show `syscall` only to 64-bit programs, and runsc is one: it will see one name more.

    >>> made_by_32_bit_program(FeatureSet.from_names(Architecture.AMD64, ["lm"]))
    True
    """
    return "lm" in features and "syscall" not in features


def parse_cpuid_dump(text: str) -> tuple[dict[tuple[int, int], Registers], ...]:
    """The registers in the output of `cpuid -r`: one mapping for each CPU, in order.

    Args:
        text: `CPU n:` heads, each followed by lines such as
            `0x00000001 0x00: eax=0x00a00f11 ebx=0x00020800 ecx=0xfffa3203 edx=0x178bfbff`.

    Raises:
        InputError: another line, a leaf given twice, no leaf at all, more than 65,536 CPUs, or a text over
            8 MiB.
    """
    require_size("CPUID dump", text)
    cpus: list[dict[tuple[int, int], Registers]] = []
    for number, line in enumerate(io.StringIO(text, newline="\n"), 1):
        stripped = line.strip(" \t\r\n")
        if not stripped:
            continue
        if _HEAD.fullmatch(stripped):
            if len(cpus) == _MOST_CPUS:
                raise InputError("CPUID dump", f"more than {_MOST_CPUS} CPUs")
            cpus.append({})
        elif leaf := _LEAF.fullmatch(stripped):
            if not cpus:
                cpus.append({})
            first, second, eax, ebx, ecx, edx = (int(digits, 16) for digits in leaf.groups())
            if (first, second) in cpus[-1]:
                raise InputError(
                    "CPUID dump", f"line {number} gives leaf {first:#x}.{second:#x} a second time"
                )
            cpus[-1][first, second] = (eax, ebx, ecx, edx)
        else:
            raise InputError(
                "CPUID dump",
                f"line {number} is not understood: {quoted(stripped)}",
                "dump the registers with `cpuid -r`",
            )
    if not any(cpus):
        raise InputError("CPUID dump", "it has no registers", "dump them with `cpuid -r`")
    return tuple(cpus)


def read_cpuid(
    ways: Sequence[Callable[[], Query]] | None = None,
) -> dict[tuple[int, int], Registers]:
    """The registers that `features_from_cpuid` looks at, of the CPU that this thread runs on.

    Args:
        ways: how to ask for a leaf, each tried in turn; by default CPUID is executed here and, where
            that is refused, the kernel is asked for CPU 0 through its device.

    Raises:
        HostError: no way worked; the message says why for each, and what else there is.
    """
    refusals = []
    for way in (execute_cpuid, query_cpuid_device) if ways is None else ways:
        try:
            return _read_registers(way())
        except HostError as error:
            refusals.append(f"{error.subject}: {error.problem}")
    raise HostError("CPUID", "; ".join(refusals), _OTHER_WAY)


def read_every_cpuid() -> tuple[dict[tuple[int, int], Registers], ...]:
    """The registers of each CPU that the calling thread may run on, in order of their numbers.

    The thread is moved to each CPU in turn and has all of them again afterwards. Where CPUID is not
    executed, see `read_cpuid`.

    Raises:
        HostError: the registers cannot be read, or the kernel does not let the thread move.
    """
    allowed = os.sched_getaffinity(0)
    registers = []
    try:
        for cpu in sorted(allowed):
            _move({cpu})
            registers.append(read_cpuid())
    finally:
        _move(allowed)
    return tuple(registers)


def _move(cpus: set[int]) -> None:
    """Let the calling thread run on these CPUs and no other."""
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        raise HostError("CPUID", f"no moving between CPUs: {error.strerror}", _OTHER_WAY) from error


def _read_registers(query: Query) -> dict[tuple[int, int], Registers]:
    registers = {(base, 0): query(base, 0) for base in (0, _EXTENDED)}
    for leaf, subleaf, _ in CPUID_REGISTERS:
        highest, *_ = registers[leaf & _EXTENDED, 0]
        if leaf <= highest and (leaf, subleaf) not in registers:
            registers[leaf, subleaf] = query(leaf, subleaf)
    return registers


def execute_cpuid() -> Query:
    """A query that executes CPUID on the CPU that the calling thread runs on (`archspec`, extra `cli`).

    Raises:
        HostError: not an x86 host, no memory that may be executed, or a process to which the kernel
            refuses CPUID (`arch_prctl(2)`, `ARCH_SET_CPUID`).
    """
    try:
        # Not an import statement: a program without the extra can still use all the rest.
        query: Query = importlib.import_module("archspec.vendor.cpuid.cpuid").CPUID()
    except ModuleNotFoundError:
        raise HostError("executing CPUID", "archspec is not installed", _OTHER_WAY) from None
    except (OSError, SystemError) as error:
        raise HostError("executing CPUID", str(error), _OTHER_WAY) from error
    if ctypes.CDLL(None).syscall(_SYS_ARCH_PRCTL, _ARCH_GET_CPUID) == _CPUID_FAULTS:
        raise HostError("executing CPUID", "the kernel refuses it to this process", _OTHER_WAY)
    return query


def query_cpuid_device(path: Path = Path("/dev/cpu/0/cpuid")) -> Query:
    """A query that reads Linux's CPUID device of one CPU (`cpuid(4)`).

    Raises:
        HostError: the device is not there or may not be read; the query raises it too.
    """

    def query(leaf: int, subleaf: int) -> Registers:
        try:
            with path.open("rb", buffering=0) as device:
                data = os.pread(device.fileno(), 16, subleaf << 32 | leaf)
        except OSError as error:
            raise HostError(str(path), error.strerror or str(error), _OTHER_WAY) from error
        if len(data) != 16:
            raise HostError(
                str(path), f"leaf {leaf:#x} reads as {len(data)} bytes instead of 16", _OTHER_WAY
            )
        eax, ebx, ecx, edx = struct.unpack("<4I", data)
        return eax, ebx, ecx, edx

    query(0, 0)
    return query
