"""Two languages in one site: each page knows the same page in the other one, and shows the navigation of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

CHINESE = "中文"
"""The title of the section of the navigation that holds the pages in Chinese."""
HOMES = {"en": "index.md", "zh": "index.zh-CN.md"}
NAMES = {"en": "English", "zh": CHINESE}


def language(page: str) -> str:
    """The language of a page, by its path in the documentation.

    Example:
        >>> language("zh/score.md"), language("index.zh-CN.md"), language("score.md")
        ('zh', 'zh', 'en')
    """
    return "zh" if page.startswith("zh/") or page == HOMES["zh"] else "en"


def counterpart(page: str, other: str, pages: Iterable[str]) -> str:
    """The same page in another language; where it has only one, the first page in that language.

    Example:
        >>> counterpart("score.md", "zh", ["zh/score.md"]), counterpart("zh/score.md", "en", ["score.md"])
        ('zh/score.md', 'score.md')
        >>> counterpart("calibration.md", "zh", ["zh/score.md"])
        'index.zh-CN.md'
    """
    if language(page) == other:
        return page
    same = page.removeprefix("zh/") if other == "en" else f"zh/{page}"
    return same if same in pages else HOMES[other]


def alternates(page: str, urls: Mapping[str, str]) -> list[dict[str, str]]:
    """The entries of the language switch on a page; `urls` has the address of each page by its path."""
    return [{"name": NAMES[each], "lang": each, "link": urls[counterpart(page, each, urls)]} for each in HOMES]


def without_links_in_head(html: str) -> str:
    """A page whose head does not name its languages: the theme asks for a `sitemap.xml` beside each page named there.

    The site has one, at its root; and the switch leads to the other language.

    Example:
        >>> without_links_in_head('<link rel="alternate" href="zh/score.html" hreflang="zh"></head>')
        '</head>'
    """
    return re.sub(r'<link rel="alternate" [^>]*hreflang=[^>]*>\s*', "", html)


def navigation(nav: Any, page: str) -> Any:
    """The part of the navigation in the language of a page, as the theme reads it."""
    chinese = next(each for each in nav.items if each.title == CHINESE)
    if language(page) == "en":
        return SimpleNamespace(items=[each for each in nav.items if each is not chinese], homepage=nav.homepage)
    return SimpleNamespace(items=chinese.children, homepage=chinese.children[0])
