"""The page: whole, self-contained, safe whatever the report says, and the same bytes for the same report."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from assay.render.chart_parts import INKS
from assay.render.charts import chart
from assay.render.html import to_html
from assay.render.matrices import ConfusionDifference
from assay.render.points import Point, Points
from assay.render.svg import to_svg
from assay.render.trends import Trend, TrendPoint
from assay.report import ConfusionPlot, Report, Section, Table, Value
from assay.report.worst_slices import dots_of
from pages import Page
from report.conftest import everything


def test_the_page_holds_all_that_the_report_says(report, html):
    page = Page(html)
    drawn = len(report.sections[0].plots) + 1  # and the slices
    assert len(page.all("svg")) == len(page.all("figcaption")) == drawn
    for word in ("0.3333", "[0.3000, 0.4000]", "n = 1,152,921,504,606,846,976", "∞", "1.5 s"):
        assert word in page.text
    assert {"title": str(1 / 3)} in page.all("strong")


def test_nothing_is_loaded_from_elsewhere(html):
    page = Page(html)
    assert not page.all("link")
    loads = [a.get("src") or a.get("href") or "" for _, a in page.elements]
    assert all(load.startswith(("#", "data:")) for load in loads if load)
    urls = re.findall(r"url\(([^)]*)\)|@import", html)
    assert all(url.startswith("#p") for url in urls)
    (policy,) = [a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")


def test_the_policy_names_the_hashes_of_the_two_scripts_and_no_other(html):
    page = Page(html)
    assert [each.get("type") for each in page.all("script")] == ["application/json", "text/plain", None]
    _, packed, own = page.scripts
    library = gzip.decompress(base64.b64decode(packed)).decode()
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in (own, library)]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert f'script-src {allowed}">' in html
    notice = " ".join(library.partition("*/")[0].split())
    for words in (
        "University of Washington",
        "must reproduce the above copyright notice",
        "Mike Bostock",
        "Simon Lydell",
    ):
        assert words in notice


def test_a_page_without_plots_has_no_library():
    html = to_html(Report("r", [Section("s", [Value("accuracy", 0.5)])]).to_document())
    assert [each.get("type") for each in Page(html).all("script")] == ["application/json", None]
    assert len(html) < 40_000


def test_hostile_text_stays_text(html, hostile):
    attacked = to_html(hostile.to_document())
    page, calm = Page(attacked), Page(html)
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in calm.elements]
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert page.text.count("<script>alert('x')</script>") > 10
    assert "\x1b" not in page.text
    assert "\x00" not in page.text
    assert len(page.scripts) == 3
    attacked.encode("utf-8")


def test_hostile_text_of_charts_is_a_value_and_never_a_field_or_an_expression(hostile):
    """Names of fields, filters, tests and formats are those of the same report with harmless words."""
    attacked, calm = ([chart(plot) for plot in _drawings(each)] for each in (hostile, everything()))
    assert [*map(_code, attacked)] == [*map(_code, calm)]
    assert all("<script>" in json.dumps(each["data"]) for each in attacked[:2])


def _drawings(report):
    """The plots of a report, those of its slices, and what else pages draw, with a word of its own in every place."""
    section, word = report.sections[0], report.title
    points = Points(word, word, word, [Point(word, 1.0, 2.0, 1.0, 3.0), Point("b", 2.0, 1.0)])
    trend = Trend(word, (word, "b"), ((TrendPoint(0, 0.5), TrendPoint(1, 0.75, change="better")),))
    difference = ConfusionDifference(word, (word, "b"), [[1, 2], [3, 4]], [[4, 3], [2, 1]])
    return [*section.plots, *dots_of(section), points, trend, difference]


def _code(drawn):
    """All strings of a chart but those in data, titles of axes, and lists of names on axes."""
    found = []
    for key, value in drawn.items() if isinstance(drawn, dict) else enumerate(drawn):
        if key == "tooltip":
            found.append((key, json.dumps(value)))  # titles of tooltips become parts of expressions
        elif key not in ("data", "title", "domain", "values", "url"):
            found += _code(value) if isinstance(value, dict | list | tuple) else [(key, str(value))]
    return found


def test_ids_are_unique_and_references_lead_somewhere(html):
    page = Page(html)
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(set(ids)) == len(ids)
    attributes = " ".join(value or "" for _, a in page.elements for value in a.values())
    assert set(re.findall(r"#([ps][\w-]+)", attributes)) <= set(ids)


def test_every_plot_has_a_name_and_follows_the_colours_of_the_page(report):
    for plot in report.sections[0].plots:
        svg = to_svg(plot)
        root = ElementTree.fromstring(svg)
        assert root.attrib["aria-label"] == f"{plot.name}: {plot.summary()}"
        assert "width" not in root.attrib
        assert set(re.findall(r'(?:fill|stroke)="(?!none|transparent|var)([^"]+)"', svg)) <= {"black"}  # of no size
        assert set(re.findall(r"var\(--([\w-]+)\)", svg)) <= set(INKS)


def test_every_ink_has_a_colour_in_light_and_in_dark():
    style = re.search(r"<style>(.*?)</style>", to_html(Report("r").to_document()), re.DOTALL)[1]
    light, dark = style.split("prefers-color-scheme: dark")
    for name in INKS:
        assert f"--{name}:" in light
        assert f"--{name}:" in dark


def test_labels_of_plots_are_never_touched():
    label = "#0a5c00 (#x)"
    root = ElementTree.fromstring(to_svg(ConfusionPlot("m", (label,), [[1]])))
    assert [element.text for element in root.iter("text")].count(label) == 2


def test_the_same_report_gives_the_same_bytes(report, tmp_path):
    path = report.to_html(tmp_path / "run.html")
    assert path.read_text(encoding="utf-8") == to_html(report.to_document())


@pytest.mark.parametrize("num_classes", [0, 1, 31, 400])
def test_matrices_of_any_size_stay_small(num_classes):
    counts = np.eye(num_classes, dtype=int)
    svg = to_svg(ConfusionPlot("m", tuple(f"class {i}" for i in range(num_classes)), counts))
    assert len(svg) < 100_000
    assert ("data:image/png;base64," in svg) == (num_classes > 30)


def test_an_empty_report_is_a_page():
    page = Page(to_html(Report("nothing", (Section("s", tables=(Table("t", ("a",), ()),)),)).to_document()))
    assert "nothing" in page.text
