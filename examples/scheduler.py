"""A scheduler: knows the workers that registered, and says which can restore a snapshot.

python -m examples.scheduler --port 8080

PUT /workers/{id}     what the worker offers, as `wire.dumps_worker` writes it: 204
DELETE /workers/{id}  204, or 404
POST /placements      the snapshot's identity, as `wire.dumps_identity` writes it, or `null` if it has none:
                      200 and the candidates; 409 and the reasons why none; 422 for `null`

What cannot be understood is 400 with the path of the fault; a body over 1 MiB is 413. The workers are kept
in memory: after a restart each is known again once it has renewed its registration.
"""

import argparse
import logging
from collections.abc import Mapping, Sequence
from itertools import islice

import attrs
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from examples.watching import log_to_stderr
from substrate_compat.errors import InputError
from substrate_compat.identity import SandboxRuntime
from substrate_compat.index import WorkerIndex
from substrate_compat.strictjson import MAX_BYTES, parse_json
from substrate_compat.why_none import WhyNone
from substrate_compat.wire import loads_identity, loads_worker, make_converter
from substrate_compat.wording import describe


class Scheduler:
    """The service; requests take turns, so that the index needs no lock."""

    def __init__(self, *, allow_unknown: bool, most: int, log: logging.Logger) -> None:
        self.allow_unknown = allow_unknown
        self.most = most
        self.log = log
        self.index = WorkerIndex()
        self.converter = make_converter()

    async def put(self, request: Request) -> Response:
        worker, runtimes = loads_worker(await body(request), self.converter)
        if worker != request.path_params["id"]:
            raise InputError("$.worker", "not the worker of the URL")
        self.index.put(worker, runtimes)
        self.log.info("put %s", worker)
        return Response(status_code=204)

    async def delete(self, request: Request) -> Response:
        try:
            self.index.remove(request.path_params["id"])
        except KeyError:
            raise HTTPException(404, "no such worker") from None
        self.log.info("deleted %s", request.path_params["id"])
        return Response(status_code=204)

    async def place(self, request: Request) -> Response:
        data = await body(request)
        snapshot = None if parse_json(data) is None else loads_identity(data, self.converter)
        if snapshot is None and not self.allow_unknown:
            raise HTTPException(422, "the snapshot has no identity: nobody knows who can restore it")
        candidates = list(islice(self.index.candidates(snapshot), self.most))
        if candidates:
            return JSONResponse({"candidates": candidates})
        why = self.index.why_none(snapshot)
        return JSONResponse({} if why is None else reasons(why, snapshot), 409)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/workers/{id:path}", self.put, methods=["PUT"]),
                Route("/workers/{id:path}", self.delete, methods=["DELETE"]),
                Route("/placements", self.place, methods=["POST"]),
            ],
            exception_handlers={InputError: bad_input},
        )


async def body(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BYTES:
            raise HTTPException(413, f"the body is longer than {MAX_BYTES} bytes")
    return bytes(data)


def reasons(why: WhyNone, snapshot: SandboxRuntime | None) -> Mapping[str, object]:
    """The body of a 409: for a program, and in words."""
    needed = {} if snapshot is None else dict(snapshot.compat_version.attributes)
    return {
        "workers": why.workers,
        "excluded": [{**attrs.asdict(each), "needed": needed.get(each.key)} for each in why.excluded],
        "nearest": [{"features": each.features, "workers": each.workers} for each in why.nearest],
        "text": describe(why),
    }


async def bad_input(_: Request, error: Exception) -> Response:
    if not isinstance(error, InputError):
        raise error
    return JSONResponse({"path": error.subject, "problem": error.problem, "remedy": error.remedy}, 400)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, required=True, help="on the loopback interface")
    parser.add_argument("--allow-unknown", action="store_true", help="place snapshots without an identity")
    parser.add_argument("--most", type=int, default=10, help="the most candidates in an answer")
    options = parser.parse_args(arguments)
    log = log_to_stderr("scheduler")
    scheduler = Scheduler(allow_unknown=options.allow_unknown, most=options.most, log=log)
    uvicorn.run(scheduler.app(), host="127.0.0.1", port=options.port, access_log=False, log_config=None)


if __name__ == "__main__":
    main()
