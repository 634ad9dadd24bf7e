"""Weighted means of quotients of integers, against fractions; averages of many samples, against those of each."""

import math
from fractions import Fraction

import numpy as np
import pytest

from assay.metrics.classification.label_metrics import averaged, averages, outcomes_with_data
from assay.metrics.classification.ratio import Ratio
from assay.metrics.mean_quotients import mean_quotients

RATIOS = [
    Ratio("2 tp", "2 tp + fn + fp"),
    Ratio("tp - fp", "tp + fp + fn"),
    Ratio("tp + 1/3 tn", "tp + fn + 7/3 tn"),
    Ratio("5 tp + 4 fp", "fn"),
]


def exact_mean(above, below, weights):
    terms = zip(above, below, weights, strict=True)
    return float(sum(Fraction(int(w)) * int(n) / int(d) for n, d, w in terms) / int(sum(weights)))


@pytest.mark.parametrize("largest", [3, 1000, 1 << 40, 1 << 52])
def test_what_is_certain_is_the_mean_rounded_once(largest):
    generator = np.random.default_rng(largest)
    above = generator.integers(-largest, largest, (300, 5)).astype(float)
    below = generator.integers(1, largest, (300, 5)).astype(float)
    weights = generator.integers(1, max(2, largest // 8), (300, 5)).astype(float)
    means, is_certain = mean_quotients(above, below, weights)
    expected = np.array([exact_mean(*row) for row in zip(above, below, weights, strict=True)])
    assert (is_certain | (expected == 0)).mean() > 0.99  # terms that cancel leave nothing but the error
    assert (means[is_certain] == expected[is_certain]).all()


def test_a_mean_half_way_between_two_floats_is_not_certain():
    above, below = np.array([[2.0, 2.0], [2.0, 2.0]]), np.array([[1.0, 2.0**53], [1.0, 2.0**51]])
    means, is_certain = mean_quotients(above, below, np.ones((2, 2)))
    assert is_certain.tolist() == [False, True]
    assert means[1] == 1 + 2.0**-51


def test_numbers_that_floats_round_are_not_certain():
    one, large = np.ones((1, 2)), np.full((1, 2), 2.0**54)
    for numbers in ((large, one, one), (one, large, one), (one, one, large)):
        assert not mean_quotients(*numbers)[1].any()


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
@pytest.mark.parametrize("undefined", [0.0, 1.0, math.nan])
@pytest.mark.parametrize("ratio", RATIOS, ids=lambda each: each.below)
def test_averages_of_many_samples_are_those_of_each(ratio, undefined, average):
    generator = np.random.default_rng(0)
    weights = ratio.weights()
    for largest in (2, 20_000, 1 << 40, 1 << 60):
        counts = [generator.integers(0, largest, (60, 3)) * (generator.random((60, 3)) > 0.3) for _ in range(4)]
        of = outcomes_with_data(*(each.astype(object) for each in counts), multiclass=True)
        found = averages(weights, of, average, undefined, 0.25)
        for row, value in enumerate(found):
            single = outcomes_with_data(*(each[row].astype(object) for each in counts), multiclass=True)
            (expected,) = averaged(weights, single, average, undefined, 0.25)
            assert value == pytest.approx(expected, rel=0, abs=0, nan_ok=True)
    assert not all(map(math.isnan, found))


def test_averages_of_outcomes_that_no_float_holds_are_those_of_each():
    large = np.array([[10**400, 3], [1, 0]], object)
    of = outcomes_with_data(large, large, large, large, multiclass=True)
    assert averages(Ratio("tp", "tp + fp").weights(), of, "macro") == [0.5, 0.5]
