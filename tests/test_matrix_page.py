"""The page of a matrix as text; what a browser makes of it is tested in `test_page_in_chromium`."""

import re
from html.parser import HTMLParser

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import gvisor_runtimes, texts, worker_runtimes
from substrate_compat.cli.matrix_page import matrix_page
from substrate_compat.errors import InputError
from substrate_compat.identity import SandboxRuntime, VersionedSandboxCompat, WorkerRuntimes
from substrate_compat.matrix import matrix, worker_of_features
from substrate_compat.wording import describe
from vectors import amd64, demo_hosts

VOID = {"meta", "link", "br"}


@attrs.define
class Page(HTMLParser):
    """The elements of a page, and whether each that was opened is closed."""

    opened: list[str] = attrs.field(factory=list, init=False)
    found: list[tuple[str, dict[str, str | None]]] = attrs.field(factory=list, init=False)
    text: str = attrs.field(default="", init=False)

    def __attrs_pre_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))
        if tag not in VOID:
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, attribute: str) -> list[str]:
        return [str(attributes[attribute]) for _, attributes in self.found if attribute in attributes]


def read(page: str) -> Page:
    reader = Page()
    reader.feed(page)
    reader.close()
    assert reader.opened == []
    return reader


@given(st.dictionaries(texts(20), worker_runtimes(gvisor_runtimes()), min_size=1, max_size=4))
def test_every_cell_says_its_verdict_and_every_no_its_reasons(fleet: dict[str, WorkerRuntimes]) -> None:
    found = matrix(fleet)
    page = read(matrix_page(found))
    cells = [cell for row in found.rows for cell in row]
    answers = [label for label in page.values("aria-label") if label != "Matrix"]
    assert [answer.partition(":")[0] for answer in answers] == [
        "yes" if cell.compatible else "no" for cell in cells
    ]
    anchors = [link.removeprefix("#") for link in page.values("href") if link.startswith("#")]
    assert len(anchors) == sum(not cell.compatible for cell in cells)
    assert sorted(anchors) == sorted(page.values("id"))
    for cell in cells:
        assert all(describe(mismatch) in page.text for mismatch in cell.mismatches)


def test_nothing_is_loaded_and_no_script_runs() -> None:
    page = read(
        matrix_page(matrix({host.brand: worker_of_features(host.features) for host in demo_hosts().hosts}))
    )
    assert {tag for tag, _ in page.found}.isdisjoint({"script", "img", "iframe", "object", "base", "form"})
    assert [url for url in page.values("href") if not url.startswith("#")] == ["data:,"]
    assert page.values("src") == []
    assert not re.search(r"url\(|@import|https?:", page.text)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("<script>alert(1)</script>", id="an element"),
        pytest.param('"><b onmouseover="x', id="out of an attribute"),
        pytest.param("$title ${body} $$", id="the template's own"),
        pytest.param("\u202eturned\u202c \x00 \x1b[31m", id="what cannot be seen"),
    ],
)
def test_a_name_is_text_and_no_more(name: str) -> None:
    page = matrix_page(
        matrix({name: worker_of_features(amd64("osxsave")), "b": worker_of_features(amd64(""))})
    )
    assert {tag for tag, _ in read(page).found}.isdisjoint({"script"})
    assert read(page).values("onmouseover") == []
    assert all(character.isprintable() or character == "\n" for character in page)
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in name)
    assert shown in read(page).text


def test_long_names_are_cut_in_the_head_and_whole_in_the_row() -> None:
    name = "n" * 90
    page = read(matrix_page(matrix({name: worker_of_features(amd64("osxsave"))})))
    assert page.text.count(name) == 1
    assert "n" * 43 + "…" in page.text
    assert name in page.values("title")


def test_machines_that_offer_the_same_are_listed() -> None:
    alike = {name: worker_of_features(amd64("osxsave")) for name in ("a", "b", "c")}
    page = read(matrix_page(matrix(alike)))
    assert "3 machines of 1 kind: each can restore the snapshots of every one." in page.text
    assert "a and 2 more" in page.text
    assert "1 a, b, c" in page.text
    assert "Why not" not in page.text


def test_other_reasons_than_features_are_told() -> None:
    compat = VersionedSandboxCompat.of({"cpu_model": "m"})
    microvm = WorkerRuntimes(SandboxRuntime("microvm", compat))
    page = read(matrix_page(matrix({"a": worker_of_features(amd64("osxsave")), "vm": microvm})))
    assert "the sandbox class differs: worker 'microvm', snapshot 'gvisor'" in page.text
    assert "✗" in page.text


def test_a_page_of_certain_verdicts_leaves_nothing_open() -> None:
    recorded = {"architecture": "amd64", "cpu_cache_line": "64", "cpu_features": amd64("osxsave").hex}
    runtime = SandboxRuntime("gvisor", VersionedSandboxCompat.of({**recorded, "sandbox_runtime_hash": "1"}))
    assert "leaves open" not in matrix_page(matrix({"a": WorkerRuntimes(runtime)}))


def test_no_worker_has_no_page() -> None:
    with pytest.raises(InputError):
        matrix_page(matrix({}))
