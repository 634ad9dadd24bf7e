"""The gallery of the site: every script runs, and its page works in a browser."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from chromium import BROWSER, Browser

ROOT = Path(__file__).parents[1]
GALLERY = runpy.run_path(str(ROOT / "docs" / "site" / "gallery.py"))
NAMES = GALLERY["ORDER"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if BROWSER is None:
        pytest.skip("no Chromium is installed")
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


def test_the_gallery_shows_every_script_once() -> None:
    assert sorted(NAMES) == sorted(path.stem for path in (ROOT / "examples" / "gallery").glob("*.py"))
    assert len(NAMES) == 12
    pages = GALLERY["pages"](f"{name}-{scheme}.png" for name in NAMES for scheme in (0, 1))
    assert pages.keys() == {"gallery/index.md", *(f"gallery/{name}.md" for name in NAMES)}
    for name in NAMES:
        assert f"]({name}.md)" in pages["gallery/index.md"]
        page = pages[f"gallery/{name}.md"]
        assert re.findall(r"^# \S.*$", page, re.MULTILINE)
        assert f"](reports/{name}.html)" in page
        assert f"reports/{name}-1.png#only-light" in page
        assert f"reports/{name}-0.png#only-dark" in page


def test_a_page_without_a_picture_shows_none() -> None:
    assert "#only-" not in GALLERY["pages"](())["gallery/digits.md"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_report_of_a_script_fits_a_phone_and_loads_nothing(name: str, browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    GALLERY["run"](name, page)
    for width, dark in ((1200, False), (390, False), (390, True)):
        browser.open(page, width, 900, dark=dark)
        assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert browser.run("document.querySelector('h1').textContent.length > 3")
        assert browser.console() == []
        assert browser.requests() == []
