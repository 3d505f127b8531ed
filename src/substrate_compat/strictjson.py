"""JSON read strictly and written in one form.

`json` alone keeps the last of two equal keys, takes `NaN`, and lets a byte order mark, a number of a
million digits and a million nested lists each fail in a way of its own. Here each is one `InputError`
whose subject is the path of the fault, such as `$.restorableRuntimes[1].cpu_features`.
"""

import json
import re
from typing import Final

import attrs

from substrate_compat.errors import InputError, quoted

__all__ = ["MAX_BYTES", "canonical_json", "json_line", "key_path", "parse_json"]

MAX_BYTES: Final = 1 << 20
"""The longest text that is read: 1 MiB of UTF-8."""

_PLAIN_KEY: Final = re.compile(r"[0-9A-Za-z_-]{1,128}")
_BYTE_ORDER_MARK: Final = "\ufeff"


@attrs.frozen
class _Refused:
    """Stands in the place of what must not be read, until its path is known."""

    step: str
    problem: str


def parse_json(data: bytes | str) -> object:
    """The value of a JSON text: dict, list, str, float (for every number), bool or None.

    Args:
        data: the text, or its bytes in UTF-8; at most 1 MiB.

    Raises:
        InputError: what is not JSON (RFC 8259), two equal keys in one object, or too deep a nesting; the
            subject is the path.

    >>> parse_json('{"a": ["b", null]}')
    {'a': ['b', None]}
    """
    refused: list[_Refused] = []

    def refuse(step: str, problem: str) -> _Refused:
        refused.append(_Refused(step, problem))
        return refused[-1]

    def members(pairs: list[tuple[str, object]]) -> object:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        keys = [key for key, _ in pairs]
        repeated = next(key for position, key in enumerate(keys) if key in keys[:position])
        return refuse(key_path(repeated), "the key stands here twice")

    def constant(name: str) -> object:
        return refuse("", f"{name} is not JSON")

    text = _text(data)
    try:
        value = json.loads(text, object_pairs_hook=members, parse_constant=constant, parse_int=float)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError("$", f"not JSON: {error.msg} ({place})", "is the text whole?") from None
    except RecursionError:
        raise InputError("$", "nested too deeply") from None
    if refused:
        raise _located(value)
    return value


def canonical_json(value: object) -> str:
    r"""`value` as JSON in lines: keys sorted, two blanks a level, a newline at the end.

    >>> canonical_json({"b": "2", "a": "1"})
    '{\n  "a": "1",\n  "b": "2"\n}\n'
    """
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def json_line(value: object) -> str:
    r"""`value` as one line of a JSON Lines file, its newline included.

    >>> json_line({"b": "2", "a": "1"})
    '{"a":"1","b":"2"}\n'
    """
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"


def key_path(key: str) -> str:
    """The step of a path from an object to its member `key`.

    >>> key_path("cpu_model"), key_path("a b")
    ('.cpu_model', "['a b']")
    """
    return f".{key}" if _PLAIN_KEY.fullmatch(key) else f"[{quoted(key)}]"


def _text(data: bytes | str) -> str:
    try:
        octets = data.encode() if isinstance(data, str) else data
        text = octets.decode()
    except UnicodeError as error:
        raise InputError("$", f"not UTF-8: {error}") from None
    if len(octets) > MAX_BYTES:
        raise InputError("$", f"longer than {MAX_BYTES} bytes", "nothing that is read here is as long")
    if text.startswith(_BYTE_ORDER_MARK):
        raise InputError("$", "it begins with a byte order mark", "save it as UTF-8 without one")
    return text


def _located(value: object) -> InputError:
    """The error of the first refused part of `value`, which has one."""
    places: list[tuple[str, object]] = [("$", value)]
    while True:
        path, part = places.pop()
        if isinstance(part, _Refused):
            return InputError(path + part.step, part.problem)
        if isinstance(part, dict):
            places.extend((path + key_path(key), member) for key, member in reversed(part.items()))
        elif isinstance(part, list):
            places.extend((f"{path}[{index}]", item) for index, item in reversed(list(enumerate(part))))
