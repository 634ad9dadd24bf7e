"""Differences of many groups at once: each as one group alone, by exact fractions and by SciPy."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_ind_from_stats

from assay.stats.group_differences import mean_differences, share_differences
from assay.stats.group_intervals import clopper_pearson_ends
from assay.stats.hypothesis_tests import two_proportions

SHARES = [(0, 5, 0, 7), (8, 10, 1, 6), (3, 3, 0, 40), (50, 100, 70, 100), (12, 12, 12, 12), (0, 9, 9, 9)]


def fisher(s1, n1, s2, n2):
    """Twice the smaller tail of the hypergeometric distribution, by counting tables."""
    total = math.comb(n1 + n2, s1 + s2)
    chance = {k: Fraction(math.comb(n2, k) * math.comb(n1, s1 + s2 - k), total) for k in range(min(n2, s1 + s2) + 1)}
    below, above = (sum(p for k, p in chance.items() if is_in(k)) for is_in in (lambda k: k <= s2, lambda k: k >= s2))
    return float(min(Fraction(1), 2 * min(below, above)))


def test_shares_have_the_exact_test_and_the_interval_of_each_group_alone():
    s1, n1, s2, n2 = np.array(SHARES).T
    found = share_differences((s1, s2), (n1, n2), 0.9)
    assert found.p == pytest.approx([fisher(*each) for each in SHARES], rel=1e-9)
    ends = [two_proportions(*each, confidence_level=0.9)[1] for each in SHARES]
    assert np.stack([found.lower, found.upper], 1) == pytest.approx(np.array(ends), abs=1e-12)


def test_a_group_without_samples_on_a_side_is_not_tested():
    found = share_differences((np.array([0, 1]), np.array([1, 0])), (np.array([0, 2]), np.array([3, 0])), 0.95)
    assert np.isnan(found.p).all()
    assert np.isnan(found.lower).all()


def test_the_level_holds_far_out_where_the_normal_test_does_not():
    """Of 5 and 500 samples the score test calls shares different at 1e-4 far too often."""
    k1, k2 = (each.ravel() for each in np.meshgrid(np.arange(6), np.arange(501), indexing="ij"))
    n1, n2 = np.full_like(k1, 5), np.full_like(k2, 500)
    share = 0.02

    def chance(k, n):
        return np.array([math.comb(n, j) * share**j * (1 - share) ** (n - j) for j in range(n + 1)])[k]

    weights = chance(k1, 5) * chance(k2, 500)
    assert weights @ (share_differences((k1, k2), (n1, n2), 0.95).p <= 1e-4) <= 1e-4
    score = np.array([two_proportions(int(a), 5, int(b), 500)[0] for a, b in zip(k1, k2, strict=True)])
    assert weights @ (score <= 1e-4) > 1e-3


def test_means_have_welchs_test_and_interval():
    means = np.array([0.5, 1.0, 2.0]), np.array([0.6, 1.0, 2.5])
    deviations = np.array([0.1, 0.2, 0.0]), np.array([0.3, 0.1, 0.0])
    n = np.array([20, 12, 30]), np.array([15, 40, 30])
    found = mean_differences(means, deviations, n, 0.95)
    for k in range(2):
        a, b = ((mean[k], deviation[k], size[k]) for mean, deviation, size in zip(means, deviations, n, strict=True))
        expected = ttest_ind_from_stats(*b, *a, equal_var=False)
        assert found.p[k] == pytest.approx(expected.pvalue)
        error = math.hypot(a[1] / math.sqrt(a[2]), b[1] / math.sqrt(b[2]))
        half = (found.upper[k] - found.lower[k]) / 2
        assert (found.upper[k] + found.lower[k]) / 2 == pytest.approx(b[0] - a[0])
        assert 1.96 * error < half < 2.3 * error
    assert math.isnan(found.p[2])  # all samples are equal: no spread is known


def test_means_of_few_samples_are_not_tested():
    twenty, eleven = np.array([20]), np.array([11])
    one = np.array([1.0])
    assert math.isnan(mean_differences((one, 2 * one), (one, one), (twenty, eleven), 0.95).p[0])


def test_exact_intervals_are_those_of_each_group_alone():
    k, n = np.array([0, 9, 10, 3, 0]), np.array([10, 10, 10, 50, 0])
    lower, upper = clopper_pearson_ends(k, n, 0.95)
    for j in range(4):
        expected = binomtest(int(k[j]), int(n[j])).proportion_ci(0.95, "exact")
        assert (lower[j], upper[j]) == pytest.approx((expected.low, expected.high))
    assert math.isnan(lower[4])
    assert math.isnan(upper[4])
