"""The feature set that a runsc binary reports for this host: gVisor's own word.

`runsc cpu-features` prints one line, the names separated by commas. It is what gVisor compares at a
restore, and each binary is to be asked itself: an older one does not know every feature.
"""

import os
import selectors
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import HostError, InputError, quoted, require_size

__all__ = ["parse_cpu_features", "run_cpu_features"]

_COMMAND: Final = "cpu-features"
_MOST_OUTPUT: Final = 64 << 10
_CHUNK: Final = 4096
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
    require_size("runsc listing", listing)
    line = listing.removesuffix("\n").removesuffix("\r")
    if not line:
        raise InputError("runsc listing", "it is empty", "an empty set would fit every worker")
    if "\n" in line:
        raise InputError("runsc listing", "it has more than one line", "give `runsc cpu-features` output")
    return FeatureSet.from_names(architecture, line.split(","))


def run_cpu_features(runsc: str | Path, architecture: Architecture, timeout: float = 10.0) -> FeatureSet:
    """What `runsc cpu-features` reports on this host.

    Args:
        runsc: the path of the binary; it is run without a shell.
        architecture: this host's.
        timeout: in seconds.

    Raises:
        HostError: it cannot be run, is too old to know the command, fails, does not answer in time, or
            prints more than 64 KiB or what is no listing.
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
        return parse_cpu_features(output.decode("ascii"), architecture)
    except UnicodeDecodeError:
        raise HostError(subject, "what it printed is no listing: it is not ASCII text", _REMEDY) from None
    except InputError as error:
        raise HostError(
            subject, f"what it printed is no listing: {error.problem}", error.remedy or _REMEDY
        ) from error


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
    except OSError as error:
        problem = "it is a folder, not a program" if Path(subject).is_dir() else error.strerror
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
