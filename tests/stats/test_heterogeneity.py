"""How much groups differ: exact moments under random assignment, levels, and known differences."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, chi2_contingency, ttest_1samp

from assay.stats.group_intervals import mean_tails, share_tails, student_ends, wilson_ends
from assay.stats.heterogeneity import central_moments, heterogeneity
from assay.stats.intervals import student_interval, wilson


def of_groups(groups):
    """What is found of lists of numbers."""
    values = np.concatenate(groups)
    moved = values - values.mean()
    sizes, means = (np.array([f(each) for each in groups]) for f in (len, np.mean))
    return heterogeneity(sizes, means, (moved**2).sum(), (moved**4).sum())


@pytest.mark.parametrize("sizes", [(3, 2, 2), (4, 2), (1, 2, 3)])
def test_p_has_the_mean_and_the_variance_of_all_assignments(sizes):
    values = np.array([0.0, 1.0, 1.5, 3.0, 7.0, 2.0, 2.5])[: sum(sizes)]
    ends = np.cumsum(sizes)[:-1]
    of_all = [of_groups(np.split(values[list(order)], ends)) for order in itertools.permutations(range(len(values)))]
    q = np.array([each.q for each in of_all])
    assert q.mean() == pytest.approx(len(sizes) - 1)
    scale = q.var() / (2 * q.mean())
    from scipy.stats import chi2

    for found in of_all[::97]:
        assert found.p == pytest.approx(chi2.sf(found.q / scale, q.mean() / scale))


def test_large_tables_have_the_chi_square_of_a_table():
    counts = np.array([[400, 100], [430, 70], [380, 120]])
    groups = [np.repeat([1.0, 0.0], each) for each in counts]
    found, expected = of_groups(groups), chi2_contingency(counts, correction=False)
    assert found.q == pytest.approx(expected.statistic, rel=1e-3)
    assert found.p == pytest.approx(expected.pvalue, rel=0.02)


@pytest.mark.parametrize("share", [0.5, 0.03])
@pytest.mark.parametrize("sizes", [np.full(2, 60), np.arange(2000) % 4 + 1])
def test_groups_of_one_kind_differ_as_often_as_p_says(sizes, share):
    random, found = np.random.default_rng(3), []
    for _ in range(300):
        k = random.binomial(sizes, share)
        p, n = k.sum() / sizes.sum(), sizes.sum()
        result = heterogeneity(sizes, k / sizes, n * p * (1 - p), n * p * (1 - p) * (1 - 3 * p * (1 - p)))
        found += [] if result is None else [result.p]
    assert np.mean(np.array(found) < 0.05) < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)
    assert np.mean(found) == pytest.approx(0.5, abs=0.1)


def test_a_known_spread_is_found():
    random = np.random.default_rng(4)
    truth = random.normal(0, 0.3, 4000)
    found = of_groups([each + random.normal(0, 1, 5) for each in truth])
    assert found.deviation == pytest.approx(0.3, abs=0.03)
    assert found.p < 1e-6
    assert found.i2 == pytest.approx(0.09 / (0.09 + 1 / 5), abs=0.05)


def test_what_says_nothing():
    assert of_groups([np.ones(3), np.ones(4)]) is None
    assert of_groups([np.arange(9.0)]) is None
    singles = of_groups([np.array([value]) for value in (1.0, 2.0, 4.0, 8.0)])
    assert (singles.p, singles.i2) == (1.0, 0.0)
    assert math.isnan(singles.deviation)


def test_moments_are_exact():
    values = [3, -5, 2**40, 7, 7]
    sums = tuple(sum(each**k for each in values) for k in (1, 2, 3, 4))
    mean = sum(values) / 5
    found = central_moments(5, sums)
    assert found == pytest.approx([sum((each - mean) ** k for each in values) for k in (2, 4)])


def test_intervals_of_groups_are_those_of_each():
    k, n = np.array([0, 3, 12, 12, 0]), np.array([5, 10, 12, 40, 0])
    lower, upper = wilson_ends(k, n, 0.95)
    for each in range(4):
        assert (lower[each], upper[each]) == pytest.approx(wilson(int(k[each]), int(n[each])), abs=1e-12)
    assert math.isnan(lower[4])
    values = np.random.default_rng(5).normal(size=15)
    ends = student_ends(values.mean()[None], values.std(ddof=1)[None], np.array([15]), 0.9)
    assert [end[0] for end in ends] == pytest.approx(student_interval(values, 0.9))


@pytest.mark.parametrize("upper", [False, True])
def test_tails_are_those_of_exact_tests(upper):
    k, n = np.array([0, 3, 10, 7]), np.array([5, 10, 10, 9])
    expected = binom.sf(k - 1, n, 0.7) if upper else binom.cdf(k, n, 0.7)
    assert share_tails(k, n, 0.7, upper=upper) == pytest.approx(expected)
    values = np.random.default_rng(6).normal(size=20)
    found = mean_tails(values.mean()[None], values.std(ddof=1)[None], np.array([20]), 0.2, upper=upper)
    side = "greater" if upper else "less"
    assert found[0] == pytest.approx(ttest_1samp(values, 0.2, alternative=side).pvalue)
