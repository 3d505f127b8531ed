"""A worker: registers with the scheduler what its `sandbox-runtimes.json` says.

python -m examples.worker worker-1 --file FILE --class gvisor --scheduler 127.0.0.1:8080
"""

import argparse
import http.client
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import quote

from examples.watching import changes, log_to_stderr, stop_on_sigterm
from substrate_compat.errors import CompatError, InputError
from substrate_compat.identity import WorkerRuntimes
from substrate_compat.registration import Backoff, Register, Report, WorkerRules, WorkerState
from substrate_compat.wire import dumps_worker, make_converter, read_runtimes

_TRY_AGAIN: Final = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
_TIMEOUT: Final = 10.0


class Scheduler:
    """The scheduler as this worker sees it."""

    def __init__(self, address: str, worker: str) -> None:
        self.address = address
        self.worker = worker
        self.converter = make_converter()

    def put(self, runtimes: WorkerRuntimes) -> tuple[int, str]:
        return self._request("PUT", dumps_worker(self.worker, runtimes, self.converter).encode())

    def delete(self) -> tuple[int, str]:
        return self._request("DELETE", None)

    def _request(self, method: str, body: bytes | None) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self.address, timeout=_TIMEOUT)
        try:
            connection.request(method, f"/workers/{quote(self.worker, safe='')}", body)
            response = connection.getresponse()
            return response.status, response.read().decode(errors="replace")
        finally:
            connection.close()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("worker", metavar="ID")
    parser.add_argument("--file", type=Path, required=True, metavar="FILE")
    parser.add_argument("--class", dest="sandbox_class", required=True, choices=("gvisor", "microvm"))
    parser.add_argument("--scheduler", required=True, metavar="HOST:PORT")
    parser.add_argument("--poll", type=float, default=5.0, help="seconds, where watching cannot start")
    parser.add_argument("--resync", type=float, default=300.0, help="seconds")
    parser.add_argument("--spread", type=float, default=30.0, help="seconds")
    parser.add_argument("--retry", type=float, default=0.5, help="seconds after the first failure")
    parser.add_argument("--longest-retry", type=float, default=30.0, help="seconds")
    options = parser.parse_args(arguments)
    log = log_to_stderr("worker")
    rules = WorkerRules(options.resync, options.spread, Backoff(options.retry, options.longest_retry))
    scheduler = Scheduler(options.scheduler, options.worker)
    state = WorkerState()

    def found() -> WorkerRuntimes | CompatError | None:
        try:
            return read_runtimes(options.file, options.sandbox_class, scheduler.converter)
        except FileNotFoundError:
            return None
        except CompatError as error:
            return error

    def register(runtimes: WorkerRuntimes) -> WorkerState:
        try:
            status, answer = scheduler.put(runtimes)
        except (OSError, http.client.HTTPException) as error:
            status, answer = HTTPStatus.SERVICE_UNAVAILABLE, repr(error)
        except InputError as error:
            status, answer = HTTPStatus.BAD_REQUEST, str(error)
        now = time.monotonic()
        if status < HTTPStatus.MULTIPLE_CHOICES:
            log.info("registered")
            return rules.registered(state, runtimes, now=now, draw=random.random())
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _TRY_AGAIN:
            failed = rules.failed(state, now=now)
            log.warning("failed, again in %g s: %s", failed.due - now, answer)
            return failed
        log.error("rejected (%d): %s", status, answer)
        return rules.rejected(state, runtimes, now=now)

    for changed in changes(options.file.parent, options.poll, stop_on_sigterm()):
        if changed or time.monotonic() >= state.due:
            state, action = rules.decide(state, found(), now=time.monotonic())
            if isinstance(action, Register):
                state = register(action.runtimes)
            elif isinstance(action, Report):
                log.error("%s", action.problem)
    with suppress(OSError, http.client.HTTPException):
        scheduler.delete()


if __name__ == "__main__":
    main()
