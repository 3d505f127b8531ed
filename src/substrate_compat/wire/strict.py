"""What makes a cattrs converter strict, and its errors name the path of the fault.

cattrs alone turns 5 into "5" and "abc" into a list of three. The hooks here take a value only as what it
is. Each raises an `InputError` whose subject is the path from the value that it was given (`$`); cattrs
collects them with the steps that lead there, and `structured` puts path and fault together. A list or an
object ends at its first fault: cattrs would collect one from each of a million items.
"""

from collections.abc import Callable
from typing import Final, TypeVar, get_args, get_origin

import attrs
from cattrs import AttributeValidationNote, BaseValidationError, Converter
from cattrs.gen import make_dict_structure_fn

from substrate_compat.errors import InputError, quoted, shortened
from substrate_compat.identity import is_unicode
from substrate_compat.strictjson import MAX_PATH, key_path

__all__ = ["object_hook", "open_object_hook", "strict_converter", "structured", "two_spellings_hook"]

_T = TypeVar("_T")
_Object = TypeVar("_Object", bound=attrs.AttrsInstance)
_Hook = Callable[[object, type[_T]], _T]

_FAULTS: Final = (BaseValidationError, InputError)
_KINDS: Final = {
    str: "a string",
    dict: "an object",
    list: "a list",
    float: "a number",
    int: "a number",
    bool: "a truth value",
    type(None): "null",
}


def strict_converter() -> Converter:
    """A converter that reads strings, lists, objects and attrs classes, each only as what it is.

    The fields of a class are members in camelCase; unknown members are refused.

    >>> structured(["a"], list[str], strict_converter())
    ['a']
    >>> structured(["a", 5], list[str], strict_converter())
    Traceback (most recent call last):
    substrate_compat.errors.InputError: $[1]: a number where a string must stand
    """
    converter = Converter(detailed_validation=True)
    converter.register_structure_hook(str, _text)
    converter.register_structure_hook_factory(_is_list, _list_hook)
    converter.register_structure_hook_factory(_is_dict, _dict_hook)
    converter.register_structure_hook_factory(attrs.has, object_hook)
    converter.register_unstructure_hook_factory(attrs.has, _members_hook)
    return converter


def structured(value: object, kind: type[_T], converter: Converter) -> _T:
    """`value` as a `kind`.

    Raises:
        InputError: a part that a hook refused; the subject is its path.
    """
    try:
        return converter.structure(value, kind)
    except _FAULTS as fault:
        raise _located(fault, "$") from None


def object_hook(kind: type[_Object], converter: Converter) -> _Hook[_Object]:
    """Reads an attrs class whose fields are members in camelCase; other members are refused."""
    return _object_hook(kind, converter, {_camel(name): name for name in _fields(kind)}, closed=True)


def two_spellings_hook(kind: type[_Object], converter: Converter) -> _Hook[_Object]:
    """Reads an attrs class whose fields are members in camelCase or snake_case; others are refused."""
    spellings = {spelling: name for name in _fields(kind) for spelling in (_camel(name), name)}
    return _object_hook(kind, converter, spellings, closed=True)


def open_object_hook(kind: type[_Object], converter: Converter) -> _Hook[_Object]:
    """Reads an attrs class whose fields are members in camelCase; other members are ignored."""
    return _object_hook(kind, converter, {_camel(name): name for name in _fields(kind)}, closed=False)


def _object_hook(
    kind: type[_Object], converter: Converter, name_of: dict[str, str], *, closed: bool
) -> _Hook[_Object]:
    required = [field.name for field in attrs.fields(kind) if field.init and field.default is attrs.NOTHING]
    build = make_dict_structure_fn(kind, converter)
    known = ", ".join(name_of)

    def read(value: object, kind: type[_Object]) -> _Object:
        if type(value) is not dict:
            raise _wrong_kind(value, dict)
        members: dict[str, object] = {}
        for key, member in value.items():
            name = name_of.get(key)
            if name in members:
                raise InputError("$" + key_path(key), f"{_camel(name)} stands here in both spellings")
            if name is not None:
                members[name] = member
            elif closed:
                raise InputError("$" + key_path(key), "not a known key", f"known are {known}")
        for name in required:
            if name not in members:
                raise InputError("$" + key_path(_camel(name)), "missing")
        return build(members, kind)

    return read


def _members_hook(kind: type[_Object], converter: Converter) -> Callable[[_Object], dict[str, object]]:
    names = [(name, _camel(name)) for name in _fields(kind)]
    return lambda value: {camel: converter.unstructure(getattr(value, name)) for name, camel in names}


def _fields(kind: type[attrs.AttrsInstance]) -> list[str]:
    return [field.name for field in attrs.fields(kind) if field.init]


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))


def _text(value: object, _: type[str]) -> str:
    if type(value) is not str:
        raise _wrong_kind(value, str)
    if not is_unicode(value):
        raise InputError("$", f"{quoted(value)} has half a surrogate pair: it is no Unicode text")
    return value


def _is_list(kind: object) -> bool:
    return get_origin(kind) is list


def _list_hook(kind: type[list[object]], converter: Converter) -> _Hook[list[object]]:
    (item_kind,) = get_args(kind)
    read_item: _Hook[object] = converter.get_structure_hook(item_kind)

    def read(value: object, _: type[list[object]]) -> list[object]:
        if type(value) is not list:
            raise _wrong_kind(value, list)
        items: list[object] = []
        for index, item in enumerate(value):
            try:
                items.append(read_item(item, item_kind))
            except _FAULTS as fault:
                raise _located(fault, f"$[{index}]") from None
        return items

    return read


def _is_dict(kind: object) -> bool:
    return get_origin(kind) is dict


def _dict_hook(kind: type[dict[str, object]], converter: Converter) -> _Hook[dict[str, object]]:
    _, member_kind = get_args(kind)
    read_member: _Hook[object] = converter.get_structure_hook(member_kind)

    def read(value: object, _: type[dict[str, object]]) -> dict[str, object]:
        if type(value) is not dict:
            raise _wrong_kind(value, dict)
        members: dict[str, object] = {}
        for key, member in value.items():
            try:
                members[_text(key, str)] = read_member(member, member_kind)
            except _FAULTS as fault:
                step = key_path(key) if type(key) is str else f"[{quoted(str(key))}]"
                raise _located(fault, "$" + step) from None
        return members

    return read


def _wrong_kind(value: object, wanted: type) -> InputError:
    found = _KINDS.get(type(value), f"a {type(value).__name__}")
    return InputError("$", f"{found} where {_KINDS[wanted]} must stand")


def _located(fault: Exception, path: str) -> InputError:
    """The first fault that cattrs collected; its notes are the steps of the path."""
    notes = [note for note in getattr(fault, "__notes__", ()) if isinstance(note, AttributeValidationNote)]
    path += "".join(key_path(_camel(note.name)) for note in notes)
    if isinstance(fault, BaseValidationError):
        return _located(fault.exceptions[0], path)
    if isinstance(fault, InputError):
        subject = shortened(path + fault.subject.removeprefix("$"), MAX_PATH)
        return InputError(subject, fault.problem, fault.remedy)
    return InputError(path, f"{fault!r}", "is the converter one of make_converter()?")
