"""The page of a matrix in Chromium: what a person, a screen reader, a printer and the network get.

Where no Chromium is installed these tests are skipped; `make test-page` installs Debian's. Screenshots and
a print stay in `.cache/page`.
"""

import base64
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from substrate_compat.cli.matrix_page import matrix_page
from substrate_compat.matrix import Matrix, matrix, worker_of_features
from vectors import amd64, demo_hosts, gvisor_hosts

CHROMIUM: Final = shutil.which("chromium")
CHROMEDRIVER: Final = shutil.which("chromedriver")
PICTURES: Final = Path(__file__).parent.parent / ".cache" / "page"
READABLE_CONTRAST: Final = 4.5  # WCAG 2.2, success criterion 1.4.3

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or CHROMEDRIVER is None,
    reason="no chromium and chromedriver here: `make test-page` installs them",
)


@attrs.frozen
class Browser:
    """Chromium without a window."""

    driver: Chrome

    def show(self, page: Path, media: str = "", scheme: str = "light") -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
        self.driver.get(page.as_uri())

    def requests(self, page: Path) -> set[str]:
        """What showing `page` asks of the network, besides the page itself."""
        self._events()
        self.show(page)
        sent, forbidden = {}, set()
        for text in self._events():
            match json.loads(text)["message"]:
                case {"method": "Network.requestWillBeSent", "params": params}:
                    sent[params["requestId"]] = params["request"]["url"]
                case {"method": "Network.loadingFailed", "params": {"blockedReason": "csp", **params}}:
                    forbidden.add(params["requestId"])
        assert page.as_uri() in sent.values()
        urls = {url for request, url in sent.items() if request not in forbidden}
        return {url for url in urls if not url.startswith((page.as_uri(), "data:"))}

    def _events(self) -> list[str]:
        """What happened since the last call, as JSON."""
        log = self.driver.execute("getLog", {"type": "performance"})["value"]
        return [entry["message"] for entry in log]

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def keep_picture(self, name: str) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(PICTURES / f"{name}.png"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    options = ChromeOptions()
    options.binary_location = str(CHROMIUM)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--window-size=1500,1000",
    ):
        options.add_argument(argument)
    driver = Chrome(options, ChromeService(CHROMEDRIVER))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


def fleet_of_demo() -> Matrix:
    return matrix({host.brand: worker_of_features(host.features) for host in demo_hosts().hosts})


def fleet_of_many_kinds() -> Matrix:
    """Machines of 30 kinds, some of them alike, one that cannot restore its own snapshots."""
    hosts = [host for host in gvisor_hosts().hosts if "osxsave" in host.features][::3]
    fleet = {f"{host.brand} ({host.id})": worker_of_features(host.features) for host in hosts}
    fleet['<b>\u202eno XSAVE</b> & "more"'] = worker_of_features(amd64("fpu,lm,xsave"))
    return matrix(fleet)


@pytest.fixture
def demo_page(tmp_path: Path) -> Path:
    page = tmp_path / "demo.html"
    page.write_text(matrix_page(fleet_of_demo()))
    return page


@pytest.fixture
def wide_page(tmp_path: Path) -> Path:
    page = tmp_path / "wide.html"
    page.write_text(matrix_page(fleet_of_many_kinds()))
    return page


def test_every_cell_has_a_text_alternative_that_says_its_verdict(browser: Browser, wide_page: Path) -> None:
    found = fleet_of_many_kinds()
    browser.show(wide_page)
    rows = browser.all("tbody tr")
    assert len(rows) == len(found.groups) > 20
    for row, cells in zip(rows, found.rows, strict=True):
        shown = row.find_elements(By.CSS_SELECTOR, "td > *")
        assert len(shown) == len(cells)
        for element, cell in zip(shown, cells, strict=True):
            answer = "yes: " if cell.compatible else "no: "
            assert element.accessible_name.startswith(answer + "a snapshot of ")
            assert element.aria_role == ("image" if cell.compatible else "link")
            assert element.text[0] == ("✓" if cell.compatible else "✗")


def test_heads_are_rows_and_columns_to_a_screen_reader(browser: Browser, wide_page: Path) -> None:
    browser.show(wide_page)
    kinds = len(fleet_of_many_kinds().groups)
    assert [head.aria_role for head in browser.all("thead th")] == ["columnheader"] * kinds
    assert [head.aria_role for head in browser.all("tbody th")] == ["rowheader"] * kinds


