"""A PostgreSQL server of one's own, on loopback, in a new folder that goes away with it."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs
from sqlalchemy import URL

DEBIAN: Final = Path("/usr/lib/postgresql")


@attrs.frozen
class Postgres:
    """A server.

    Attributes:
        programs: the folder of `initdb` and `pg_ctl`.
        folder: what is its own; `data` in it holds the database.
        port: where it listens on 127.0.0.1.
    """

    programs: Path
    folder: Path
    port: int

    @property
    def url(self) -> URL:
        """What `create_engine` takes."""
        driver = "postgresql+psycopg"
        return URL.create(driver, "postgres", host="127.0.0.1", port=self.port, database="postgres")

    def start(self) -> None:
        """Start it and wait until it answers; after a crash it recovers first."""
        self._run("pg_ctl", "start", "--silent", "--wait", "--log", self.folder / "log")

    def stop(self) -> None:
        """End it in good order."""
        self._run("pg_ctl", "stop", "--silent", "--wait", "--mode", "fast")

    def kill(self) -> None:
        """End it at once, as when the power fails: no process of it gets to write another byte."""
        postmaster = int((self.folder / "data/postmaster.pid").read_text().split("\n")[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        processes = [postmaster, *map(int, children)]
        for process in processes:
            os.kill(process, signal.SIGKILL)
        while any(Path(f"/proc/{process}").exists() for process in processes):
            time.sleep(0.01)

    def initialise(self, settings: Mapping[str, str]) -> None:
        """Make the database, and write the settings."""
        self._run("initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8")
        lines = (f"{key} = '{value}'\n" for key, value in settings.items())
        with (self.folder / "data/postgresql.conf").open("a") as configuration:
            configuration.writelines(lines)

    def _run(self, program: str, *arguments: str | Path) -> None:
        # Root may not run a server, so it lets Debian's user `postgres` do it.
        user = "postgres" if os.geteuid() == 0 else None
        if user is not None:
            shutil.chown(self.folder, user)
        subprocess.run(
            [self.programs / program, "--pgdata", self.folder / "data", *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
            user=user,
        )


@contextmanager
def postgres_server(**settings: str) -> Iterator[Postgres]:
    """A fresh server with `fsync` on and with `settings`, until the block ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        server = Postgres(find_programs(), Path(folder), port)
        always = {"listen_addresses": "127.0.0.1", "port": str(port), "unix_socket_directories": ""}
        server.initialise({**always, "fsync": "on", **settings})
        server.start()
        try:
            yield server
        finally:
            server.stop()


def find_programs() -> Path:
    """The folder of the newest PostgreSQL: Debian's, or the one on PATH."""
    versions = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = str(versions[-1]) if versions else shutil.which("initdb")
    if found is None:
        raise FileNotFoundError("no PostgreSQL server: `apt-get install postgresql`, or put initdb on PATH")
    return Path(found).resolve().parent
