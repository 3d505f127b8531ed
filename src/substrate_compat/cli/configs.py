"""The `SandboxConfig` that a verb is given, in JSON or YAML."""

from collections.abc import Hashable
from typing import Final

import yaml

from substrate_compat.cli.inputs import read_bytes
from substrate_compat.errors import InputError, shortened
from substrate_compat.sandbox_config import SandboxConfig
from substrate_compat.wire import config_from_mapping, loads_config

__all__ = ["read_config"]

_MOST_YAML: Final = 64 << 10
_REMEDY: Final = "give one object as kubectl prints it"

_SLIPS: Final = (AttributeError, LookupError, TypeError)
"""What PyYAML also raises, where a tag stands at a value that is none of its kind."""


class _Loader(yaml.SafeLoader):
    """The safe loader of PyYAML, which does not take the last of two equal keys."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        # An alias is a copy for a few characters, and copies of copies soon fill every memory.
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "it has an alias (`*name`); write it out", None)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is not None and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, "the key stands here twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _any_number(_: _Loader, __: yaml.Node) -> float:
    """Any number: none has a meaning here, and to work out the value of a long one takes long."""
    return 0.0


for _tag in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _any_number)


def read_config(path: str) -> SandboxConfig:
    """The config in the file `path` or on standard input, as `kubectl get -o yaml` or `-o json` prints it.

    Raises:
        FileError: it cannot be read.
        InputError: it is neither JSON nor YAML, or no config; the subject is the file and the path in it.
    """
    data = read_bytes(path)
    try:
        if data.lstrip().startswith(b"{"):
            return loads_config(data)
        return config_from_mapping(_yaml(data))
    except InputError as error:
        raise InputError(f"{path}: {error.subject}", error.problem, error.remedy) from None


def _yaml(data: bytes) -> object:
    if len(data) > _MOST_YAML:
        raise InputError(
            "$", f"longer than {_MOST_YAML} bytes of YAML", "give it as JSON, which is read faster"
        )
    try:
        return _Loader(data.decode()).get_single_data()
    except RecursionError:
        raise InputError("$", "nested too deeply") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise InputError("$", f"not YAML: {_shown(error.problem)}{place}", _REMEDY) from None
    except (yaml.YAMLError, ValueError, *_SLIPS) as error:
        raise InputError("$", f"not YAML: {_shown(error)}", _REMEDY) from None


def _shown(problem: object) -> str:
    """What PyYAML says on one line, without much of the text that it may repeat."""
    return shortened(" ".join(str(problem).split()))
