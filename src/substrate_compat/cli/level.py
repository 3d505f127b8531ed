"""The verbs `level` and `level verify`: what gVisor may show so that all workers restore all snapshots."""

import re
from collections.abc import Mapping
from operator import itemgetter
from typing import Final

import attrs
import click

from substrate_compat.cli.fleets import feature_sets, read_fleet
from substrate_compat.cli.inputs import is_literal, parse_features, read_text
from substrate_compat.cli.options import architecture_option, json_option, sandbox_class_option
from substrate_compat.cli.output import EXIT_NO, EXIT_YES, Json, note, say, say_json
from substrate_compat.cpufeatures import FeatureSet, decode_cpu_features, parse_architecture
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.cpuinfo import parse_cpuinfo
from substrate_compat.errors import InputError, quoted
from substrate_compat.hosts import equal_hosts
from substrate_compat.levels import (
    ANNOTATION,
    LevelChoice,
    LevelGroup,
    annotation,
    beyond_level,
    choose_levels,
    guest_flags,
    level_name,
    unannounced,
)
from substrate_compat.strictjson import parse_json
from substrate_compat.whatif import Pin, cost_of_adding, pins
from substrate_compat.wording import describe, few

__all__ = ["VERBS", "say_level"]

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_PASS_ON: Final = f"""\
The container manager passes the annotation on to runsc only if it is told to.
- containerd, in /etc/containerd/config.toml (version 3: plugins.'io.containerd.cri.v1.runtime'):
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runsc]
      runtime_type = "io.containerd.runsc.v1"
      pod_annotations = ["{ANNOTATION}"]
  (https://gvisor.dev/docs/user_guide/containerd/configuration/)
- docker run: --annotation {ANNOTATION}=...
A level that does not reach the guest is worse than none. To see that it does, in a sandbox:
    cat /proc/cpuinfo | substrate-compat level verify LEVEL --guest -
"""


