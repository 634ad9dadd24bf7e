"""A comparison in the terminal, as Markdown and as a page."""

from __future__ import annotations

import math
import re
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from assay.render.document import GridCell
from assay.render.html import to_html
from assay.render.live_grids import whisker
from assay.render.terminal import show
from assay.report import Comparison, Report, Samples, Section, Slice, Value, compare
from pages import Page
from report.runs import run

EVIL = "</script><script>alert('x')</script>\x1b[31m |*[red]"


@pytest.fixture
def shown() -> Comparison:
    return compare(
        run("a", share=0.6),
        run("b", seed=1, share=0.9),
        run("c", seed=2, n=150),
        flips=2,
        names=["old", "new", "small"],
    )


def test_the_terminal_shows_it(shown):
    text = shown.to_text(120)
    (flips,) = shown.flips
    for word in (
        "new, small against old",
        "Intervals of 95 %; p corrected by Holm for 6 tests; seed 0.",
        "test · new",
        "odds ratio",
        "better",
        "paired: McNemar mid-p, wider of Tango and Bonett-Price intervals; n = 200.",
        "unpaired: score test, Newcombe's interval; not paired: 50 samples are in the first only",
        f"{flips.down} worse, {flips.up} better,",
        f"better: the first 2 of {flips.up} by id",
    ):
        assert word in text, word
    assert max(map(len, shown.to_text(80).splitlines())) <= 80
    assert "odds ratio" not in shown.to_text(80)
    assert "evidence" in shown.to_text(80)
    file = StringIO()
    show(shown.to_document(), Console(file=file, width=120, force_terminal=True, color_system="truecolor", _environ={}))
    assert "\x1b[32mbetter" in file.getvalue()


def test_markdown_is_a_table_for_a_pull_request(shown):
    text = shown.to_markdown()
    delta = shown.delta("accuracy", run="new")
    assert "#### test · new\n\n| metric | | old | new | difference | interval | p | effect |" in text
    assert f"| **+{delta.difference:.4f}** |" in text
    assert "| accuracy | 🟢 better |" in text
    assert text.count("<details>") == text.count("</details>") == 2  # accuracy and loss
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) in (5, 6, 9) for row in rows)


def test_the_page_shows_it(shown):
    page = Page(to_html(shown.to_document()))
    assert len(page.all("svg")) == 6
    assert "new, small against old" in page.text
    assert "not paired: 50 samples are in the first only" in page.text
    assert next(a["class"] for a in page.all("td") if "verdict" in (a["class"] or "")) == "text verdict"
    loads = [a.get("src") or a.get("href") or "" for _, a in page.elements]
    assert all(load.startswith("#") for load in loads if load)
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(set(ids)) == len(ids)


def test_whiskers_need_a_finite_interval(shown):
    assert whisker(GridCell()) is None
    assert whisker(GridCell(span=(-math.inf, 1.0, 0.5))) is None
    assert whisker(GridCell(span=(0.0, 0.0, 0.0))) is None
    delta = shown.deltas[0]
    placed = whisker(GridCell(span=(delta.lower, delta.upper, delta.difference)))
    lower, upper, value = placed
    assert 50 < lower < value < upper == 98


def test_hostile_words_stay_words():
    ids = [f"{EVIL}{i}" for i in range(20)]
    reports = []
    for title, flags in ((EVIL, [True] * 20), ("b" + EVIL, [False] * 20)):
        samples = Samples.pack(ids, {EVIL: flags}, decision=ids, target=ids)
        value = Value(EVIL, float(np.mean(flags)), numerator=EVIL)
        slices = [Slice.of(EVIL, [value], [True] * 20), Slice.of(f"of {title}", [value], [True] * 20)]
        values = [value, Value(f"only in {title}", 1)]
        reports.append(Report(title, [Section(EVIL, values, samples=samples, slices=slices)], device=EVIL))
    found = compare(*reports)
    page = Page(to_html(found.to_document()))
    assert [each.get("type") for each in page.all("script")] == ["application/json", None]
    assert page.text.count("<script>alert('x')</script>") > 20
    assert "\x1b" not in to_html(found.to_document()) + found.to_text(120) + found.to_markdown()
    assert "<script>" not in found.to_markdown()


def test_it_is_written_as_a_page(shown, tmp_path):
    path = shown.to_html(tmp_path / "c.html")
    assert path.read_text(encoding="utf-8") == to_html(shown.to_document())
