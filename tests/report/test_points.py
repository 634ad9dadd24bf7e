from __future__ import annotations

import math

from assay.render.svg import to_svg
from assay.report import Point, Points, Report, Section

PICTURE = Points(
    "schemes & sizes",
    "bits a weight",
    "KL divergence",
    [
        Point("int8", 8.0, 1e-5, 0.9e-5, 1.1e-5),
        Point("int4 <g128>", 4.25, 3e-3, 2e-3, 4e-3),
        Point("int4 sym", 4.5, 4e-3),
        Point("none", 2.0, math.nan),
        Point("broken", 3.0, math.inf),
    ],
)


def test_the_best_are_those_that_none_has_fewer_of_both_than():
    assert [each.name for each in PICTURE.best()] == ["int4 <g128>", "int8"]
    assert PICTURE.is_log
    same = Points("p", "x", "y", [Point("a", 1, 1), Point("b", 1, 2), Point("c", 2, 1), Point("d", 3, 0)])
    assert [each.name for each in same.best()] == ["a", "d"]
    assert not same.is_log


def test_it_says_what_it_shows():
    expected = "5 points; none is better than int4 <g128>, int8 in both bits a weight and KL divergence."
    assert PICTURE.summary() == expected
    assert Points("p", "x", "y", [Point("a", math.nan, 1)]).summary() == "1 points, none of them finite."


def test_it_is_stored_and_drawn(tmp_path):
    report = Report("r", [Section("s", plots=[PICTURE, Points("empty", "x", "y", [])])])
    assert Report.from_json(report.to_json()) == report
    svg = to_svg(PICTURE)
    assert "int4 &lt;g128&gt;" in svg
    assert "KL divergence" in svg
    assert "mathdefault" not in svg
    assert "broken" not in svg.split(">", 1)[1]
    page = report.to_html(tmp_path / "r.html").read_text("utf-8")
    assert "nothing is better" not in page
    text = report.to_text()
    assert "int4 sym" in text
    assert "4.25" in text
    assert "KL divergence" in report.to_markdown()
