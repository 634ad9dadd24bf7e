"""The navigation of the documentation site, read for tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]


def navigation() -> list[Any]:
    """The entries of `nav` in mkdocs.yml."""
    return list(yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"])


def pages(nav: Any) -> Iterator[str]:
    """The pages of a navigation, however deep."""
    if isinstance(nav, str):
        yield nav
        return
    for each in nav.values() if isinstance(nav, dict) else nav:
        yield from pages(each)


def section(title: str) -> list[str]:
    """The pages of a section by its title."""
    return next([*pages(entry[title])] for entry in navigation() if title in entry)
