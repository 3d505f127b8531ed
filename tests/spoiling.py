"""JSON texts with one fault each, and the error that each gives."""

import json
from collections.abc import Callable

import pytest

from substrate_compat.errors import InputError

__all__ = ["Json", "Spoil", "drop", "fault", "put"]

Json = str | float | bool | None | list["Json"] | dict[str, "Json"]
Spoil = Callable[[Json], str]


def changed(value: Json, path: tuple[str | int, ...], new: Callable[[Json], Json]) -> Json:
    """`value` with the part at `path` replaced by what `new` makes of it."""
    if not path:
        return new(value)
    step, *rest = path
    if isinstance(step, int):
        assert isinstance(value, list)
        return [changed(each, tuple(rest), new) if at == step else each for at, each in enumerate(value)]
    assert isinstance(value, dict)
    return {**value, step: changed(value.get(step), tuple(rest), new)}


def put(*path: str | int, to: Json) -> Spoil:
    """What puts `to` at `path` of a value and writes it."""
    return lambda value: json.dumps(changed(value, path, lambda _: to))


def drop(*path: str, key: str) -> Spoil:
    """What drops the member `key` of the object at `path`."""

    def without(part: Json) -> Json:
        assert isinstance(part, dict)
        return {name: member for name, member in part.items() if name != key}

    return lambda value: json.dumps(changed(value, path, without))


def fault(read: Callable[[], object]) -> InputError:
    """The error that `read` raises."""
    with pytest.raises(InputError) as caught:
        read()
    assert type(caught.value) is InputError
    return caught.value
