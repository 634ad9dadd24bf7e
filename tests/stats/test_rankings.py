"""The average precision against scikit-learn, against values without each sample, and against true values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from sklearn.metrics import average_precision_score

from assay.stats.intervals import clopper_pearson_of
from assay.stats.rankings import (
    counts_by_score,
    precision_bias,
    precision_interval,
    precision_moves,
    precision_slopes,
)


def samples(seed, n, steps=8):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 3 == 0).astype(int)
    return rng.integers(steps, size=n) / steps + labels / 4, labels


@given(st.integers(0, 2**32), st.integers(7, 30))
def test_slopes_are_those_of_weights(seed, n):
    scores, labels = samples(seed, n)
    positives, negatives, place = counts_by_score(scores, labels)
    value, of_positives, of_negatives = precision_slopes(positives, negatives)
    assert value == pytest.approx(average_precision_score(labels, scores))
    assert positives @ of_positives + negatives @ of_negatives == pytest.approx(0, abs=1e-12)
    weights = np.ones(n)
    for k, step in ((0, 1e-6), (n - 1, 1e-6)):
        weights[k] = 1 + step
        slope = (average_precision_score(labels, scores, sample_weight=weights) - value) / step
        weights[k] = 1
        assert slope == pytest.approx((of_positives if labels[k] else of_negatives)[place[k]], abs=1e-5)


@given(st.integers(0, 2**32), st.integers(7, 25))
def test_the_bias_is_that_of_values_without_each_sample(seed, n):
    scores, labels = samples(seed, n)
    without = [average_precision_score(np.delete(labels, k), np.delete(scores, k)) for k in range(n)]
    expected = (n - 1) * (np.mean(without) - average_precision_score(labels, scores))
    assert precision_bias(*counts_by_score(scores, labels)[:2]) == pytest.approx(expected, abs=1e-10)


def test_moves_leave_out_what_is_ignored():
    scores, labels = samples(1, 40)
    value, moves = precision_moves(np.append(scores, [0.1, 0.9]), np.append(labels, [-1, -1]))
    same, others = precision_moves(scores, labels)
    assert value == same
    assert moves.tolist() == [*others.tolist(), 0, 0]


def test_the_interval_is_the_wider_of_both_and_a_gates_the_widest_of_three():
    scores, labels = samples(2, 60)
    positives, negatives, _ = counts_by_score(scores, labels)
    p, n = labels.sum(), 60 - labels.sum()
    value, a, b = precision_slopes(positives, negatives)
    parts = positives @ a**2 * p / (p - 1), negatives @ b**2 * n / (n - 1)
    assert sum(parts) == pytest.approx(np.sum(precision_moves(scores, labels)[1] ** 2))
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (p - 1) + parts[1] ** 2 / (n - 1))
    error = max(stats.t.ppf(0.975, freedom) * math.sqrt(sum(parts)), 1.959964 * math.sqrt(value * (1 - value) / p))
    expected = special.expit(special.logit(value) + error / (value * (1 - value)) * np.array([-1, 1]))
    assert precision_interval(positives, negatives) == pytest.approx(tuple(expected), abs=1e-6)
    count = min(value * (1 - value) / sum(parts), p)
    others = clopper_pearson_of(value * count, count, 0.95)
    lower, upper = precision_interval(positives, negatives, safe=True)
    bias = max(0.0, precision_bias(positives, negatives))
    assert bias > 0
    assert (lower, upper) == pytest.approx((min(others[0], expected[0]) - bias, max(others[1], expected[1])), abs=1e-6)


def test_perfect_rankings_of_few_positives_are_no_proof():
    lower, upper = precision_interval(np.array([5, 0]), np.array([0, 20]))
    assert (lower, upper) == (pytest.approx(0.025 ** (1 / 5)), 1)
    assert precision_interval(np.array([1, 0]), np.array([0, 20]))[0] == pytest.approx(0.025)


def true_precision(prevalence, shift, found):
    grid = np.linspace(-8, 8 + shift, 40_001)
    recall = found * stats.norm.sf(grid, shift) + (1 - found) * stats.norm.sf(grid)
    precision = prevalence * recall / (prevalence * recall + (1 - prevalence) * stats.norm.sf(grid))
    return float(np.sum(-np.diff(recall) * (precision[1:] + precision[:-1]) / 2))


@pytest.mark.parametrize(("prevalence", "shift", "found"), [(0.3, 1.2, 1.0), (0.9, 1.2, 1.0), (0.05, 9.0, 0.7)])
@pytest.mark.parametrize("n", [60, 400])
def test_it_holds_the_true_value(prevalence, shift, found, n):
    """Also where a share of the positives is found surely, and the others are like negatives."""
    rng, repeats, truth, held, missed = (
        np.random.default_rng(n),
        400,
        true_precision(prevalence, shift, found),
        0,
        [0, 0],
    )
    for _ in range(repeats):
        labels = np.concatenate([[1, 0], (rng.random(n - 2) < prevalence).astype(int)])
        scores = rng.normal(size=n) + shift * labels * (rng.random(n) < found)
        counts = counts_by_score(scores, labels)[:2]
        lower, upper = precision_interval(*counts)
        held += lower <= truth <= upper
        lower, upper = precision_interval(*counts, safe=True)
        missed = [missed[0] + (upper < truth), missed[1] + (lower > truth)]
    assert held >= stats.binom.ppf(0.001, repeats, 0.94)
    assert max(missed) <= stats.binom.ppf(0.999, repeats, 0.025)
