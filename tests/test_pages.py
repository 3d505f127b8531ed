"""Every code block of every page runs and prints what the page says; the pages link to what there is."""

import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import pytest

from pages import PageError, blocks, run_page
from substrate_compat.cli import main
from substrate_compat.levels import ANNOTATION

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("proof/*.md")])
FOR_MAINTAINERS: Final = [ROOT / "fuzzing" / "README.md", ROOT / "mutation" / "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    run_page(page.read_text(), tmp_path)


@pytest.mark.parametrize("page", [*PAGES, *FOR_MAINTAINERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_are_there(page: Path) -> None:
    for path in re.findall(r"`((?:tests|examples|docs|src)/[\w./-]*)`", page.read_text()):
        assert (ROOT / path).exists(), path


def test_the_readme_names_every_verb() -> None:
    named = re.findall(r"`(\w+)[^`]*`", (ROOT / "README.md").read_text())
    assert {*main.commands} <= {*named}


def test_containerds_setting_lets_the_annotation_through() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    settings = [tomllib.loads(block.text) for block in blocks(page) if block.kind == "toml"]
    assert [each["version"] for each in settings] == [3, 2]
    for each in settings:
        (plugin,) = each["plugins"].values()
        patterns = plugin["containerd"]["runtimes"]["runsc"]["pod_annotations"]
        assert any(fnmatchcase(ANNOTATION, pattern) for pattern in patterns)


PYTHON: Final = "```python\n>>> 1\n1\n```\n"


@pytest.mark.parametrize(
    ("page", "count"),
    [
        pytest.param("# Nothing\n\nOnly `code` in a line.\n", 0, id="no code"),
        pytest.param(
            PYTHON + "```python\n>>> x = 1\n```\n```python\n>>> x\n1\n```\n", 3, id="names live on"
        ),
        pytest.param(
            "```text host.txt\nfpu,pni\n```\n```console\n$ cat host.txt\nfpu,pni\n"
            "$ substrate-compat encode --arch amd64 fpu,pni > mask\n"
            "$ cat mask | substrate-compat decode --arch amd64 -\nfpu\npni\n"
            "$ substrate-compat compare --arch amd64 \\\n    fpu pni | head -1\n"
            "A is neither a subset nor a superset of B\n$ grep x mask\n$ echo $?\n1\n```\n",
            2,
            id="files, pipes and an exit status",
        ),
        pytest.param("## 1, 2: a\n## 3: b\n```text\n+ 1 --- 3 --- 2 +\n```\n", 1, id="a figure"),
        pytest.param('```json\n{"a": 1}\n```\n```toml\na = 1\n```\n```yaml\na: 1\n```\n', 3, id="parsed"),
        pytest.param(
            '```json w.jsonl\n{"a": 1}\n{"a": 2}\n```\n```console\n$ tail -1 w.jsonl\n{"a": 2}\n```\n',
            2,
            id="JSON Lines",
        ),
    ],
)
def test_a_page_that_is_right(page: str, count: int, tmp_path: Path) -> None:
    assert run_page(page, tmp_path) == count


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        pytest.param("```sh\nmake\n```\n", "nothing runs 'sh'", id="a language that nothing runs"),
        pytest.param("```\nmake\n```\n", "nothing runs ''", id="no language"),
        pytest.param("    make\n", "code in no fence", id="indented"),
        pytest.param("~~~python\n>>> 1\n1\n~~~\n", "code in no fence", id="tildes"),
        pytest.param("- item\n\n  ```python\n  >>> 1\n  1\n  ```\n", "code in no fence", id="in a list"),
        pytest.param("```python\n>>> 1\n1\n", "has no end", id="no end"),
        pytest.param("```python\n>>> 1\n2\n```\n", "Expected", id="another result"),
        pytest.param("```python\n>>> x\n```\n", "NameError", id="an exception"),
        pytest.param("```python\nx = 1\n```\n", "for want of `>>>`", id="Python without a prompt"),
        pytest.param("```python\n>>> 1\n1\n\nx = 1\n```\n", "for want of `>>>`", id="prose after Python"),
        pytest.param("```python\n```\n", "for want of `>>>`", id="no Python"),
        pytest.param("```console\nmake\n```\n", "does not begin with", id="no prompt"),
        pytest.param("```console\n$ make\n```\n", "nothing runs 'make'", id="a program that nothing runs"),
        pytest.param(
            "```console\n$ substrate-compat encode --arch amd64 pni\n2\n```\n", "printed\n1", id="output"
        ),
        pytest.param(
            "```console\n$ substrate-compat encode --arch amd64 pni\n```\n", "printed\n1", id="no output"
        ),
        pytest.param(
            "```console\n$ substrate-compat decode --arch amd64 x | head -1\n```\n",
            "error",
            id="diagnostics",
        ),
        pytest.param("```console\n$ cat none\n$ echo $?\n1\n```\n", "No such file", id="a failure"),
        pytest.param('```json\n{"a": }\n```\n', "no json", id="JSON"),
        pytest.param('```json w.jsonl\n{"a": 1}\n{\n```\n', "no json", id="a line of JSON"),
        pytest.param("```toml\na\n```\n", "no toml", id="TOML"),
        pytest.param("```yaml\na: [\n```\n", "no yaml", id="YAML"),
        pytest.param("```text host.txt\nfpu\n```\n" + PYTHON, "no later block uses", id="an unused file"),
        pytest.param("## 1: a\n```text\n+ 2 +\n```\n", "numbers of the headings", id="a figure's number"),
        pytest.param("```text\nmake\n```\n", "numbers of the headings", id="text that is no figure"),
    ],
)
def test_a_page_that_is_wrong(page: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match=re.escape(problem)):
        run_page(page, tmp_path)
