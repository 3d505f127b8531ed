"""Inputs made from inputs, with their syntax left whole: plain bytes hardly ever get past it.

Whatever in an input is JSON (all of it, a line, a part between two NULs) is changed as a value; of other
text the pieces between separators are moved, repeated, left out and exchanged for words of the formats.
"""

import json
import re
from collections.abc import Callable, Iterable
from random import Random
from typing import Final

__all__ = ["mutated"]

_REPEATS: Final = (1, 1, 1, 2, 3, 40)
_EDITS: Final = (1, 1, 1, 2, 4)
_SEPARATORS: Final = (b"\n", b",", b" ", b":", b"=", b"@", b"\t")
_NUMBERS: Final = (0.0, -1.5, 1e308, float("inf"), float("nan"))

Node = object
"""A JSON value; an object is `Members`."""
Place = tuple[list[Node], int]


class Members(list[Node]):
    """The members of an object, each a list of key and value, so that a key may stand twice."""


def mutated(data: bytes, source: Random, words: tuple[str, ...]) -> bytes:
    """Another input, near `data`."""
    for separator in (b"\0", b"\n"):
        parts = data.split(separator)
        if len(parts) > 1 and source.random() < 0.7:
            chosen = source.randrange(len(parts))
            parts[chosen] = mutated(parts[chosen], source, words)
            return separator.join(parts)
    changed = _mutated_json(data, source, words)
    return _mutated_text(data, source, words) if changed is None else changed


def _mutated_json(data: bytes, source: Random, words: tuple[str, ...]) -> bytes | None:
    """None where `data` is no list and no object."""
    if data.lstrip()[:1] not in {b"[", b"{"}:
        return None
    try:
        root: list[Node] = [json.loads(data, object_pairs_hook=_members)]
        for _ in range(source.choice(_EDITS)):
            _edit(root, source, words)
        return _dumped(root[0]).encode() if root else b""
    except (ValueError, RecursionError):
        return None


def _members(pairs: Iterable[tuple[str, Node]]) -> Members:
    return Members([key, value] for key, value in pairs)


def _dumped(value: Node) -> str:
    if isinstance(value, Members):
        return "{" + ",".join(map(_dumped_member, value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_dumped, value)) + "]"
    return json.dumps(value)


def _dumped_member(member: Node) -> str:
    # An edit may have put anything in the place of a member.
    if isinstance(member, list) and len(member) == 2 and isinstance(member[0], str):
        return f"{json.dumps(member[0])}:{_dumped(member[1])}"
    return f'"":{_dumped(member)}'


def _places(root: list[Node]) -> list[Place]:
    found: list[Place] = []
    waiting = [root]
    while waiting:
        holder = waiting.pop()
        for index, value in enumerate(holder):
            found.append((holder, index))
            if isinstance(value, list):
                waiting.append(value)
    return found


def _edit(root: list[Node], source: Random, words: tuple[str, ...]) -> None:
    places = _places(root)
    if places:
        edit = source.choice(_VALUE_EDITS)
        edit(source.choice(places), source, places, words)


def _remove(place: Place, *_: object) -> None:
    holder, index = place
    del holder[index]


def _repeat(place: Place, source: Random, *_: object) -> None:
    holder, index = place
    holder[index:index] = [holder[index]] * source.choice(_REPEATS)


def _copy(place: Place, source: Random, places: list[Place], *_: object) -> None:
    holder, index = place
    other, position = source.choice(places)
    # A value inside of itself could not be written.
    copied: Node = json.loads(_dumped(other[position]), object_pairs_hook=_members)
    holder[index] = copied


def _replace(place: Place, source: Random, _: list[Place], words: tuple[str, ...]) -> None:
    holder, index = place
    holder[index] = source.choice(
        (source.choice(words), source.choice(_NUMBERS), None, True, [], Members(), [holder[index]])
    )


def _retype(place: Place, source: Random, _: list[Place], words: tuple[str, ...]) -> None:
    holder, index = place
    text = holder[index]
    if isinstance(text, str):
        holder[index] = _mutated_text(text.encode(errors="surrogatepass"), source, words).decode(
            errors="replace"
        )
    else:
        holder[index] = source.choice(words)


_VALUE_EDITS: Final[tuple[Callable[[Place, Random, list[Place], tuple[str, ...]], None], ...]] = (
    _remove,
    _repeat,
    _copy,
    _replace,
    _retype,
    _retype,
)


def _mutated_text(data: bytes, source: Random, words: tuple[str, ...]) -> bytes:
    usable = [each for each in _SEPARATORS if each in data] or [b""]
    separator = source.choice(usable)
    pieces = data.split(separator) if separator else re.split(rb"(?<=.)(?=.)", data, flags=re.DOTALL)
    for _ in range(source.choice(_EDITS)):
        at = source.randrange(len(pieces) + 1)
        until = min(len(pieces), at + source.choice(_REPEATS))
        kind = source.randrange(5)
        if kind == 0:
            del pieces[at:until]
        elif kind == 1:
            pieces[at:at] = pieces[at:until] * source.choice(_REPEATS)
        elif kind == 2:
            pieces[at:until] = reversed(pieces[at:until])
        elif kind == 3:
            pieces[at:until] = [source.choice(words).encode(errors="surrogatepass")]
        elif pieces:
            pieces[at:at] = [source.choice(pieces)]
        if not pieces:
            break
    return separator.join(pieces)
