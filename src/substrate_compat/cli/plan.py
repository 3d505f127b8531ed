"""The verb `plan`: what does a worker on this host offer under this config?"""

import json
from collections.abc import Callable, Sequence
from typing import Final

import click

from substrate_compat.cli.configs import read_config
from substrate_compat.cli.inputs import read_features, read_text
from substrate_compat.cli.options import architecture_option, json_option
from substrate_compat.cli.output import EXIT_NO, EXIT_YES, Json, complain, note, say, say_json
from substrate_compat.cli.probe import HOST_CPUINFO
from substrate_compat.cpufeatures import FeatureSet
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuinfo import parse_cpuinfo
from substrate_compat.errors import ConfigError, InputError, quoted
from substrate_compat.plan import Plan, plan_worker_runtimes
from substrate_compat.runsc import run_cpu_features
from substrate_compat.runtime_hash import asset_digest
from substrate_compat.wire import dumps_runtimes, write_runtimes
from substrate_compat.wording import describe

__all__ = ["VERBS"]


@click.command("plan")
@click.argument("config", metavar="CONFIG")
@click.option("--cpuinfo", metavar="FILE", help="A capture of /proc/cpuinfo instead of this host's.")
@architecture_option
@click.option(
    "--features",
    "listings",
    metavar="DIGEST=FILE",
    multiple=True,
    help="What the runsc of that SHA-256 reports on the host: the output of its `cpu-features`.",
)
@click.option(
    "--runsc",
    "binaries",
    metavar="DIGEST=PATH",
    multiple=True,
    help="Ask the runsc of that SHA-256, on this host.",
)
@click.option("-o", "--output", metavar="FILE", help="Write the file whole, if it would change.")
@json_option
def _plan(
    *,
    config: str,
    cpuinfo: str | None,
    architecture: Architecture | None,
    listings: tuple[str, ...],
    binaries: tuple[str, ...],
    output: str | None,
    as_json: bool,
) -> int:
    """Print the sandbox-runtimes.json of a worker on this host, or on the host of the given captures.

    CONFIG is a SandboxConfig as `kubectl get -o yaml` or `-o json` prints it. What is left out is told on
    standard error. Exit status 1 if the default version cannot be offered.
    """
    cpu = parse_cpuinfo(read_text(cpuinfo or HOST_CPUINFO), architecture)
    features = {
        **_by_digest("--features", listings, lambda path: _listed(path, cpu.architecture)),
        **_by_digest("--runsc", binaries, lambda path: run_cpu_features(path, cpu.architecture)),
    }
    try:
        plan = plan_worker_runtimes(read_config(config), cpu, features)
    except ConfigError as error:
        complain(str(error))
        return EXIT_NO
    if output is not None:
        written = write_runtimes(output, plan.runtimes)
        note(f"{output}: {'written' if written else 'unchanged'}")
    if as_json:
        say_json(_as_json(plan))
    elif output is None:
        say(dumps_runtimes(plan.runtimes).rstrip("\n"))
    for line in describe(plan).splitlines():
        note(line)
    return EXIT_YES


def _by_digest(
    option: str, arguments: Sequence[str], read: Callable[[str], FeatureSet]
) -> dict[str, FeatureSet]:
    """The feature set of each runsc by its digest, from arguments of the form DIGEST=PATH."""
    features: dict[str, FeatureSet] = {}
    for argument in arguments:
        written, equals, path = argument.partition("=")
        if not equals:
            raise InputError(option, f"{quoted(argument)} has no `=`", "write DIGEST=PATH")
        digest = asset_digest(written, option)
        if digest in features:
            raise InputError(option, f"{digest} is given twice")
        features[digest] = read(path)
    return features


def _listed(path: str, architecture: Architecture) -> FeatureSet:
    found = read_features(path, architecture)
    for line in found.notes:
        note(f"{path}: {line}")
    return found.features


def _as_json(plan: Plan) -> Json:
    return {
        "runtimes": json.loads(dumps_runtimes(plan.runtimes)),
        "leftOut": [
            {"name": each.name, "reason": each.reason.value, "problem": each.problem}
            for each in plan.left_out
        ],
        "versions": {runtime_hash: version.name for runtime_hash, version in plan.versions.items()},
        "notes": list(plan.notes),
    }


VERBS: Final = (_plan,)
