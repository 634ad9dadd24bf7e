"""The page: whole, self-contained, safe whatever the report says, and the same bytes for the same report."""

from __future__ import annotations

import base64
import hashlib
import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from assay.render.html import to_html
from assay.render.svg import INKS, to_svg
from assay.report import ConfusionPlot, Report, Section, Table
from pages import Page


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


def test_the_policy_names_the_hash_of_the_one_script(html):
    (script,) = Page(html).scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html


def test_hostile_text_stays_text(html, hostile):
    attacked = to_html(hostile.to_document())
    page, calm = Page(attacked), Page(html)
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in calm.elements]
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert page.text.count("<script>alert('x')</script>") > 10
    assert "\x1b" not in page.text
    assert "\x00" not in page.text
    assert len(page.scripts) == 1
    attacked.encode("utf-8")


def test_ids_are_unique_and_references_lead_somewhere(html):
    page = Page(html)
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(set(ids)) == len(ids)
    attributes = " ".join(value or "" for _, a in page.elements for value in a.values())
    assert set(re.findall(r"#([ps][\w-]+)", attributes)) <= set(ids)


def test_every_plot_has_a_name_and_follows_the_colours_of_the_page(report):
    for plot in report.sections[0].plots:
        svg = to_svg(plot, "k")
        root = ElementTree.fromstring(svg)
        assert root.attrib["aria-label"] == f"{plot.name}: {plot.summary()}"
        assert "width" not in root.attrib
        assert not re.findall(r"(?:fill|stroke): #", svg)
        assert set(re.findall(r"var\(--([\w-]+)\)", svg)) <= set(INKS)


def test_every_ink_has_a_colour_in_light_and_in_dark():
    style = re.search(r"<style>(.*?)</style>", to_html(Report("r").to_document()), re.DOTALL)[1]
    light, dark = style.split("prefers-color-scheme: dark")
    for name in INKS:
        assert f"--{name}:" in light
        assert f"--{name}:" in dark


def test_labels_of_plots_are_never_touched():
    label = "#0a5c00 (#x)"
    root = ElementTree.fromstring(to_svg(ConfusionPlot("m", (label,), [[1]]), "k"))
    assert [element.text for element in root.iter("text")].count(label) == 2


def test_the_same_report_gives_the_same_bytes_and_leaves_the_settings_of_matplotlib(report, tmp_path):
    before = dict(matplotlib.rcParams)
    path = report.to_html(tmp_path / "run.html")
    assert path.read_text(encoding="utf-8") == to_html(report.to_document())
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("num_classes", [0, 1, 31, 400])
def test_matrices_of_any_size_stay_small(num_classes):
    counts = np.eye(num_classes, dtype=int)
    svg = to_svg(ConfusionPlot("m", tuple(f"class {i}" for i in range(num_classes)), counts), "k")
    assert len(svg) < 100_000
    assert ("data:image/png;base64," in svg) == (num_classes > 30)


def test_an_empty_report_is_a_page():
    page = Page(to_html(Report("nothing", (Section("s", tables=(Table("t", ("a",), ()),)),)).to_document()))
    assert "nothing" in page.text
