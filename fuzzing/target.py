"""What a target is, and what counts as a finding.

A finding is an exception that is not the library's own, a law that does not hold, a message that harms a
terminal, or a time that no linear reader needs.
"""

import atexit
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, ParamSpec, TypeVar

import attrs

from substrate_compat.errors import CompatError

__all__ = [
    "DATA",
    "FindingError",
    "Target",
    "accepted",
    "folder",
    "fresh_file",
    "require",
    "run",
    "text_of",
]

_T = TypeVar("_T")
_P = ParamSpec("_P")

DATA: Final = Path(__file__).parents[1] / "tests" / "data"

_LONGEST_MESSAGE: Final = 2_000
# Instrumented code is several times slower than the library alone, which takes less than 0.2 us for a byte.
_SECONDS: Final = 0.25
_SECONDS_A_BYTE: Final = 20e-6
_ATTEMPTS: Final = 3


class FindingError(AssertionError):
    """What must not be, other than an exception that leaves the library."""


@attrs.frozen
class Target:
    """One or several functions of the library, fed from the same bytes.

    Attributes:
        name: also that of the folder of seeds in `tests/data/fuzz`.
        call: hands the bytes to the functions, and checks the laws that they promise.
        captures: seeds from what the other tests read, beside those in the folder.
    """

    name: str
    call: Callable[[bytes], None]
    captures: Callable[[], Iterable[bytes]] = tuple

    def seeds(self) -> list[bytes]:
        """All its seeds, those of the folder first."""
        kept = [path.read_bytes() for path in sorted((DATA / "fuzz" / self.name).glob("*"))]
        return [*kept, *self.captures()]


def run(target: Target, data: bytes) -> None:
    """Call the target once more where it took long: the machine may have been busy.

    Raises:
        FindingError: a law is broken, or no attempt was fast enough.
    """
    allowed = _SECONDS + _SECONDS_A_BYTE * len(data)
    for _ in range(_ATTEMPTS):
        started = time.process_time()
        target.call(data)
        taken = time.process_time() - started
        if taken <= allowed:
            return
    raise FindingError(f"{target.name}: {taken:.2f} s for {len(data)} bytes; {allowed:.2f} s are allowed")


def accepted(read: Callable[_P, _T], *arguments: _P.args, **options: _P.kwargs) -> _T | None:
    """What `read` returns; None where it refuses what it is given, with an error of the library.

    Raises:
        FindingError: its message is none for a terminal.
    """
    try:
        return read(*arguments, **options)
    except CompatError as error:
        message = str(error)
        require(type(error) is not CompatError, "the root of the errors is never raised itself")
        require(message.isprintable() and len(message) <= _LONGEST_MESSAGE, f"the message {message!a}")
        return None


def require(holds: bool, law: str) -> None:
    """Check a law.

    Raises:
        FindingError: it does not hold.
    """
    if not holds:
        raise FindingError(law)


def text_of(data: bytes) -> str:
    """The bytes as text; what is not UTF-8 becomes halves of surrogate pairs, which texts may have."""
    return data.decode(errors="surrogateescape")


@cache
def folder() -> Path:
    """A folder of this process, which goes when it ends."""
    directory = TemporaryDirectory(prefix="substrate-compat-fuzz-")
    atexit.register(directory.cleanup)
    return Path(directory.name)


def fresh_file(data: bytes) -> Path:
    """A file with `data`, in the place of the one before."""
    path = folder() / "file"
    path.write_bytes(data)
    return path