def test_nothing_is_asked_of_the_network(browser: Browser, wide_page: Path, tmp_path: Path) -> None:
    assert browser.requests(wide_page) == set()
    picture = '<img src="http://127.0.0.1:9/a.png">'
    style = '<link rel="stylesheet" href="http://127.0.0.1:9/b.css">'
    other = tmp_path / "other.html"
    other.write_text(picture + style)
    assert browser.requests(other) == {"http://127.0.0.1:9/a.png", "http://127.0.0.1:9/b.css"}
    # Nor could the page: its policy forbids it.
    other.write_text(wide_page.read_text().replace("<table>", f"{picture}{style}<table>"))
    assert browser.requests(other) == set()


def test_every_missing_feature_is_on_hover_and_in_the_list(browser: Browser, demo_page: Path) -> None:
    browser.show(demo_page)
    for row, cells in zip(browser.all("tbody tr"), fleet_of_demo().rows, strict=True):
        for element, cell in zip(row.find_elements(By.CSS_SELECTOR, "td"), cells, strict=True):
            if not cell.compatible:
                names = ", ".join(cell.missing)
                assert names in str(element.get_attribute("title"))
                link = element.find_element(By.CSS_SELECTOR, "a")
                target = str(link.get_attribute("href")).partition("#")[2]
                (place,) = browser.all(f"#{target}")
                assert names in place.find_element(By.XPATH, "following-sibling::dd[1]").text


def test_a_no_leads_to_its_reasons_without_a_mouse(browser: Browser, demo_page: Path) -> None:
    browser.show(demo_page)
    first = browser.all("td a")[0]
    first.send_keys("\ue007")
    (place,) = browser.all("dt:target")
    assert place.is_displayed()
    assert place.rect["y"] > first.rect["y"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cells_and_heads_are_readable(browser: Browser, demo_page: Path, scheme: str) -> None:
    browser.show(demo_page, scheme=scheme)
    browser.keep_picture(f"demo-{scheme}")
    for selector in ("body", "td.yes", "td.no", "thead th", "tbody th", "dd", ".legend li"):
        assert contrast(browser, selector) >= READABLE_CONTRAST, selector
    assert (luminance(colours(browser, "body")[1]) > 0.5) == (scheme == "light")


def test_the_heads_of_many_machines_are_whole(browser: Browser, wide_page: Path) -> None:
    browser.show(wide_page)
    browser.keep_picture("wide")
    clipped = browser.driver.execute_script(
        "return [...document.querySelectorAll('thead th div')].filter("
        "each => each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1"
        ").map(each => each.textContent)"
    )
    assert clipped == []
    assert all(head.text for head in browser.all("thead th"))


def test_on_paper_and_without_colour_yes_and_no_differ(browser: Browser, demo_page: Path) -> None:
    browser.show(demo_page, "print")
    for selector in ("td.yes", "td.no", "thead th"):
        ink, _ = colours(browser, selector)
        assert luminance(ink) < 0.05, "ink that shows even where no background is printed"
    browser.show(demo_page)
    printed = browser.driver.execute_cdp_cmd(
        "Page.printToPDF", {"printBackground": False, "preferCSSPageSize": True}
    )
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / "demo.pdf").write_bytes(base64.b64decode(printed["data"]))
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedVisionDeficiency", {"type": "achromatopsia"})
    browser.keep_picture("demo-without-colour")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedVisionDeficiency", {"type": "none"})
    backgrounds = [luminance(colours(browser, selector)[1]) for selector in ("td.yes", "td.no")]
    assert abs(backgrounds[0] - backgrounds[1]) > 0.3


def colours(browser: Browser, selector: str) -> tuple[str, str]:
    """The colour of the first such element's text, and of the first background behind it."""
    found = browser.driver.execute_script(
        "let each = document.querySelector(arguments[0]);"
        "const ink = getComputedStyle(each).color;"
        "const behind = () => getComputedStyle(each).backgroundColor;"
        "while (behind() === 'rgba(0, 0, 0, 0)') each = each.parentElement;"
        "return [ink, behind()]",
        selector,
    )
    return str(found[0]), str(found[1])


def luminance(colour: str) -> float:
    """The relative luminance of `rgb(...)` as WCAG defines it: 0 black to 1 white."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(browser: Browser, selector: str) -> float:
    lighter, darker = sorted(map(luminance, colours(browser, selector)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)
