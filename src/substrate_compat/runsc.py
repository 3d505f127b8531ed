"""The feature set that a runsc binary reports for this host: gVisor's own word.

`runsc cpu-features` prints one line, the names separated by commas. It is what gVisor compares at a
restore, and each binary is to be asked itself: an older one does not know every feature.
"""

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from substrate_compat.cpufeatures import FeatureSet, known_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import HostError, InputError, quoted, require_size

__all__ = ["listed_names", "parse_cpu_features", "run_cpu_features", "run_listing", "unknown_names"]

_COMMAND: Final = "cpu-features"
_MOST_OUTPUT: Final = 64 << 10
_CHUNK: Final = 4096
_NAME: Final = re.compile(r"[0-9A-Za-z_.-]{1,64}")
_BETWEEN_COMMAS: Final = re.compile(r"(?:^|(?<=,))[^,]*")
_LISTING_WANTED: Final = "give `runsc cpu-features` output"
_REMEDY: Final = "name a runsc that knows `cpu-features`, or give its listing with --features"


def parse_cpu_features(listing: str, architecture: Architecture) -> FeatureSet:
    r"""The set in the output of `runsc cpu-features`.

    Args:
        listing: names separated by commas, in any order, on one line; it may end in a newline.
        architecture: the host's.

    Raises:
        InputError: an empty listing, an empty or unknown name (the message suggests the nearest), more
            than one line, or a text over 8 MiB.

    >>> parse_cpu_features("fpu,pni\n", Architecture.AMD64).names
    ('fpu', 'pni')
    """
    return FeatureSet.from_names(architecture, listed_names(listing))


def listed_names(listing: str) -> Iterator[str]:
    r"""The names in the output of `runsc cpu-features`, whether or not the table knows them.

    Raises:
        InputError: an empty listing, more than one line, or a text over 8 MiB.

    >>> list(listed_names("fpu,avx99\n"))
    ['fpu', 'avx99']
    """
    require_size("runsc listing", listing)
    line = listing.removesuffix("\n").removesuffix("\r")
    if not line:
        raise InputError("runsc listing", "it is empty", "an empty set would fit every worker")
    if "\n" in line:
        raise InputError("runsc listing", "it has more than one line", _LISTING_WANTED)
    return map(re.Match.group, _BETWEEN_COMMAS.finditer(line))


def unknown_names(names: Iterable[str], architecture: Architecture) -> tuple[str, ...]:
    """Those of the names in a listing that the table does not have, sorted; none is what there should be.

    Raises:
        InputError: what is no feature's name, or not one name that the table has: then it is no listing,
            or one of another architecture.

    >>> unknown_names(["fpu", "avx99"], Architecture.AMD64)
    ('avx99',)
    """
    listed = set(names)
    for name in sorted(listed):
        if _NAME.fullmatch(name) is None:
            raise InputError("runsc listing", f"{quoted(name)} is no feature's name", _LISTING_WANTED)
    unknown = listed - {feature.name for feature in known_features(architecture)}
    if unknown == listed:
        raise InputError("runsc listing", f"it has no feature name of {architecture}", _LISTING_WANTED)
    return tuple(sorted(unknown))


def run_cpu_features(runsc: str | Path, architecture: Architecture, timeout: float = 10.0) -> FeatureSet:
    """What `runsc cpu-features` reports on this host.

    Args:
        runsc: the path of the binary; it is run without a shell.
        architecture: this host's.
        timeout: in seconds.

    Raises:
        HostError: see `run_listing`; or it prints what is no listing, or a name that the table does not
            have (see `unknown_names`).
    """
    listing = run_listing(runsc, timeout)
    try:
        return parse_cpu_features(listing, architecture)
    except InputError as error:
        raise HostError(
            str(runsc), f"what it printed is no listing: {error.problem}", error.remedy or _REMEDY
        ) from error


def run_listing(runsc: str | Path, timeout: float = 10.0) -> str:
    """What `runsc cpu-features` prints on this host, as it stands.

    Args:
        runsc: the path of the binary; it is run without a shell.
        timeout: in seconds.

    Raises:
        HostError: it cannot be run, is too old to know the command, fails, does not answer in time, or
            prints more than 64 KiB or what is not ASCII.
    """
    subject = str(runsc)
    status, output, complaint = _run([subject, _COMMAND], subject, timeout)
    if status != 0:
        if b"Usage:" in complaint and b"Subcommands:" in complaint and _COMMAND.encode() not in complaint:
            raise HostError(
                subject, f"this runsc is too old to know `{_COMMAND}` (exit status {status})", _REMEDY
            )
        last = complaint.decode(errors="backslashreplace").strip().rpartition("\n")[2]
        said = f": {quoted(last)}" if last else " and said nothing"
        raise HostError(subject, f"`{_COMMAND}` ended with {_named_status(status)}{said}", _REMEDY)
    try:
        return output.decode("ascii")
    except UnicodeDecodeError:
        raise HostError(subject, "what it printed is no listing: it is not ASCII text", _REMEDY) from None


def _named_status(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    return f"signal {-status} ({signal.strsignal(-status)})"


def _run(command: list[str], subject: str, timeout: float) -> tuple[int, bytes, bytes]:
    """Exit status, standard output and standard error of `command`, both bounded as the time is."""
    deadline = time.monotonic() + timeout
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise HostError(subject, "no such program", _REMEDY) from None
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else "no system has such a path"
        if isinstance(error, PermissionError) and Path(subject).is_dir():
            problem = "it is a folder, not a program"
        raise HostError(subject, f"it cannot be run: {problem}", _REMEDY) from error
    with process:
        try:
            output, complaint = _read_both(process, subject, deadline)
            return process.wait(max(0.0, deadline - time.monotonic())), output, complaint
        except subprocess.TimeoutExpired:
            raise HostError(subject, f"no answer in {timeout:g} seconds", _REMEDY) from None
        finally:
            # Not yet waited for, so the number is still its own; its children go with it.
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)


def _read_both(process: subprocess.Popen[bytes], subject: str, deadline: float) -> tuple[bytes, bytes]:
    """Standard output and standard error, each to its end."""
    streams = [stream for stream in (process.stdout, process.stderr) if stream is not None]
    texts = [bytearray() for _ in streams]
    with selectors.DefaultSelector() as selector:
        for stream, text in zip(streams, texts, strict=True):
            selector.register(stream, selectors.EVENT_READ, text)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise subprocess.TimeoutExpired(subject, 0)
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                key.data.extend(chunk)
                if len(key.data) > _MOST_OUTPUT:
                    raise HostError(subject, f"it printed more than {_MOST_OUTPUT >> 10} KiB", _REMEDY)
    output, complaint = texts
    return bytes(output), bytes(complaint)
