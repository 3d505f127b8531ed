"""A thread to which the kernel refuses a system call, as a hardened container does to every thread.

A filter of seccomp(2) binds the thread that installs it and dies with it; it needs no privilege.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import attrs
import pytest

_T = TypeVar("_T")

_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_SECCOMP: Final = 22
_SECCOMP_MODE_FILTER: Final = 2
_ALLOW: Final = 0x7FFF0000
_ANSWER: Final = 0x00050000
# Classic BPF: load a word, mask it, jump if equal, return (linux/filter.h).
_LOAD, _AND, _JUMP_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06


@attrs.frozen
class Refusal:
    """A system call of x86-64 that the kernel does not do where an argument has all of some bits.

    Attributes:
        number: the number of the call.
        argument: the position of the argument.
        bits: the bits, among its lower 32.
        error: what the call answers: an `errno`, or 0, which is a success with the result 0.
    """

    number: int
    argument: int
    bits: int
    error: int = errno.EPERM

    def program(self) -> bytes:
        """The filter, as `struct sock_filter`s over `struct seccomp_data`."""
        return b"".join(
            struct.pack("=HBBI", *instruction)
            for instruction in (
                (_LOAD, 0, 0, 0),
                (_JUMP_EQUAL, 0, 4, self.number),
                (_LOAD, 0, 0, 16 + 8 * self.argument),
                (_AND, 0, 0, self.bits),
                (_JUMP_EQUAL, 0, 1, self.bits),
                (_RETURN, 0, 0, _ANSWER | self.error),
                (_RETURN, 0, 0, _ALLOW),
            )
        )


EXECUTABLE_MEMORY: Final = Refusal(number=9, argument=2, bits=0x6)
"""mmap(2) with PROT_WRITE and PROT_EXEC, as under systemd's MemoryDenyWriteExecute."""
MOVING: Final = Refusal(number=203, argument=0, bits=0)
"""Any sched_setaffinity(2)."""
CPUID_ANSWERED_OFF: Final = Refusal(number=158, argument=0, bits=0x1011, error=0)
"""arch_prctl(2) with ARCH_GET_CPUID, which then says that CPUID faults."""


def under(refusal: Refusal, work: Callable[[], _T]) -> _T:
    """What `work` returns or raises in a thread of its own, to which the kernel refuses the call."""

    def confined() -> _T:
        program = refusal.program()
        code = ctypes.create_string_buffer(program, len(program))
        filter_ = struct.pack("HP", len(program) // 8, ctypes.addressof(code))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
            _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, filter_
        ):
            pytest.skip(f"the kernel takes no seccomp filter: {os.strerror(ctypes.get_errno())}")
        return work()

    if platform.machine() != "x86_64":
        pytest.skip("the numbers of the system calls are those of x86-64")
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(confined).result()
