"""What node and worker share: noticing that a folder has changed."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from watchfiles import watch

__all__ = ["changes", "log_to_stderr", "stop_on_sigterm"]

_LOG: Final = logging.getLogger(__name__)
_TICK_MS: Final = 100


def changes(folder: Path, poll: float, stop: threading.Event) -> Iterator[bool]:
    """Yields ten times a second whether anything in `folder` changed since the last time.

    While it cannot be watched (it is not there, or the host has no watch left), that is said once, and a
    change is assumed every `poll` seconds. It ends when `stop` is set.
    """
    said = ""
    while not stop.is_set():
        try:
            watched = folder.stat()
            found_each = watch(
                folder,
                watch_filter=None,
                debounce=_TICK_MS,
                stop_event=stop,
                rust_timeout=_TICK_MS,
                yield_on_timeout=True,
            )
            for found in found_each:
                said = ""
                yield bool(found)
                if not os.path.samestat(watched, folder.stat()):
                    break
        except OSError as error:
            if said != str(error):
                said = str(error)
                _LOG.warning("cannot watch %s (%s): polling every %g s", folder, error, poll)
            stop.wait(poll)
        yield True


def stop_on_sigterm() -> threading.Event:
    """An event that SIGTERM sets."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    return stop


def log_to_stderr(name: str) -> logging.Logger:
    """The logger of a program; a line begins with the time in seconds."""
    logging.basicConfig(format="%(created).3f %(levelname)s %(message)s", level=logging.INFO)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)
    return logging.getLogger(name)
