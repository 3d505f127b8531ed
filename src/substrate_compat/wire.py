"""Identities, configs and what a worker offers, to and from JSON.

Reading is strict: nothing is converted, a key that is not known or stands twice is refused, and an error's
subject is the path of the fault, such as `$.restorableRuntimes[1].cpu_features`. A converter takes about a
millisecond to make and microseconds to use: a caller with many texts makes one with `make_converter` and
passes it to each call.
"""

from collections.abc import Callable
from typing import Final, TypeVar, get_origin

import attrs
from cattrs import AttributeValidationNote, BaseValidationError, Converter
from cattrs.cols import list_structure_factory
from cattrs.gen import make_dict_structure_fn

from substrate_compat.errors import InputError, quoted
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat
from substrate_compat.strictjson import canonical_json, key_path, parse_json

__all__ = ["dumps_identity", "loads_identity", "make_converter"]

_T = TypeVar("_T")
_A = TypeVar("_A", bound=attrs.AttrsInstance)
_Hook = Callable[[object, type[_T]], _T]

_JSON_KINDS: Final = {
    str: "a string",
    dict: "an object",
    list: "a list",
    float: "a number",
    int: "a number",
    bool: "a truth value",
    type(None): "null",
}


@attrs.frozen
class _Attribute:
    key: str
    value: str


@attrs.frozen
class _Compat:
    schema_version: str
    attributes: list[_Attribute]


def dumps_identity(runtime: SandboxRuntime, converter: Converter | None = None) -> str:
    """The JSON text of an identity, the same for equal identities of one name; it ends with a newline.

    >>> compat = VersionedSandboxCompat.of({"architecture": "arm64"})
    >>> loads_identity(dumps_identity(SandboxRuntime("microvm", compat, "v1"))).name
    'v1'
    """
    return canonical_json((converter or make_converter()).unstructure(runtime))


def loads_identity(data: bytes | str, converter: Converter | None = None) -> SandboxRuntime:
    """The identity of a JSON text: what `dumps_identity` wrote, or the same with keys in snake_case.

    Raises:
        InputError: text that is not JSON or not an identity, or an identity that breaks a limit; the
            subject is the path, such as `$.compatVersion.attributes[1].value`.

    >>> loads_identity('{"sandboxClass": "gvisor", "name": 5, "compatVersion": {}}')
    Traceback (most recent call last):
    substrate_compat.errors.InputError: $.compatVersion.schemaVersion: missing
    """
    return _structured(parse_json(data), SandboxRuntime, converter)


def make_converter() -> Converter:
    """A converter that is strict about types and keys, for the `converter` of this module's functions."""
    converter = Converter(detailed_validation=True)
    converter.register_structure_hook(str, _text)
    converter.register_structure_hook_factory(_is_list, _list_hook)
    converter.register_structure_hook_factory(attrs.has, _object_hook)
    converter.register_unstructure_hook_factory(attrs.has, _members_hook)

    def read_compat(value: object, _: type[VersionedSandboxCompat]) -> VersionedSandboxCompat:
        compat = converter.structure(value, _Compat)
        pairs = tuple((attribute.key, attribute.value) for attribute in compat.attributes)
        return VersionedSandboxCompat(compat.schema_version, pairs)

    def write_compat(compat: VersionedSandboxCompat) -> object:
        attributes = [_Attribute(key, value) for key, value in compat.attributes]
        return converter.unstructure(_Compat(compat.schema_version, attributes))

    converter.register_structure_hook(VersionedSandboxCompat, read_compat)
    converter.register_unstructure_hook(VersionedSandboxCompat, write_compat)
    return converter


def _structured(value: object, kind: type[_T], converter: Converter | None) -> _T:
    """`value` as a `kind`; where a hook below refused a part, the error names the part's path."""
    try:
        return (converter or make_converter()).structure(value, kind)
    except BaseValidationError as group:
        raise _located(group, "$") from None


def _located(fault: Exception, path: str) -> InputError:
    """The first fault that cattrs collected; its notes are the steps of the path."""
    for note in getattr(fault, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            path += key_path(_camel(note.name))
        else:
            path += f"[{note.index}]" if isinstance(note.index, int) else key_path(note.index)
    if isinstance(fault, BaseValidationError):
        return _located(fault.exceptions[0], path)
    if isinstance(fault, InputError):
        return InputError(path + fault.subject.removeprefix("$"), fault.problem, fault.remedy)
    return InputError(path, f"{fault!r}", "is the converter one of make_converter()?")


def _text(value: object, _: type[str]) -> str:
    if type(value) is not str:
        raise _wrong_kind(value, str)
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise InputError("$", f"{quoted(value)} has half a surrogate pair: it is no Unicode text")
    return value


def _is_list(kind: object) -> bool:
    return get_origin(kind) is list


def _list_hook(kind: type[list[object]], converter: Converter) -> _Hook[list[object]]:
    read_items: _Hook[list[object]] = list_structure_factory(kind, converter)

    def read(value: object, kind: type[list[object]]) -> list[object]:
        if type(value) is not list:
            raise _wrong_kind(value, list)
        return read_items(value, kind)

    return read


def _object_hook(kind: type[_A], converter: Converter) -> _Hook[_A]:
    """Reads an object whose members are the fields of `kind`, in camelCase or in snake_case."""
    fields = [field for field in attrs.fields(kind) if field.init]
    required = [field.name for field in fields if field.default is attrs.NOTHING]
    field_of = {spelling: field.name for field in fields for spelling in (field.name, _camel(field.name))}
    build = make_dict_structure_fn(kind, converter)

    def read(value: object, kind: type[_A]) -> _A:
        if type(value) is not dict:
            raise _wrong_kind(value, dict)
        members: dict[str, object] = {}
        for key, member in value.items():
            name = field_of.get(key)
            if name is None:
                raise InputError("$" + key_path(key), "not a known key", f"known are {known}")
            if name in members:
                raise InputError("$" + key_path(key), f"the same key as {_camel(name)}", "write it once")
            members[name] = member
        for name in required:
            if name not in members:
                raise InputError("$" + key_path(_camel(name)), "missing")
        return build(members, kind)

    known = ", ".join(sorted({_camel(field.name) for field in fields}))
    return read


def _members_hook(kind: type[_A], converter: Converter) -> Callable[[_A], dict[str, object]]:
    names = [(field.name, _camel(field.name)) for field in attrs.fields(kind) if field.init]
    return lambda value: {camel: converter.unstructure(getattr(value, name)) for name, camel in names}


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))


def _wrong_kind(value: object, wanted: type) -> InputError:
    found = _JSON_KINDS.get(type(value), f"a {type(value).__name__}")
    return InputError("$", f"{found} where {_JSON_KINDS[wanted]} must stand")
