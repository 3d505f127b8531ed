"""The verbs of `fleet`: workers and snapshots in a database, and questions to it.

SQLAlchemy is an extra and slow to import, so it is imported when a verb runs.
"""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click

from substrate_compat.cli.inputs import named_path, read_snapshot, read_worker, read_workers
from substrate_compat.cli.options import json_option, sandbox_class_option
from substrate_compat.cli.output import EXIT_NO, EXIT_YES, say, say_json, say_table
from substrate_compat.errors import InputError, quoted
from substrate_compat.wording import runtime_name

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from substrate_compat.cli.database import Database, Retirement

__all__ = ["VERBS"]

_MOST_CANDIDATES: Final = 1_000_000


@click.group("fleet")
@click.option(
    "--db",
    "url",
    metavar="URL",
    default="sqlite:///fleet.db",
    show_default=True,
    envvar="SUBSTRATE_COMPAT_DB",
    show_envvar=True,
    help="The database, as SQLAlchemy writes it.",
)
@click.pass_context
def _fleet(context: click.Context, *, url: str) -> None:
    """Keep workers and snapshots in a database and ask it.

    The tables are made when the database has none.
    """
    context.obj = url


@_fleet.command("load")
@click.option("--workers", "lines", metavar="FILE.jsonl", multiple=True, help="Workers, one on each line.")
@sandbox_class_option
@click.argument("files", metavar="[NAME=]FILE...", nargs=-1)
@click.pass_obj
def _load(url: str, *, files: tuple[str, ...], lines: tuple[str, ...], sandbox_class: str | None) -> None:
    """Write workers, each in place of the one of its name.

    A FILE is a worker's identity or runtimes file.
    """
    workers = [read_worker(file, sandbox_class) for file in files]
    workers.extend(worker for file in lines for worker in read_workers(file))
    if not workers:
        raise click.UsageError("give at least one worker, as NAME=FILE or with --workers")
    _require_different(worker.name for worker in workers)
    with _open(url) as database:
        database.load({worker.name: worker.runtimes for worker in workers})
        _say_counts(database)


@_fleet.command("load-snapshots")
@click.argument("files", metavar="[NAME=]FILE...", nargs=-1, required=True)
@click.pass_obj
def _load_snapshots(url: str, *, files: tuple[str, ...]) -> None:
    """Write snapshots, each in place of the one of its name."""
    snapshots = {}
    _require_different(named_path(file)[0] for file in files)
    for file in files:
        name, path = named_path(file)
        snapshot = read_snapshot(path)
        if snapshot is None:
            raise InputError(path, "the snapshot carries no identity", "it fits everywhere: leave it out")
        snapshots[name] = snapshot
    with _open(url) as database:
        database.load_snapshots(snapshots)
        _say_counts(database)


@_fleet.command("candidates")
@click.option("--limit", type=click.IntRange(1, _MOST_CANDIDATES), default=100, show_default=True)
@click.option(
    "--allow-unknown", is_flag=True, help="Take a snapshot without an identity: it fits everywhere."
)
@click.argument("snapshot", metavar="SNAPSHOT")
@json_option
@click.pass_obj
def _candidates(url: str, *, limit: int, allow_unknown: bool, snapshot: str, as_json: bool) -> int:
    """List the workers that can restore SNAPSHOT, those first that do by their default.

    SNAPSHOT is an identity as JSON. Exit status 1 if there is none.
    """
    identity = read_snapshot(snapshot)
    if identity is None and not allow_unknown:
        raise InputError(
            snapshot, "the snapshot carries no identity", "--allow-unknown takes it as fitting everywhere"
        )
    with _open(url) as database:
        found = database.candidates(identity, limit)
    if as_json:
        say_json(
            {
                "candidates": [
                    {"worker": worker, "runtime": runtime_name(position)} for worker, position in found
                ]
            }
        )
    elif found:
        say_table(("worker", "runtime"), [(worker, runtime_name(position)) for worker, position in found])
    else:
        say("no worker can restore the snapshot", style="red")
    return EXIT_YES if found else EXIT_NO


@_fleet.command("retire")
@click.argument("workers", metavar="WORKER...", nargs=-1, required=True)
@json_option
@click.pass_obj
def _retire(url: str, *, workers: tuple[str, ...], as_json: bool) -> int:
    """Say which snapshots no worker could restore any more if these were gone.

    Nothing is removed. Exit status 1 if there are such snapshots.
    """
    with _open(url) as database:
        retirement = database.retire(workers)
    lost = [each for each in retirement.affected if each.workers_left == 0]
    if as_json:
        say_json(
            {
                "snapshots": retirement.snapshots,
                "alreadyLost": retirement.already_lost,
                "stranded": len(lost),
                "affected": [
                    {
                        "snapshot": each.snapshot_id,
                        "workers": each.workers,
                        "workersLeft": each.workers_left,
                    }
                    for each in retirement.affected
                ],
            }
        )
    else:
        _say_retirement(retirement, len(lost))
    return EXIT_NO if lost else EXIT_YES


def _open(url: str) -> "AbstractContextManager[Database]":
    try:
        from substrate_compat.cli.database import Database
    except ModuleNotFoundError as error:
        raise InputError(
            "fleet", f"{error.name} is missing", "install it with: pip install 'substrate-compat[sql]'"
        ) from error
    return Database.open(url)


def _require_different(names: Iterable[str]) -> None:
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise InputError("NAME", f"{quoted(name)} is given {times} times", "name each but once")


def _say_counts(database: "Database") -> None:
    workers, snapshots, identities = database.counts()
    say(f"the fleet has {workers} workers and {snapshots} snapshots of {identities} distinct identities")


def _say_retirement(retirement: "Retirement", lost: int) -> None:
    if retirement.affected:
        rows = [
            (each.snapshot_id, str(each.workers), str(each.workers_left)) for each in retirement.affected
        ]
        say_table(("snapshot", "workers", "left"), rows)
    style = "red" if lost else "green"
    say(f"{lost} of {retirement.snapshots} snapshots would be stranded", style=style)
    if retirement.already_lost:
        say(f"{retirement.already_lost} more can be restored by no worker even now")


VERBS: Final = (_fleet,)
