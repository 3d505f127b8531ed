"""The command line: `python -m proof run`, `here`, `judge` and `setup`."""

import asyncio
import errno
import fcntl
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from proof.arm64 import unpack_arm64
from proof.build import Guest, build_guest, build_runsc, call, sha256
from proof.campaign import FLEET, MODELS, Laboratory, run_campaign
from proof.here import check_host, prove_here
from proof.jobs import ProofError
from proof.machine import EMULATORS, Machines
from proof.needs import check, install
from proof.record import Record, dumps_record, loads_record
from proof.report import report, summary
from proof.screen import Screen
from proof.verdicts import disagreements, workers
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import CompatError

ROOT: Final = Path(__file__).parents[1]
CACHE: Final = ROOT / ".cache/proof"
DISAGREES: Final = 1
INCOMPLETE: Final = 3
"""Exit statuses: a verdict was wrong; none was, but some machine did not run. (2 is for wrong options.)"""
_ARCHITECTURE: Final = click.option(
    "--architecture",
    type=click.Choice([each.value for each in Architecture]),
    default="amd64",
    show_default=True,
)


class _StoppedError(click.ClickException):
    """Ctrl-C, or a signal that means as much."""

    exit_code = 130


@click.group()
def main() -> None:
    """Hold the library's verdict against real gVisor restores."""


@main.command()
@_ARCHITECTURE
def setup(architecture: str) -> None:
    """Install what is missing, as root or by sudo."""
    with _plain_errors():
        install(Architecture(architecture))
        Console().print("All that the proof needs is there.")


@main.command()
@_ARCHITECTURE
@click.option("--models", help="QEMU's CPU models, with blanks between: 'EPYC max,-avx2'.")
@click.option("--fleet", help="Those of the models whose common level is tried.")
@click.option("--at-once", type=click.IntRange(1), default=2, show_default=True, help="Running machines.")
@click.option(
    "--patience", type=click.FloatRange(1), default=1, help="Times the time limits, on a slow host."
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where docs/proof.md and tests/data go: the repository, or with --models the cache folder.",
)
def run(
    *,
    architecture: str,
    models: str | None,
    fleet: str | None,
    at_once: int,
    patience: float,
    output: Path | None,
) -> None:
    """Run a campaign on emulated machines, and write the report."""
    kind = Architecture(architecture)
    chosen = models.split() if models else MODELS[kind]
    group = fleet.split() if fleet else [model for model in chosen if model in FLEET[kind]]
    if strangers := set(group) - set(chosen):
        raise click.BadParameter(
            f"{' '.join(sorted(strangers))} is not among the models", param_hint="--fleet"
        )
    console = Console()
    with _plain_errors(), _cache_folder() as cache:
        check(kind)
        with console.status("Building runsc; about two minutes, once"):
            guest = _guest(cache, kind)
        machines = Machines(EMULATORS[kind].patient(patience), guest, cache)
        record = _campaign(console, machines, chosen, group, at_once)
        target = output or (CACHE / "other-models" if models else ROOT)
        _write(target, record)
        console.print(f"Report: {target / 'docs/proof.md'}", highlight=False)
        sys.exit(_conclude(console, record))


