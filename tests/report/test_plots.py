"""Plots as data: what they refuse, how curves are thinned, what their captions say."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from assay.errors import ConfigError, InputError, ShapeError
from assay.report import Bars, ConfusionPlot, Curve, Curves, Distribution, Reliability, Residuals, Series


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConfusionPlot("m", ("a", "b"), [[1, 2]]), "got 1 rows of \\[2\\], expected 2 rows of 2 counts"),
        (lambda: ConfusionPlot("m", ("a",), [[1, 2]]), "got 1 rows of \\[2\\], expected 1 rows of 1 counts"),
        (lambda: Curve("c", [1.0], [1.0, 2.0]), "Curve: got 1 x, 2 y, expected as many of each"),
        (lambda: Reliability("r", [0, 1], [0.5], [0.5], [1, 2]), "Reliability: got 1 confidence, 1 accuracy, 2 counts"),
        (
            lambda: Reliability("r", [0, 1], [0.5, 0.5], [0.5, 0.5], [1, 2]),
            "Reliability.edges: got 2, expected 3 edges",
        ),
        (lambda: Residuals("r", [1.0], [], 1), "Residuals: got 1 preds, 0 residuals"),
        (lambda: Residuals.sampled("r", [1.0], [1.0, 2.0]), "Residuals: got 1 preds, 2 target"),
        (lambda: Bars("b", ("a",), []), "Bars: got 1 labels, 0 values"),
        (
            lambda: Distribution("d", [0, 1], [Series("a", [1, 2])]),
            "Distribution.edges: got 2, expected 3 edges for 2 bins of 'a'",
        ),
        (lambda: Bars("b", ("a",), [1.0], [0.0]), "Bars: got 1 values, 1 lower, 0 upper"),
    ],
)
def test_series_must_belong_together(make, message):
    with pytest.raises(ShapeError, match=message):
        make()


def test_unknown_kinds_of_curves_are_refused():
    with pytest.raises(ConfigError, match=r"Curves.kind: got 'lift', expected 'roc', 'pr', 'det' or 'reliability'"):
        Curves("c", "lift", [])


def test_counts_are_whole_numbers():
    with pytest.raises(InputError, match=r"ConfusionPlot.counts\[0\]\[0\]: got float 0.5, expected an integer"):
        ConfusionPlot("m", ("a",), [[0.5]])


@pytest.mark.parametrize("make", [np.array, torch.tensor, tuple])
def test_a_matrix_takes_what_metrics_give(make):
    assert ConfusionPlot("m", ("a", "b"), make([[3, 1], [0, 2]])).counts == ((3, 1), (0, 2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_curves_take_tensors_of_any_dtype(dtype):
    assert Curve("c", torch.tensor([0.0, 0.5], dtype=dtype), [0, 1]).x == (0.0, 0.5)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=200), st.integers(2, 50))
@example([(0.0, 1.0), (0.0, 9.6e-29), (0.0, 0.0)], 2)  # the second step rounds to no length
def test_thinning_keeps_the_ends_and_only_points_of_the_curve(points, limit):
    xs, ys = zip(*points, strict=True)
    curve = Curve.thinned("c", xs, ys, limit=limit)
    kept = list(zip(curve.x, curve.y, strict=True))
    assert len(kept) <= max(limit, 1)
    assert kept[0] == points[0]
    assert kept[-1] == points[-1]
    rest = iter(points)
    assert all(point in rest for point in kept)  # in the order in which they came


def test_residuals_are_thinned_evenly_and_remember_how_many_there_were():
    plot = Residuals.sampled("r", np.arange(2500.0), np.zeros(2500), limit=1000)
    assert (len(plot.preds), plot.total) == (834, 2500)
    assert plot.residuals[1] == 3.0
    assert plot.summary().startswith("2,500 samples, 834 of them shown. Median 12")


def test_errors_are_sorted_by_frequency_then_by_class():
    plot = ConfusionPlot("m", ("a", "b", "c"), [[9, 1, 2], [2, 9, 0], [0, 5, 9]])
    assert plot.confusions(3) == (("c", "b", 5), ("a", "c", 2), ("b", "a", 2))


@pytest.mark.parametrize(
    ("plot", "summary"),
    [
        (ConfusionPlot("m", (), []), "0 of 0 samples are on the diagonal, 0 classes."),
        (Curves("c", "roc", []), "0 curves."),
        (Curves("c", "roc", [Curve("a", [0], [0], 0.75)]), "AUROC 0.7500."),
        (
            Curves("c", "pr", [Curve("a", [0], [0], 0.75), Curve("b", [0], [0], 0.5)]),
            "AP from 0.5000 (b) to 0.7500 (a).",
        ),
        (Curves("c", "pr", [Curve("a", [0], [0], math.nan)]), "1 curve."),
        (Reliability("r", [0, 1], [0.5], [0.5], [3]), "3 samples in 1 bins of confidence."),
        (Residuals("r", [], [], 0), "0 samples."),
        (Residuals("r", [1, 1], [-1, 1], 2), "2 samples. Median 0, nine tenths between -0.9 and 0.9."),
        (Bars("b", ("a", "c"), [0.5, math.nan]), "From 0.5 (a) to 0.5 (a)."),
        (Bars("b", (), []), "0 bars."),
        (Distribution("d", [0, 1], []), "Nothing in 1 bins."),
        (Distribution("d", [0, 1, 2], [Series("a", [3, 2000])], "loss"), "2,003 a in 2 bins of loss."),
    ],
)
def test_captions(plot, summary):
    assert plot.summary() == summary


@pytest.mark.parametrize("edges", [[0, 1, 1], [1, 0, 2], [0, math.nan, 1], [0, 1, math.inf]])
def test_edges_of_a_distribution_rise(edges):
    with pytest.raises(ConfigError, match=r"Distribution.edges: got .* expected finite numbers that rise"):
        Distribution("d", edges, [Series("a", [1, 2])])


def test_bins_of_a_distribution_are_numbers_above_0():
    with pytest.raises(ConfigError, match="bins: got 0, expected an integer above 0, or edges"):
        Distribution.of("d", {"a": [1.0]}, bins=0)


@given(st.lists(st.lists(st.floats(allow_nan=True, width=64), max_size=30), min_size=1, max_size=3), st.integers(1, 40))
def test_a_distribution_counts_every_finite_value_once(groups, bins):
    plot = Distribution.of("d", {f"group {i}": values for i, values in enumerate(groups)}, bins)
    assert [sum(each.counts) for each in plot.series] == [sum(map(math.isfinite, values)) for values in groups]


def test_a_distribution_is_the_histogram_on_common_edges():
    rng = np.random.default_rng(0)
    low, high = rng.normal(0, 1, 500), rng.normal(2, 1, 300)
    plot = Distribution.of("d", {"low": torch.tensor(low), "high": high}, bins=12)
    counts, edges = np.histogram(np.concatenate([low, high]), bins=12)
    assert plot.edges == tuple(edges)
    assert np.add(plot.series[0].counts, plot.series[1].counts).tolist() == counts.tolist()
    given_edges = Distribution.of("d", {"low": low}, bins=[-1.0, 0.0, 1.0])
    assert sum(given_edges.series[0].counts) == np.sum((low >= -1) & (low <= 1))


def test_reliability_of_no_samples_names_no_error():
    assert (
        Reliability("r", [0, 1], [math.nan], [math.nan], [0], math.nan).summary()
        == "0 samples in 1 bins of confidence."
    )
