"""An identity as JSON."""

from cattrs import Converter

from substrate_compat.identity import SandboxRuntime
from substrate_compat.strictjson import canonical_json, parse_json
from substrate_compat.wire.converter import make_converter
from substrate_compat.wire.strict import structured

__all__ = ["dumps_identity", "loads_identity"]


def dumps_identity(runtime: SandboxRuntime, converter: Converter | None = None) -> str:
    """The JSON text of an identity, the same for equal identities of one name; it ends with a newline.

    >>> from substrate_compat.identity import VersionedSandboxCompat
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
    return structured(parse_json(data), SandboxRuntime, converter or make_converter())
