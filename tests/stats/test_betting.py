"""Intervals that hold at any number of looks: against products over single samples, and while samples come in."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from assay.stats import betting
from assay.stats.betting import FRACTIONS, betting_interval, clustered_betting_interval, log_wealth
from thinning import draws


def wealth(samples: list[Fraction], low: Fraction, bound: Fraction) -> float:
    """What bets have won, multiplied sample by sample."""
    of_each = [
        math.prod((1 - f + f * (x - low) / (bound - low) for x in samples), start=Fraction(1))
        for f in map(Fraction, FRACTIONS.tolist())
    ]
    return float(sum(of_each) / len(of_each))


@pytest.mark.parametrize(("low", "bound"), [(0, "4/5"), (-1, "-1/50"), (-2, "1/3")])
def test_wealth_is_the_mean_of_products(low: int, bound: str) -> None:
    samples = [Fraction(x) for x in np.random.default_rng(0).choice([low, 0, 1], 40).tolist()]
    values, counts = np.unique([float(x) for x in samples], return_counts=True)
    expected = math.log(wealth(samples, Fraction(low), Fraction(bound)))
    assert log_wealth(values, counts, low, float(Fraction(bound))) == pytest.approx(expected, abs=1e-9)


def test_ends_are_where_the_bets_have_won_enough() -> None:
    values, counts = np.array([0.0, 1.0]), np.array([10.0, 50.0])
    lower, upper = betting_interval(values, 0.0, 1.0, counts=counts)
    assert log_wealth(values, counts, 0.0, lower) == pytest.approx(math.log(40), abs=1e-6)
    assert log_wealth(1 - values, counts, 0.0, 1 - upper) == pytest.approx(math.log(40), abs=1e-6)
    assert betting_interval(np.repeat(values, [10, 50]), 0.0, 1.0) == pytest.approx((lower, upper))


def test_samples_that_are_all_alike_prove_no_point() -> None:
    lower, upper = betting_interval(np.zeros(30), -1.0, 1.0)
    assert -0.5 < lower < 0 < upper < 0.5
    assert betting_interval(np.ones(30), 0.0, 1.0)[1] == 1.0
    assert betting_interval(np.zeros(30), 0.0, 1.0)[0] == 0.0
    assert betting_interval(np.zeros(0), 0.0, 1.0) == (0.0, 1.0)


def test_numbers_on_the_grid_widen_the_interval_by_less_than_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).beta(2, 5, 500)
    exact = betting_interval(values, 0.0, 1.0)
    monkeypatch.setattr(betting, "GRID", 64)
    lower, upper = betting_interval(values, 0.0, 1.0)
    assert exact[0] - 1 / 64 < lower <= exact[0]
    assert exact[1] <= upper < exact[1] + 1 / 64


def test_twenty_looks_miss_no_more_often_than_the_level() -> None:
    rng, missed = np.random.default_rng(2), 0
    repeats = len(draws(100))
    for _ in range(repeats):
        right = np.cumsum(rng.random(400) < 0.9)
        ends = [
            betting_interval(np.array([0.0, 1.0]), 0.0, 1.0, counts=np.array([n - right[n - 1], right[n - 1]]))
            for n in range(20, 401, 20)
        ]
        missed += any(not lower <= 0.9 <= upper for lower, upper in ends)
    assert missed <= 0.05 * repeats


def test_clusters_of_one_sample_are_samples_and_small_ones_bet_less():
    values = np.random.default_rng(8).random(60)
    ones = np.ones(60)
    assert clustered_betting_interval(values, ones, 1, 0.0, 1.0) == pytest.approx(betting_interval(values, 0.0, 1.0))
    wider = clustered_betting_interval(values, ones, 5, 0.0, 1.0)  # a cluster of five may come yet
    assert wider[0] < betting_interval(values, 0.0, 1.0)[0]
    assert wider[1] > betting_interval(values, 0.0, 1.0)[1]
    assert clustered_betting_interval(np.zeros(0), np.zeros(0), 5, -1.0, 1.0) == (-1.0, 1.0)


def test_bets_on_clusters_rarely_win_against_the_truth():
    """Of clusters of 1 to 9 samples that are all right or all wrong, at each of 40 looks."""
    random, missed = np.random.default_rng(9), 0
    repeats = len(draws(200))
    for _ in range(repeats):
        sizes = random.integers(1, 10, 40)
        sums = sizes * (random.random(40) < 0.7)
        ends = [clustered_betting_interval(sums[:n] * 1.0, sizes[:n] * 1.0, 9, 0.0, 1.0) for n in range(4, 41, 6)]
        missed += any(lower > 0.7 or upper < 0.7 for lower, upper in ends)
    assert missed <= 0.075 * repeats
