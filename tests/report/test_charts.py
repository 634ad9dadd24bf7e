"""Charts hold the numbers of their plots: what a page draws and says on hover."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest

from assay.render.charts import chart, still
from assay.render.matrices import ConfusionDifference, ConfusionPlot, MatrixPlot
from assay.render.plots import Bars, Curve, Curves, Distribution, Dot, Dots, Reliability, Residuals
from assay.render.points import Point, Points
from assay.render.svg import to_svg
from assay.render.trends import Trend, TrendPoint


def rows(plot):
    return chart(plot)["data"]["values"]


def test_curves_keep_their_points_and_colours():
    plot = Curves("c", "pr", [Curve("cat", [0, 0.123456789, 1], [1, 0.5, 0]), Curve("dog", [0, 1], [1, 0])])
    assert [(each["line"], each["name"], each["x"], each["y"]) for each in rows(plot)] == [
        (0, "cat", [0, 0.123457, 1], [1, 0.5, 0]),
        (1, "dog", [0, 1], [1, 0]),
    ]
    assert [layer["mark"]["type"] for layer in chart(plot)["layer"]] == ["line", "point"]
    assert len(still(chart(plot))["layer"]) == 1
    diagonal, *_ = chart(Curves("c", "roc", plot.curves))["layer"]
    assert diagonal["data"]["values"] == [{"x": 0, "y": 0}, {"x": 1, "y": 1}]


def test_a_bin_of_a_reliability_diagram_says_its_ends_its_gap_and_its_share():
    plot = Reliability("r", [0, 0.25, 0.5, 1], [math.nan, 0.4, 0.9], [math.nan, 0.5, 0.7], [0, 1, 999])
    first, second = rows(plot)
    assert (first["bin"], first["low"], first["n"], first["share"]) == ("0.25 to 0.5", 0.4, 1, "<1%")
    assert (second["bin"], second["low"], second["confidence"], second["share"]) == ("0.5 to 1", 0.7, 0.9, "100%")


def test_a_residual_says_prediction_and_target():
    (row,) = rows(Residuals("r", [3.0, math.nan], [0.5, 1.0], 2))
    assert row == {"x": 3.0, "y": 0.5, "target": 2.5}


def test_shares_of_a_distribution_are_of_each_group():
    plot = Distribution("d", [0, 1, 2], [*_series(a=[3, 1], b=[0, 0])], "score")
    assert [(each["name"], each["from"], each["to"], each["n"], each["y"]) for each in rows(plot)] == [
        ("a", 0, 1, 3, 0.75),
        ("a", 1, 2, 1, 0.25),
        ("b", 0, 1, 0, 0),
        ("b", 1, 2, 0, 0),
    ]


def _series(**counts):
    from assay.render.plots import Series

    return (Series(name, each) for name, each in counts.items())


def test_a_cell_of_a_matrix_has_the_share_of_its_target():
    cells = {(each["target"], each["pred"]): each for each in rows(ConfusionPlot("m", ("a", "b"), [[3, 1], [0, 0]]))}
    assert {key: (each["count"], each["share"], each["tone"]) for key, each in cells.items()} == {
        ("a", "a"): ("3", 0.75, "heat"),
        ("a", "b"): ("1", 0.25, "warm"),
        ("b", "a"): ("", 0, "warm"),
        ("b", "b"): ("", 0, "heat"),
    }
    assert cells["a", "b"]["shade"] == pytest.approx(0.25**0.6, rel=1e-5)
    assert [each["count"] for each in rows(MatrixPlot("m", ("a", "b"), [[0.125, 0], [0, 0.5]]))] == [
        "0.125",
        "",
        "",
        "0.5",
    ]


def test_a_difference_is_green_where_more_is_right_or_less_is_wrong():
    plot = ConfusionDifference("m", ("a", "b"), [[5, 5], [2, 8]], [[8, 2], [6, 4]])
    assert [(each["count"], each["was"], each["now"], each["share"], each["tone"]) for each in rows(plot)] == [
        ("+3", 5, 8, 0.3, "line2"),
        ("−3", 5, 2, -0.3, "line2"),
        ("+4", 2, 6, 0.4, "warm"),
        ("−4", 8, 4, -0.4, "warm"),
    ]
    assert rows(plot)[2]["shade"] == 1
    assert {each["shade"] for each in rows(ConfusionDifference("m", ("a",), [[5]], [[5]]))} == {0}


def test_of_many_classes_the_darkest_cells_are_named():
    counts = np.zeros((60, 60), int)
    counts[7, 9] = counts[3, 3] = 5
    counts[3, 4] = 1
    named = rows(ConfusionPlot("m", tuple(map(str, range(60))), counts.tolist()))
    assert len(named) == 1000
    assert [(each["target"], each["pred"]) for each in named[:3]] == [("7", "9"), ("3", "3"), ("3", "4")]


def test_rows_of_the_same_name_stay_apart():
    bars = rows(Bars("b", ("same", "same", "a name that is much too long for it"), (0.5, 0.25, math.nan)))
    assert len({each["label"] for each in bars}) == 3
    assert [each["of"] for each in bars] == ["same", "same", "a name that is much too long for it"]
    assert [(each["value"], each["shown"], each["end"]) for each in bars] == [
        (0.5, "0.5000", 0.5),
        (0.25, "0.2500", 0.25),
        (None, "–", 0.0),
    ]


def test_slices_have_their_counts_intervals_and_the_line_of_all_samples():
    plot = Dots("accuracy", (Dot("de", 1200, 0.5, 0.4, 0.6, "warm"), Dot("en", 9, 0.9, None, None, "faint")), 0.7, 2)
    assert [(each["label"], each["lower"], each["upper"], each["ink"]) for each in rows(plot)] == [
        ("de  n=1,200", 0.4, 0.6, "warm"),
        ("en  n=9", None, None, "faint"),
    ]
    assert chart(plot)["layer"][-1]["encoding"]["x"] == {"datum": 0.7}
    assert len(chart(Dots("a", plot.dots, None, 2))["layer"]) == 2


def test_a_trend_has_all_runs_on_its_axis_and_a_line_for_each_set_of_data():
    lines = ((TrendPoint(0, 0.5), TrendPoint(2, 0.75, 0.7, 0.8, "better")), (TrendPoint(1, 0.25),))
    plot = Trend("t", ("a", "b", "c"), lines)
    assert [(each["of"], each["line"], each["value"], each["change"]) for each in rows(plot)] == [
        ("a", 0, 0.5, ""),
        ("c", 0, 0.75, "better"),
        ("b", 1, 0.25, ""),
    ]
    assert chart(plot)["layer"][0]["encoding"]["x"]["scale"]["domain"] == ["a", "b", "c"]


def test_points_below_zero_are_on_a_plain_axis_and_intervals_that_reach_zero_are_left_out_of_a_log_one():
    points = Points("p", "size", "loss", [Point("a", 1.0, 0.5, 0.0, 0.7), Point("b", 2.0, 0.1, 0.05, 0.2)])
    assert chart(points)["layer"][0]["encoding"]["y"]["scale"]["type"] == "log"
    assert [(each["lower"], each["best"], each["up"]) for each in rows(points)] == [
        (None, True, "0.5000 (loss)"),
        (0.05, True, "0.1000 (loss)"),
    ]
    below = Points("p", "size", "loss", [Point("a", 1.0, -0.5)])
    assert "type" not in chart(below)["layer"][0]["encoding"]["y"]["scale"]


@pytest.mark.parametrize(
    "plot",
    [
        Bars("b", (), ()),
        Curves("c", "roc", ()),
        Curves("c", "pr", [Curve("x", [math.nan], [math.nan])]),
        Points("p", "x", "y", ()),
        Trend("t", (), ()),
        Residuals("r", (), (), 0),
        Reliability("r", [0, 1], [math.nan], [math.nan], [0]),
        Distribution("d", [0, 1], ()),
        Bars("b", ("x",), (math.inf,), (-math.inf,), (math.inf,)),
    ],
    ids=lambda plot: type(plot).__name__,
)
def test_plots_without_anything_to_draw_are_pictures(plot):
    ElementTree.fromstring(to_svg(plot))
