"""A `SandboxConfig` from its Kubernetes object."""

from cattrs import Converter

from substrate_compat.sandbox_config import SandboxConfig
from substrate_compat.strictjson import parse_json
from substrate_compat.wire.converter import make_converter
from substrate_compat.wire.strict import structured

__all__ = ["config_from_mapping", "loads_config"]


def loads_config(data: bytes | str, converter: Converter | None = None) -> SandboxConfig:
    """The config of a Kubernetes object in JSON, as `kubectl get -o json` prints it.

    Raises:
        InputError: text that is not JSON, or see `config_from_mapping`.
    """
    return config_from_mapping(parse_json(data), converter)


def config_from_mapping(mapping: object, converter: Converter | None = None) -> SandboxConfig:
    """The config of a Kubernetes object that a YAML or JSON reader gave.

    Fields that are not known are ignored, as are assets for other architectures. `spec` has `versions`, or
    in its older form `pauseImage` and `assets`, which make one version, `default`.

    Raises:
        InputError: a wrong type, a missing field, two versions of one name, an unknown class or state, or
            another kind of object; the subject is the path, such as `$.spec.versions[1].pauseImage`.

    >>> assets = {"amd64": {"gvisor": {"url": "https://bucket.example/runsc", "sha256": "a" * 64}}}
    >>> spec = {"sandboxClass": "gvisor", "pauseImage": "pause@sha256:" + "b" * 64, "assets": assets}
    >>> config_from_mapping({"metadata": {"name": "pool"}, "spec": spec}).versions[0].name
    'default'
    """
    return structured(mapping, SandboxConfig, converter or make_converter())