class _LevelCommand(click.Command):
    """`level`, which makes way where its first word is `verify`."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        if args[:1] == [_verify.name]:
            return _verify.make_context(f"{info_name} {_verify.name}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command("level", cls=_LevelCommand, epilog="See also: substrate-compat level verify --help")
@click.argument("files", metavar="[NAME=]FILE...", nargs=-1, required=True)
@click.option("--levels", "most", metavar="K", type=click.IntRange(1), default=1, help="At most K levels.")
@click.option(
    "--weight", "weights", metavar="NAME=N", multiple=True, help="How many machines NAME stands for."
)
@click.option("--add", "added", metavar="[NAME=]FILE", multiple=True, help="What would this host cost?")
@sandbox_class_option
@architecture_option
@json_option
def _level(
    *,
    files: tuple[str, ...],
    most: int,
    weights: tuple[str, ...],
    added: tuple[str, ...],
    sandbox_class: str | None,
    architecture: Architecture | None,
    as_json: bool,
) -> None:
    """Print the level of a fleet: what gVisor may show so that every worker restores every snapshot.

    FILE is a runsc listing, a mask, the output of `cpuid -r`, an identity, a sandbox-runtimes.json, or has
    a worker as JSON in each line. Printed are the level and its short name (for a node label), its
    annotation, what each host gives up, and who holds the level back.
    """
    hosts = feature_sets(read_fleet(files, architecture, sandbox_class))
    newcomers = feature_sets(read_fleet(added, architecture, sandbox_class))
    choice = choose_levels(hosts, most, _weights(hosts, weights) if weights else None)
    cost = cost_of_adding(hosts, newcomers) if newcomers else None
    if as_json:
        say_json(_as_json(hosts, choice, cost))
        return
    for group in choice.groups:
        say_level({name: hosts[name] for name in group.hosts}, group)
        say("")
    say(_PASS_ON)
    for line in describe(choice).split("\n"):
        say(line)
    if cost is not None:
        lost = f"{len(cost)}: {', '.join(cost)}" if cost else "nothing"
        say(f"adding {few(sorted(newcomers))} would cost one level for all {lost}")


def say_level(hosts: Mapping[str, FeatureSet], group: LevelGroup) -> None:
    """Print one level: its name, its annotation, what each host gives up and who holds it back."""
    level = group.level.features
    title, *details = describe(attrs.evolve(group.level, dropped={})).split("\n")
    say(title, style="bold")
    for line in details:
        say(line)
    say(f'{ANNOTATION}: "{annotation(level)}"')
    say("What each host gives up:")
    for features, names in sorted(equal_hosts(hosts).items(), key=itemgetter(1)):
        lost = (features - level).names
        say(f"- {few(names)}: " + (f"{len(lost)}: {', '.join(lost)}" if lost else "nothing"))
    holding = [pin for pin in pins(hosts) if pin.gained]
    say("Who holds it back:" if holding else "No host alone holds it back.")
    for pin in holding:
        say(f"- {describe(pin)}")


def _weights(hosts: Mapping[str, FeatureSet], weights: tuple[str, ...]) -> dict[str, int]:
    """The weights that `--weight` gives, and 1 for each other host."""
    given = {}
    for weight in weights:
        name, _, number = weight.rpartition("=")
        if _NUMBER.fullmatch(number) is None:
            raise click.BadParameter(f"{quoted(weight)} is not NAME=N", param_hint="--weight")
        given[name] = int(number)
    return {**dict.fromkeys(hosts, 1), **given}


def _as_json(hosts: Mapping[str, FeatureSet], choice: LevelChoice, cost: FeatureSet | None) -> Json:
    found: dict[str, Json] = {
        "levels": [_group_json(hosts, group) for group in choice.groups],
        "loss": choice.loss,
        "losses": list(choice.losses),
        "exact": choice.exact,
    }
    if cost is not None:
        found["costOfAdding"] = list(cost)
    return found


def _group_json(hosts: Mapping[str, FeatureSet], group: LevelGroup) -> Json:
    level = group.level.features
    return {
        "name": level_name(level),
        "architecture": level.architecture.value,
        "cpu_features": level.hex,
        "features": list(level),
        "annotations": {ANNOTATION: annotation(level)},
        "notInAnnotation": list(unannounced(level)),
        "dropped": {feature: list(names) for feature, names in group.level.dropped.items()},
        "hosts": {name: {"givesUp": list(hosts[name] - level)} for name in group.hosts},
        "pins": [_pin_json(pin) for pin in pins({name: hosts[name] for name in group.hosts})],
    }


def _pin_json(pin: Pin) -> Json:
    return {"hosts": list(pin.hosts), "levelWouldGain": list(pin.gained)}


@click.command("verify")
@click.argument("level", metavar="LEVEL")
@click.option("--guest", metavar="CPUINFO", required=True, help="/proc/cpuinfo as the guest reads it.")
@architecture_option
@json_option
def _verify(level: str, guest: str, architecture: Architecture | None, as_json: bool) -> int:
    """Say whether a guest really runs under LEVEL, by its own /proc/cpuinfo.

    LEVEL is the value of the annotation, a mask, or a file with one of them or with what `level --json`
    printed. Exit status 1 if the guest sees more than the level.
    """
    allowed = _read_level(level, architecture)
    cpu = parse_cpuinfo(read_text(guest), allowed.architecture)
    if not cpu.looks_like_gvisor:
        raise InputError(guest, "gVisor did not write this cpuinfo", "read it inside the sandbox")
    seen = cpu.flags | cpu.varying_flags
    beyond = beyond_level(seen, allowed)
    unseen = sorted(guest_flags(allowed) - seen)
    name = level_name(allowed)
    if as_json:
        say_json({"level": name, "underLevel": not beyond, "beyond": [*beyond], "unseen": unseen})
    elif beyond:
        say(f"no: the guest sees {len(beyond)} that {name} does not have: {', '.join(beyond)}")
        say("was the annotation passed on, and the sandbox started with it? see `substrate-compat level`")
    else:
        say(f"yes: the guest sees nothing beyond {name}")
        if unseen:
            note(f"of the level it does not see: {', '.join(unseen)}")
    return EXIT_NO if beyond else EXIT_YES


def _read_level(argument: str, architecture: Architecture | None) -> FeatureSet:
    """The level in a listing, a mask or a file, or in the file that `level --json` printed."""
    if is_literal(argument):
        return parse_features(argument, architecture).features
    text = read_text(argument)
    if not text.lstrip().startswith("{"):
        return parse_features(text, architecture).features
    match parse_json(text):
        case {"levels": [{"architecture": str(of), "cpu_features": str(mask)}]}:
            return decode_cpu_features(mask, parse_architecture(of))
        case {"levels": [_, _, *_]}:
            raise InputError(argument, "it has several levels", "give the annotation of one as LEVEL")
        case _:
            return parse_features(text, architecture).features


VERBS: Final = (_level,)
