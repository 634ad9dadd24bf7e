"""Areas are those of exact rational arithmetic over all pairs; bounds always contain them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from assay.tally.scores import curves
from assay.tally.scores.curves import Ranking
from assay.tally.sums.integer_weights import integer_weights

samples = st.lists(
    st.tuples(st.integers(0, 6).map(lambda k: k / 4), st.booleans(), st.sampled_from([0, 0.1, 1.0, 3.0, 1e-30, 1e30])),
    min_size=1,
    max_size=30,
)


def columns(rows):
    scores, positive, weights = zip(*rows, strict=True)
    return np.array(scores, np.float32), np.array(positive), np.array(weights, np.float32)


def auroc_of_pairs(scores, positive, weights):
    """The definition, over all pairs of a positive and a negative."""
    weights = [Fraction(float(w)) for w in weights]
    won = total = Fraction(0)
    for i in np.flatnonzero(positive):
        for j in np.flatnonzero(~positive):
            pair = weights[i] * weights[j]
            won += pair * Fraction(int(scores[i] > scores[j]) * 2 + int(scores[i] == scores[j]), 2)
            total += pair
    return won / total if total else math.nan


def ap_of_steps(scores, positive, weights):
    """The definition, in rational arithmetic."""
    weights = [Fraction(float(w)) for w in weights]
    total = sum(w for w, p in zip(weights, positive, strict=True) if p)
    value = before = Fraction(0)
    for threshold in sorted(set(scores.tolist()), reverse=True):
        reached = [(w, p) for s, w, p in zip(scores, weights, positive, strict=True) if s >= threshold]
        hits = sum((w for w, p in reached if p), Fraction(0))
        if hits:
            value += (hits - before) * hits / sum(w for w, _ in reached)
        before = hits
    return value / total if total else math.nan


@given(samples)
def test_auroc_is_the_share_of_pairs_with_weights(rows):
    scores, positive, weights = columns(rows)
    expected = auroc_of_pairs(scores, positive, weights)
    got = curves.auroc(curves.of_samples(scores, positive, integer_weights(weights)[0]))
    assert got == curves.BoundedEstimate(expected, expected, expected) or (
        math.isnan(expected) and math.isnan(got.value)
    )
    ones = np.ones(len(scores))
    got = curves.auroc(curves.of_samples(scores, positive)).value
    assert got == auroc_of_pairs(scores, positive, ones) or math.isnan(got)


@given(samples)
def test_average_precision_is_the_sum_of_steps(rows):
    scores, positive, weights = columns(rows)
    for w in (weights, np.ones(len(scores))):
        expected = ap_of_steps(scores, positive, w)
        got = curves.average_precision(curves.of_samples(scores, positive, integer_weights(w)[0])).value
        assert got == pytest.approx(float(expected), rel=1e-14, abs=0, nan_ok=True)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.booleans()), min_size=2, max_size=60),
    st.integers(1, 12),
)
def test_bounds_contain_the_value_of_any_order_within_bins(rows, width):
    """Scores 0 ... 40 in bins of `width`; some bins are declared to hold one value, and then do."""
    score, positive, single = (np.array(column) for column in zip(*rows, strict=True))
    place = score // width
    alone = {int(b): bool(single[place == b][0]) for b in np.unique(place)}
    score = np.where([alone[int(b)] for b in place], place * width, score)
    filled = np.unique(place)[::-1]
    counts = [np.array([((place == b) & (positive == kind)).sum() for b in filled]) for kind in (True, False)]
    binned = Ranking(filled.astype(float), counts[0], counts[1], np.array([alone[int(b)] for b in filled]))
    exact = curves.of_samples(score, positive)
    for area in (curves.auroc, curves.average_precision):
        value, bounds = area(exact).value, area(binned)
        if math.isnan(value):
            assert all(map(math.isnan, bounds))
        else:
            assert bounds.lower <= value <= bounds.upper
            assert bounds.lower <= bounds.value <= bounds.upper


def test_the_bounds_of_average_precision_are_nearly_reached():
    """One bin, with its positives first or last."""
    binned = Ranking(np.array([0.5]), np.array([40]), np.array([60]), np.array([False]))
    bounds = curves.average_precision(binned)
    first = ap_of_steps(np.arange(100)[::-1], np.arange(100) < 40, np.ones(100))
    last = ap_of_steps(np.arange(100)[::-1], np.arange(100) >= 60, np.ones(100))
    assert float(first) == pytest.approx(bounds.upper, abs=1e-12)
    assert bounds.lower <= float(last) <= bounds.lower + 1e-4


def test_the_estimate_of_average_precision_is_the_mean_over_orders():
    binned = Ranking(np.array([0.9, 0.5]), np.array([3, 5]), np.array([2, 9]), np.array([True, False]))
    generator = np.random.default_rng(0)
    values = []
    for _ in range(4000):
        scores = np.concatenate([np.full(5, 99.0), generator.permutation(14)])
        positive = np.repeat([True, False, True, False], [3, 2, 5, 9])
        values.append(curves.average_precision(curves.of_samples(scores, positive)).value)
    spread = np.std(values) / len(values) ** 0.5
    assert curves.average_precision(binned).value == pytest.approx(np.mean(values), abs=4 * spread + 1e-4)


@given(samples, samples)
def test_pooled_rankings_are_those_of_all_samples(a, b):
    first, second = columns(a), columns(b)
    apart = curves.pooled([curves.of_samples(*x[:2]) for x in (first, second)])
    together = curves.of_samples(*(np.concatenate([x, y]) for x, y in zip(first[:2], second[:2], strict=True)))
    for name in ("thresholds", "positives", "negatives", "single"):
        np.testing.assert_array_equal(getattr(apart, name), getattr(together, name))


def test_sums_of_products_do_not_wrap():
    large = np.array([2**40, 2**41])
    assert curves.dot(large, large) == 2**80 + 2**82
    assert curves.dot(np.array([3, 4]), np.array([5, 6])) == 39


def test_areas_of_many_samples_are_those_of_scikit_learn():
    generator = np.random.default_rng(1)
    positive = generator.random(20_000) < 0.3
    scores = np.round(generator.normal(size=20_000) + positive, 2)
    weights = generator.random(20_000)
    for w in (None, weights):
        ranking = curves.of_samples(scores, positive, None if w is None else integer_weights(w)[0])
        assert float(curves.auroc(ranking).value) == pytest.approx(
            roc_auc_score(positive, scores, sample_weight=w), rel=1e-13
        )
        assert curves.average_precision(ranking).value == pytest.approx(
            average_precision_score(positive, scores, sample_weight=w), rel=1e-13
        )
