"""The verb `check`: which of these workers can restore this snapshot, and why not the others?"""

from typing import Final

import click

from substrate_compat.cli.inputs import Worker, read_snapshot, read_worker, read_workers
from substrate_compat.cli.options import json_option, sandbox_class_option
from substrate_compat.cli.output import EXIT_NO, EXIT_UNCERTAIN, EXIT_YES, Json, say, say_json
from substrate_compat.errors import InputError, visible
from substrate_compat.match import Mismatch, Verdict, WorkerVerdict, explain_worker
from substrate_compat.wording import describe, runtime_name

__all__ = ["VERBS", "say_verdict"]


@click.command("check")
@click.option(
    "--worker", "files", metavar="[NAME=]FILE", multiple=True, help="A worker's identity or runtimes file."
)
@click.option("--workers", "lines", metavar="FILE.jsonl", multiple=True, help="Workers, one on each line.")
@sandbox_class_option
@click.option(
    "--allow-unknown", is_flag=True, help="Take a snapshot without an identity: it fits everywhere."
)
@click.option("--strict", is_flag=True, help="Exit with 3 where no worker's yes is certain.")
@click.argument("snapshot", metavar="SNAPSHOT")
@json_option
def _check(
    *,
    files: tuple[str, ...],
    lines: tuple[str, ...],
    sandbox_class: str | None,
    allow_unknown: bool,
    strict: bool,
    snapshot: str,
    as_json: bool,
) -> int:
    """Say of each worker whether it can restore SNAPSHOT, with every reason against it.

    SNAPSHOT is an identity as JSON. Exit status 0 if at least one worker can restore it.
    """
    workers = [read_worker(file, sandbox_class) for file in files]
    workers.extend(worker for file in lines for worker in read_workers(file))
    if not workers:
        raise click.UsageError("give at least one worker, with --worker or --workers")
    identity = read_snapshot(snapshot)
    if identity is None and not allow_unknown:
        raise InputError(
            snapshot, "the snapshot carries no identity", "--allow-unknown takes it as fitting everywhere"
        )
    verdicts = [(worker, explain_worker(worker.runtimes, identity)) for worker in workers]
    able = [verdict for _, verdict in verdicts if verdict.compatible]
    if as_json:
        say_json(_as_json(verdicts))
    else:
        for worker, verdict in verdicts:
            say_verdict("snapshot", worker.name, verdict)
        say(f"{len(able)} of {len(verdicts)} workers can restore the snapshot")
    if not able:
        return EXIT_NO
    certain = any(verdict.certain for verdict in able)
    return EXIT_YES if certain or not strict else EXIT_UNCERTAIN


def say_verdict(snapshot: str, worker: str, verdict: WorkerVerdict) -> None:
    """Print one verdict, its direction first, and the reasons indented below."""
    answer, *reasons = describe(verdict).split("\n")
    say(
        f"{visible(snapshot)} -> {visible(worker)}: {answer}",
        style="green" if verdict.compatible else "red",
    )
    for reason in reasons:
        say(f"  {reason}")


def _as_json(verdicts: list[tuple[Worker, WorkerVerdict]]) -> Json:
    return {
        "direction": "snapshot -> worker",
        "workers": [
            {
                "worker": worker.name,
                "compatible": verdict.compatible,
                "certain": verdict.certain,
                "runtimes": [
                    {"runtime": runtime_name(position), **_verdict_json(each)}
                    for position, each in enumerate(verdict.verdicts)
                ],
            }
            for worker, verdict in verdicts
        ],
        "canRestore": sum(verdict.compatible for _, verdict in verdicts),
    }


def _verdict_json(verdict: Verdict) -> dict[str, Json]:
    return {
        "compatible": verdict.compatible,
        "certain": verdict.certain,
        "mismatches": [_mismatch_json(mismatch) for mismatch in verdict.mismatches],
        "unchecked": list(verdict.unchecked),
    }


def _mismatch_json(mismatch: Mismatch) -> Json:
    return {
        "reason": mismatch.reason.value,
        "key": mismatch.key,
        "worker": mismatch.worker,
        "snapshot": mismatch.snapshot,
        "missingFeatures": list(mismatch.features),
    }


VERBS: Final = (_check,)
