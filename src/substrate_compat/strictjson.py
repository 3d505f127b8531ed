"""JSON read strictly and written in one form.

`json` alone keeps the last of two equal keys, takes `NaN`, and lets a byte order mark, a number of a
million digits and a million nested lists each fail in a way of its own. Here each is one `InputError`
whose subject is the path of the fault, such as `$.restorableRuntimes[1].cpu_features`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from substrate_compat.errors import InputError, quoted, shortened

__all__ = [
    "MAX_BYTES",
    "MAX_CONTAINERS",
    "MAX_DEPTH",
    "MAX_PATH",
    "MAX_VALUES",
    "canonical_json",
    "json_line",
    "key_path",
    "parse_json",
]

MAX_BYTES: Final = 1 << 20
"""The longest text that is read: 1 MiB of UTF-8."""
MAX_CONTAINERS: Final = 1 << 13
"""The most lists and objects of a text: an empty one takes 3 bytes there and 64 and more in memory."""
MAX_VALUES: Final = 1 << 16
"""The most values of a text."""
MAX_DEPTH: Final = 64
"""The most lists and objects within one another. Python's own limit depends on its version."""

MAX_PATH: Final = 120
"""The most characters that a message has of a path; beyond, the steps in the middle are left out."""

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
        data: the text, or its bytes in UTF-8; at most 1 MiB, with at most 8,192 lists and objects
            and 65,536 values (brackets and commas in strings count too), and 64 within one another.

    Raises:
        InputError: what is not JSON (RFC 8259), two equal keys in one object, or too deep a nesting or too
            many values; the subject is the path.

    >>> parse_json('{"a": ["b", null]}')
    {'a': ['b', None]}
    """
    constants: dict[str, _Refused] = {}
    repeated: list[_Refused] = []

    def members(pairs: list[tuple[str, object]]) -> object:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        repeated.append(_Refused(key_path(_first_repeated(pairs)), "the key stands here twice"))
        return repeated[-1]

    def constant(name: str) -> object:
        return constants.setdefault(name, _Refused("", f"{name} is not JSON"))

    text = _text(data)
    try:
        value = json.loads(text, object_pairs_hook=members, parse_constant=constant, parse_int=float)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError("$", f"not JSON: {error.msg} ({place})", "is the text whole?") from None
    except RecursionError:
        raise _too_deep() from None
    _check_depth(value)
    if constants or repeated:
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
    containers = text.count("[") + text.count("{")
    for count, most, what in (
        (containers, MAX_CONTAINERS, "lists and objects"),
        (containers + text.count(","), MAX_VALUES, "values"),
    ):
        if count > most:
            raise InputError("$", f"more than {most} {what}", "nothing that is read here has as many")
    if text.startswith(_BYTE_ORDER_MARK):
        raise InputError("$", "it begins with a byte order mark", "save it as UTF-8 without one")
    return text


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [member for part in level for member in _parts(part)]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> InputError:
    return InputError("$", f"nested too deeply: more than {MAX_DEPTH} lists and objects within one another")


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _first_repeated(pairs: list[tuple[str, object]]) -> str:
    times = Counter(key for key, _ in pairs)
    return next(key for key, _ in pairs if times[key] > 1)


def _located(value: object) -> InputError:
    """The error of the first refused part of `value`, which has one."""
    steps = ["$"]
    parts = [iter([("", value)])]
    while True:
        following = next(parts[-1], None)
        if following is None:
            parts.pop()
            steps.pop()
            continue
        step, part = following
        if isinstance(part, _Refused):
            return InputError(shortened("".join((*steps, step, part.step)), MAX_PATH), part.problem)
        steps.append(step)
        parts.append(_members(part))


def _members(part: object) -> Iterator[tuple[str, object]]:
    """What an object or a list holds, each with its step of the path."""
    if isinstance(part, dict):
        yield from ((key_path(key), member) for key, member in part.items())
    elif isinstance(part, list):
        yield from ((f"[{index}]", item) for index, item in enumerate(part))
