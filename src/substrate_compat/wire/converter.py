"""The layouts of the JSON objects, and the converter that reads and writes them."""

from typing import Final

import attrs
from cattrs import Converter

from substrate_compat.cpufeatures_table import Architecture
from substrate_compat.errors import InputError, quoted
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat
from substrate_compat.sandbox_config import Asset, SandboxConfig, SandboxVersion
from substrate_compat.wire.strict import open_object_hook, strict_converter, two_spellings_hook

__all__ = ["OfferLayout", "WorkerLayout", "make_converter"]

_KIND: Final = "SandboxConfig"
_STATES: Final = ("Enabled", "Disabled")
_ONE_VERSION: Final = "default"
"""What the only version of an older config is called."""


@attrs.frozen
class _AttributeLayout:
    key: str
    value: str


@attrs.frozen
class _CompatLayout:
    schema_version: str
    attributes: list[_AttributeLayout]


@attrs.frozen(kw_only=True)
class OfferLayout:
    """The runtimes file: a runtime is the object of its attributes."""

    default_runtime: dict[str, str]
    restorable_runtimes: list[dict[str, str]] = attrs.Factory(list)


@attrs.frozen(kw_only=True)
class WorkerLayout(OfferLayout):
    """A line of a workers file."""

    worker: str
    sandbox_class: str


@attrs.frozen
class _AssetLayout:
    url: str
    sha256: str


_Assets = dict[str, dict[str, _AssetLayout]]


@attrs.frozen
class _VersionLayout:
    name: str
    state: str
    pause_image: str
    assets: _Assets


@attrs.frozen
class _SpecLayout:
    sandbox_class: str
    default_version: str
    versions: list[SandboxVersion]


@attrs.frozen
class _OneVersionSpecLayout:
    sandbox_class: str
    pause_image: str
    assets: _Assets
    default_version: str = _ONE_VERSION

    @property
    def versions(self) -> list[SandboxVersion]:
        return [SandboxVersion(_ONE_VERSION, True, self.pause_image, _assets(self.assets))]


@attrs.frozen
class _MetadataLayout:
    name: str


@attrs.frozen
class _ConfigLayout:
    metadata: _MetadataLayout
    spec: _SpecLayout


@attrs.frozen
class _OneVersionConfigLayout:
    metadata: _MetadataLayout
    spec: _OneVersionSpecLayout


_IDENTITY: Final = frozenset((SandboxRuntime, _CompatLayout, _AttributeLayout))
_KUBERNETES: Final = frozenset(
    (
        _AssetLayout,
        _ConfigLayout,
        _MetadataLayout,
        _OneVersionConfigLayout,
        _OneVersionSpecLayout,
        _SpecLayout,
        _VersionLayout,
    )
)
"""An API server may add fields to these."""


def make_converter() -> Converter:
    """A converter that is strict about types and keys, for the `converter` of this package's functions."""
    converter = strict_converter()
    converter.register_structure_hook_factory(_IDENTITY.__contains__, two_spellings_hook)
    converter.register_structure_hook_factory(_KUBERNETES.__contains__, open_object_hook)

    def read_compat(value: object, _: type[VersionedSandboxCompat]) -> VersionedSandboxCompat:
        layout = converter.structure(value, _CompatLayout)
        pairs = tuple((attribute.key, attribute.value) for attribute in layout.attributes)
        return VersionedSandboxCompat(layout.schema_version, pairs)

    def write_compat(compat: VersionedSandboxCompat) -> object:
        attributes = [_AttributeLayout(key, value) for key, value in compat.attributes]
        return converter.unstructure(_CompatLayout(compat.schema_version, attributes))

    def read_version(value: object, _: type[SandboxVersion]) -> SandboxVersion:
        layout = converter.structure(value, _VersionLayout)
        if layout.state not in _STATES:
            raise InputError(
                "$.state", f"{quoted(layout.state)} is not known", "known are " + ", ".join(_STATES)
            )
        enabled = layout.state == _STATES[0]
        return SandboxVersion(layout.name, enabled, layout.pause_image, _assets(layout.assets))

    def read_config(value: object, _: type[SandboxConfig]) -> SandboxConfig:
        config = converter.structure(value, _config_layout(value))
        spec = config.spec
        return SandboxConfig(
            config.metadata.name, spec.sandbox_class, spec.default_version, tuple(spec.versions)
        )

    converter.register_structure_hook(VersionedSandboxCompat, read_compat)
    converter.register_unstructure_hook(VersionedSandboxCompat, write_compat)
    converter.register_structure_hook(SandboxVersion, read_version)
    converter.register_structure_hook(SandboxConfig, read_config)
    return converter


def _config_layout(value: object) -> type[_ConfigLayout] | type[_OneVersionConfigLayout]:
    members = value if isinstance(value, dict) else {}
    kind, spec = members.get("kind", _KIND), members.get("spec")
    if kind != _KIND:
        raise InputError(
            "$.kind", f"{quoted(str(kind))} is not {_KIND}", f"give one object of kind {_KIND}"
        )
    fields = spec if isinstance(spec, dict) else {}
    older = sorted({"pauseImage", "assets"} & fields.keys())
    if older and "versions" in fields:
        problem = f"`versions` stands beside {' and '.join(older)}, which are the older form of it"
        raise InputError("$.spec", problem, "keep `versions`")
    return _OneVersionConfigLayout if older else _ConfigLayout


def _assets(assets: _Assets) -> tuple[Asset, ...]:
    """The assets for the architectures that are known; no host of another can be planned."""
    return tuple(
        Asset(architecture, name, asset.url, asset.sha256)
        for architecture in Architecture
        for name, asset in assets.get(architecture, {}).items()
    )
