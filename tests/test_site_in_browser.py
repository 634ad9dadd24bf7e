"""The documentation site in Chromium: `make test-docs` builds it and runs this on it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from chromium import BROWSER, Browser

SITE = Path(os.environ.get("ASSAY_SITE", Path(__file__).parents[1] / "site"))
RESULTS = "[...document.querySelectorAll('.md-search-result__item')]"
TITLES = f"{RESULTS}.map(each => each.querySelector('h1, h2').innerText)"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed"),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built: make docs"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def search(browser: Browser) -> Iterator[Browser]:
    """The first page with its search open and ready: of a file, the index is read when the field gets the focus."""
    browser.open(SITE / "index.html", live=False)
    browser.wait("document.querySelector('.md-search__input').offsetWidth > 0")
    yield browser
    assert browser.console() == []
    assert [url for url in browser.requests() if not url.startswith("file:")] == []


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("wer", "WordErrorRate"),
        ("准确率", "Accuracy"),
        ("auc", "AUROC"),
        ("word error rate", "WordErrorRate"),
        ("词错误率", "WordErrorRate"),
        ("map", "MeanAveragePrecision"),
        ("average precision", "AveragePrecision"),
    ],
)
def test_the_search_finds_a_metric_by_its_names_first(query: str, first: str, search: Browser) -> None:
    search.type(".md-search__input", query)
    search.run("document.querySelector('.md-search__input').dispatchEvent(new KeyboardEvent('keyup'))")
    found = search.wait(f"{TITLES}.some(each => each.includes({first!r})) && {TITLES}", seconds=240)
    assert found[0].startswith(first), found[:5]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("lightning", "assay inside other libraries"),
        ("gguf", "Quantized models in files"),
        ("slices", "Evaluating a"),
        ("numpy", "Quick start"),
        ("hugging face trainer", "assay inside other libraries"),
    ],
)
def test_the_search_prefers_pages_that_explain_in_the_language_of_the_query(query: str, first: str, search: Browser):
    search.type(".md-search__input", query)
    search.run("document.querySelector('.md-search__input').dispatchEvent(new KeyboardEvent('keyup'))")
    found = search.wait(f"{TITLES}.some(each => each.startsWith({first!r})) && {TITLES}", seconds=240)
    assert not re.search("[\u4e00-\u9fff]", found[0]), found[:5]
    assert any(title.startswith(first) for title in found[:2]), found[:5]


def test_a_dark_system_sees_a_dark_page_at_once_and_after_a_visit_by_day(browser: Browser) -> None:
    colour = "getComputedStyle(document.body).getPropertyValue('color-scheme')"
    for dark in (False, True, False):
        browser.open(SITE / "quickstart.html", live=False, dark=dark)
        assert browser.wait(colour) == ("dark" if dark else "light")
    page = (SITE / "index.html").read_text("utf-8")
    assert page.index('media:"(prefers-color-scheme)"') < page.index("<body")


def test_pages_in_chinese_say_so_and_lead_to_english_and_back(browser: Browser) -> None:
    browser.open(SITE / "zh" / "score.html", live=False)
    assert browser.run("document.documentElement.lang") == "zh"
    tabs = browser.run("[...document.querySelectorAll('.md-tabs__link')].map(each => each.innerText.trim())")
    assert "操作指南" in tabs
    assert "How-to" not in tabs
    browser.run("document.querySelector('.md-select__link[hreflang=en]').click()")
    browser.wait("document.documentElement?.lang === 'en' && document.readyState === 'complete'")
    assert browser.run("location.pathname.endsWith('/score.html')")
    assert not browser.run("location.pathname.includes('/zh/')")
    assert [url for url in browser.requests() if "sitemap" in url] == []
    browser.run("document.querySelector('.md-select__link[hreflang=zh]').click()")
    browser.wait("document.documentElement?.lang === 'zh' && location.pathname.endsWith('/zh/score.html')")


@pytest.mark.parametrize("page", ["index.html", "zh/score.html", "gallery/index.html", "reference/metrics/AUROC.html"])
def test_pages_fit_a_phone(page: str, browser: Browser) -> None:
    browser.open(SITE / page, 390, 900, live=False)
    assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_the_gallery_leads_to_its_reports(browser: Browser) -> None:
    browser.open(SITE / "gallery" / "index.html", live=False)
    links = "[...document.querySelectorAll('article h2 a:not(.headerlink)')].map(each => each.href)"
    pages = browser.run(links)
    assert len(pages) == 12
    assert browser.run("document.querySelectorAll('article img').length") in (
        0,
        24,
    )  # light and dark; none without Chromium
    browser.open(Path(pages[0].removeprefix("file://")), live=False)
    browser.open(Path(browser.run("document.querySelector('a.md-button').href").removeprefix("file://")))
    assert browser.run("document.querySelector('h1').innerText") == "Handwritten digits"