@main.command()
@click.argument("record", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def judge(record: Path) -> None:
    """Hold today's verdicts against a campaign that was recorded; nothing is run."""
    with _plain_errors():
        sys.exit(_conclude(Console(), loads_record(record.read_text("utf-8"))))


@main.command()
def here() -> None:
    """Take and restore snapshots on this host itself."""
    console = Console()
    with _plain_errors(), _cache_folder() as cache:
        check(None)
        check_host()
        with console.status("Building runsc; about two minutes, once"):
            runsc = build_runsc(cache, Architecture.AMD64)
        busybox = Path("/bin/busybox")
        wrong = 0
        for found in prove_here(runsc, busybox, (sha256(runsc), sha256(busybox)), cache):
            wrong += bool(found.wrong)
            console.print(f"{'NOT SO' if found.wrong else 'ok'}  {found.what}", highlight=False)
            if found.wrong:
                console.print(f"        {found.wrong}", highlight=False)
        sys.exit(DISAGREES if wrong else 0)


def _guest(cache: Path, architecture: Architecture) -> Guest:
    runsc = build_runsc(cache, architecture)
    root = Path("/") if architecture is Architecture.AMD64 else unpack_arm64(cache)
    return build_guest(cache, root, architecture, runsc)


def _campaign(
    console: Console, machines: Machines, models: Sequence[str], fleet: Sequence[str], at_once: int
) -> Record:
    """Run it; once it is complete, its answers are put aside, so that the next one starts anew."""
    cache = machines.cache
    answers = cache / "answers"
    answers.mkdir(exist_ok=True)
    version = (
        call([machines.emulator.program, "--version"], cache)
        .split("\n")[0]
        .removeprefix("QEMU emulator version ")
    )

    with Screen(console) as screen:
        laboratory = Laboratory(machines, version, answers, screen, asyncio.Semaphore(at_once))
        record = asyncio.run(run_campaign(laboratory, models, fleet))
    if not record.not_run:
        last = cache / f"answers-of-the-last-{machines.guest.architecture.value}"
        shutil.rmtree(last, ignore_errors=True)
        last.mkdir()
        for kept in laboratory.used:
            kept.rename(last / kept.name)
    return record


def _write(target: Path, record: Record) -> None:
    """Put the record beside those of other architectures, and write the page of all of them."""
    data, docs = target / "tests/data", target / "docs"
    for folder in (data, docs):
        folder.mkdir(parents=True, exist_ok=True)
    (data / f"proof-{record.architecture.value}.json").write_text(dumps_record(record), "utf-8")
    records = [loads_record(path.read_text("utf-8")) for path in sorted(data.glob("proof-*.json"))]
    (docs / "proof.md").write_text(report(records), "utf-8")


def _conclude(console: Console, record: Record) -> int:
    """Say what was found; the exit status."""
    for line in summary(record):
        console.print(line, highlight=False)
    for model, reason in record.not_run.items():
        console.print(f"Not run: {model}: {reason}", highlight=False, markup=False)
    found = list(disagreements(record, workers(record)))
    for line in found:
        console.print(f"DISAGREEMENT {line}", highlight=False, markup=False)
    return DISAGREES if found else INCOMPLETE if record.not_run else 0


@contextmanager
def _cache_folder() -> Iterator[Path]:
    """The cache folder, for one proof at a time; what a killed one left there goes."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ProofError(f"another proof runs in {CACHE}") from None
        for left in CACHE.glob("tmp-*"):
            shutil.rmtree(left)
        yield CACHE


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn what can go wrong into a line and an exit status."""
    try:
        with _signals():
            yield
    except KeyboardInterrupt:
        kept = len(list(CACHE.glob("answers/*.tar")))
        raise _StoppedError(
            f"stopped; what {kept} machines answered is kept, and `make proof` goes on from there"
        ) from None
    except BaseExceptionGroup as group:
        raise _worded(_first(group)) from group
    except (ProofError, CompatError, OSError) as error:
        raise _worded(error) from error


@contextmanager
def _signals() -> Iterator[None]:
    """Take the signals that end a program as Ctrl-C, even where the shell had that ignored."""
    before = {signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler)}
    for number in (signal.SIGTERM, signal.SIGHUP):
        before[number] = signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _worded(error: BaseException) -> BaseException:
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        free = shutil.disk_usage(CACHE).free >> 20
        return click.ClickException(
            f"the disk of {CACHE} is full ({free} MiB free); make room and run it again: "
            "it goes on from what it had"
        )
    if isinstance(error, (ProofError, CompatError, OSError)):
        return click.ClickException(str(error))
    return error


if __name__ == "__main__":
    main()
