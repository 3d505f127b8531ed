"""No exported name of the library is without its line in `api_types.py`, which mypy and pyright check."""

import ast
from pathlib import Path
from typing import Final

import pytest

import substrate_compat

PACKAGE: Final = Path(substrate_compat.__file__).parent
# The command line, and what other modules of the library are made of.
INTERNAL: Final = {"__init__", "__main__", "bitmaps", "chunks", "cli", "compact", "families", "partition"}
ELSEWHERE: Final = {"why_none.why_none"}


def exported(path: Path) -> list[str]:
    (names,) = (
        ast.literal_eval(node.value)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return [str(name) for name in names]


def modules() -> dict[str, Path]:
    found = {path.stem: path for path in PACKAGE.glob("*.py")}
    found |= {path.parent.name: path for path in PACKAGE.glob("*/__init__.py")}
    return {name: path for name, path in sorted(found.items()) if name not in INTERNAL}


TYPES: Final = ast.parse((Path(__file__).parent / "api_types.py").read_text())
NAMED: Final = {node.attr for node in ast.walk(TYPES) if isinstance(node, ast.Attribute)} | {
    node.id for node in ast.walk(TYPES) if isinstance(node, ast.Name)
}


@pytest.mark.parametrize(("module", "path"), modules().items(), ids=str)
def test_every_exported_name_has_its_type_checked(module: str, path: Path) -> None:
    names = exported(path)
    assert names
    assert [name for name in names if name not in NAMED and f"{module}.{name}" not in ELSEWHERE] == []
