"""A module imports only from those above it in this list, and only a few the large libraries."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import substrate_compat

ORDER = (
    "errors",
    "cpufeatures_table",
    "cpufeatures",
    "compact",
    "cpuid",
    "guest",
    "hosts",
    "partition",
    "levels",
    "whatif",
    "runtime_hash",
    "identity",
    "sandbox_config",
    "cpuinfo",
    "runsc",
    "probe",
    "match",
    "matrix",
    "plan",
    "bitmaps",
    "families",
    "chunks",
    "why_none",
    "index",
    "strictjson",
    "files",
    "wire",
    "rows",
    "pairs",
    "tables",
    "registration",
    "wording",
    "cli",
    "__main__",
)
PACKAGES = {"cli", "registration", "tables", "wire"}
ONLY_IN = {"cattrs": {"wire"}, "sqlalchemy": {"tables", "cli"}}
PACKAGE = Path(substrate_compat.__file__).parent


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if name != "__init__":
            yield name, path


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield str(node.module)


def test_every_module_has_its_place() -> None:
    assert {name for name, _ in modules()} == set(ORDER)


@pytest.mark.parametrize(("name", "path"), [pytest.param(*each, id=each[1].stem) for each in modules()])
def test_a_module_imports_only_from_above(name: str, path: Path) -> None:
    for imported in imports(path):
        package, _, rest = imported.partition(".")
        if package == "substrate_compat" and rest:
            above = rest.partition(".")[0]
            assert ORDER.index(above) < ORDER.index(name) or above == name in PACKAGES
        assert name in ONLY_IN.get(package, {name})


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for _, path in modules()])
def test_a_module_lists_what_it_exports_sorted(path: Path) -> None:
    (exported,) = (
        ast.literal_eval(node.value)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert exported == sorted(exported, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


def test_the_package_itself_exports_nothing() -> None:
    assert list(imports(PACKAGE / "__init__.py")) == []
