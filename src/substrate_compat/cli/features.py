"""The verbs `compare`, `encode` and `decode`: feature sets by name and by mask."""

from typing import Final

import attrs
import click

from substrate_compat.cli.inputs import Features, architecture_of, read_features, read_text
from substrate_compat.cli.options import architecture_option, json_option
from substrate_compat.cli.output import EXIT_NO, EXIT_YES, note, say, say_json
from substrate_compat.cpufeatures import decode_cpu_features, encode_cpu_features
from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import quoted
from substrate_compat.identity import CPU_FEATURES
from substrate_compat.match import Mismatch, explain, matches

__all__ = ["VERBS"]

_RELATIONS: Final = {
    (True, True): "identical",
    (True, False): "subset",
    (False, True): "superset",
    (False, False): "neither",
}
_RELATION_WORDS: Final = {
    "identical": "identical to",
    "subset": "a subset of",
    "superset": "a superset of",
    "neither": "neither a subset nor a superset of",
}


@attrs.frozen
class _Comparison:
    """How A stands to B, and what each has that the other lacks; A is the worker of the mismatches."""

    relation: str
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    attributes: tuple[Mismatch, ...] = ()


@click.command("compare")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@architecture_option
@json_option
def _compare(a: str, b: str, architecture: Architecture | None, as_json: bool) -> int:
    """Compare two feature sets or identities: identical, subset, superset, or neither.

    A and B are runsc listings, masks, outputs of `cpuid -r` or identities as JSON: files, or the listing
    or mask itself. Exit status 0 if they are identical, else 1.
    """
    first, second = read_features(a, architecture), read_features(b, architecture)
    for each in (first, second):
        for line in each.notes:
            note(line)
    compared = _comparison(first, second)
    if as_json:
        say_json(
            {
                "relation": compared.relation,
                "onlyA": list(compared.only_a),
                "onlyB": list(compared.only_b),
                "attributes": [mismatch.key for mismatch in compared.attributes],
            }
        )
    else:
        say(f"A is {_RELATION_WORDS[compared.relation]} B")
        for mismatch in compared.attributes:
            say(f"- {mismatch.key}: A {_shown(mismatch.worker)}, B {_shown(mismatch.snapshot)}")
        for side, names in (("A", compared.only_a), ("B", compared.only_b)):
            if names:
                say(f"only {side} has {len(names)}: {' '.join(names)}")
    return EXIT_YES if compared.relation == "identical" else EXIT_NO


def _comparison(a: Features, b: Features) -> _Comparison:
    only_a, only_b = a.features.names, b.features.names
    if a.features.architecture is b.features.architecture:
        only_a, only_b = (a.features - b.features).names, (b.features - a.features).names
    if a.identity is None or b.identity is None:
        relation = _RELATIONS[a.features <= b.features, b.features <= a.features]
        return _Comparison(relation, only_a, only_b)
    # A snapshot of the smaller can be restored by the larger.
    relation = _RELATIONS[matches(b.identity, a.identity), matches(a.identity, b.identity)]
    differing = {
        mismatch.key: mismatch
        for mismatch in (
            *explain(a.identity, b.identity).mismatches,
            *map(_swapped, explain(b.identity, a.identity).mismatches),
        )
        if mismatch.key != CPU_FEATURES
    }
    return _Comparison(relation, only_a, only_b, tuple(differing.values()))


def _swapped(mismatch: Mismatch) -> Mismatch:
    return attrs.evolve(mismatch, worker=mismatch.snapshot, snapshot=mismatch.worker)


def _shown(value: str | None) -> str:
    return "has none" if value is None else quoted(value)


@click.command("encode")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@architecture_option
@json_option
def _encode(names: tuple[str, ...], architecture: Architecture | None, as_json: bool) -> None:
    """Print the mask of feature names, given one by one or separated by commas; NAME may be `-`.

    The names tell the architecture where they can; `aes` alone cannot.
    """
    listings = (read_text(name).removesuffix("\n") if name == "-" else name for name in names)
    wanted = [name for listing in listings for name in listing.split(",")]
    known = architecture or architecture_of(wanted)
    mask = encode_cpu_features(wanted, known)
    if as_json:
        say_json({"architecture": known.value, "cpu_features": mask})
    else:
        say(mask)


@click.command("decode")
@click.argument("mask", metavar="MASK")
@click.pass_context
@architecture_option
@json_option
def _decode(context: click.Context, mask: str, architecture: Architecture | None, as_json: bool) -> None:
    """Print the names of the features in a mask, sorted; MASK may be `-`."""
    if architecture is None:
        raise click.UsageError("a mask does not say of which architecture: give --arch", context)
    text = read_text(mask).removesuffix("\n") if mask == "-" else mask
    features = decode_cpu_features(text, architecture)
    if as_json:
        say_json({"architecture": architecture.value, "names": list(features)})
    else:
        say("\n".join(features))


VERBS: Final = (_compare, _encode, _decode)
