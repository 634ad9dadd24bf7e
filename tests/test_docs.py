"""The README and the pages run as they stand, and point to what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import assay.metrics
from assay.metrics import Metric

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_examples_run(page: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(page):
        exec(compile(block, page.name, "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.read_text("utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def test_the_readme_names_every_metric() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    table = text[text.index("| family | metrics") : text.index("`assay devices` prints")]
    named = set(re.findall(r"\b[A-Z][A-Za-z0-9]+\b", table))
    public = {name for name in assay.metrics.__all__ if name != Metric.__name__}
    assert named == public


@pytest.mark.parametrize("name", sorted(set(assay.metrics.__all__) - {"Metric"}))
def test_every_metric_says_what_a_reader_needs(name: str) -> None:
    text = getattr(assay.metrics, name).__doc__ or ""
    for part in ("Example:", ">>>", "Source:", "Returns:"):
        assert part in text, f"{name} lacks {part}"
