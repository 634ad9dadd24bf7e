"""Intervals against SciPy, enumeration and simulation: what they cover, and how often each end misses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assay.stats.intervals import (
    FEWEST,
    clopper_pearson,
    mean_interval,
    risky_end,
    student_interval,
    wilson,
)
from assay.stats.paired_shares import paired_proportions, paired_ratio, tango
from thinning import one_of_each

LEVELS = (0.8, 0.95, 0.99)


@pytest.mark.parametrize("confidence_level", LEVELS)
def test_wilson(confidence_level):
    for n in (1, 7, 450):
        for successes in {0, 1, n // 2, n}:
            expected = stats.binomtest(successes, n).proportion_ci(confidence_level, method="wilson")
            assert wilson(successes, n, confidence_level) == pytest.approx(tuple(expected), abs=1e-12)
    assert wilson(0, 0, confidence_level) == (0, 1)


@pytest.mark.parametrize("confidence_level", LEVELS)
def test_clopper_pearson(confidence_level):
    for n in (1, 7, 450):
        for successes in {0, 1, n // 2, n}:
            expected = stats.binomtest(successes, n).proportion_ci(confidence_level, method="exact")
            assert clopper_pearson(successes, n, confidence_level) == pytest.approx(tuple(expected), abs=1e-12)
    assert clopper_pearson(0, 0, confidence_level) == (0, 1)


@pytest.mark.parametrize("p", [0.02, 0.05, 0.5, 0.95, 0.995])
@pytest.mark.parametrize("n", [12, 50, 400])
def test_neither_end_of_clopper_pearson_misses_more_often_than_it_may(p, n):
    ends = [clopper_pearson(k, n) for k in range(n + 1)]
    chances = stats.binom.pmf(range(n + 1), n, p)
    assert sum(chance for chance, (lower, _) in zip(chances, ends, strict=True) if lower > p) <= 0.025
    assert sum(chance for chance, (_, upper) in zip(chances, ends, strict=True) if upper < p) <= 0.025


@pytest.mark.parametrize(("p", "q"), [(0.05, 0.05), (0.2, 0.1), (0.02, 0.0), (0.4, 0.35), (0.3, 0.02)])
def test_the_interval_of_paired_proportions_covers_as_often_as_it_says(p, q):
    n, covered, total = 40, 0.0, 0.0
    for b in range(n + 1):
        for c in range(n + 1 - b):
            weight = stats.multinomial.pmf([b, c, n - b - c], n, [q, p, 1 - p - q])
            lower, upper = paired_proportions(b, c, n)
            covered += weight * (lower <= p - q <= upper)
            total += weight
    assert total == pytest.approx(1)
    assert covered > 0.935


def test_the_interval_of_paired_proportions_is_symmetric_and_never_a_point():
    lower, upper = paired_proportions(3, 11, 60)
    assert paired_proportions(11, 3, 60) == pytest.approx((-upper, -lower))
    assert paired_proportions(0, 0, 20)[0] < 0 < paired_proportions(0, 0, 20)[1]
    assert paired_proportions(0, 9, 9)[1] == 1
    assert paired_proportions(0, 0, 0) == (-1, 1)


@one_of_each(lambda drop, n: n)
@pytest.mark.parametrize("drop", [0.0, 0.005, 0.01, 0.02, 0.05])
@pytest.mark.parametrize("n", [10, 30, 100])
def test_neither_end_of_paired_proportions_misses_more_often_than_it_may(n, drop):
    """Exactly, over all outcomes: Bonett and Price's alone is above a drop that is true in up to 3.7 %."""
    for gain in (0.0, 0.005, 0.02, 0.1):
        missed = 0.0
        for b in range(n + 1):
            c = np.arange(n - b + 1)
            chances = stats.binom.pmf(b, n, gain + drop) * stats.binom.pmf(c, n - b, gain / (1 - gain - drop))
            for k in c[chances > 1e-7]:
                missed += chances[k] * (paired_proportions(b, int(k), n)[0] > -drop + 1e-9)
        assert missed <= 0.0251


@pytest.mark.parametrize("ratio", [0.9, 0.98])
@pytest.mark.parametrize("n", [30, 100])
@one_of_each()
def test_neither_end_of_a_paired_ratio_misses_more_often_than_it_may(n, ratio):
    rng, missed = np.random.default_rng(0), []
    for first, gain in [(0.9, 0.02), (0.5, 0.0), (0.7, 0.05)]:
        loss = first * (1 - ratio) + gain
        drawn = rng.multinomial(n, [first - loss, loss, gain, 1 - first - gain], 500)[:, :3].tolist()
        lower = {tuple(pairs): paired_ratio(*pairs, n)[0] for pairs in drawn}
        missed.append(np.mean([lower[tuple(pairs)] > ratio for pairs in drawn]))
    assert max(missed) <= stats.binom.ppf(0.999, 500, 0.025) / 500


def test_the_interval_of_a_paired_ratio_holds_the_ratio_and_turns_with_it():
    for both, b, c, n in [(40, 1, 3, 50), (40, 0, 0, 50), (0, 5, 3, 20), (50, 0, 0, 50), (0, 9, 0, 9)]:
        lower, upper = paired_ratio(both, b, c, n)
        assert lower < (both + c) / (both + b) < upper or (lower == 0 and both + c == 0)
        turned = paired_ratio(both, c, b, n)
        assert turned == pytest.approx((1 / upper, 1 / lower if lower else np.inf), rel=1e-9)
    assert paired_ratio(0, 0, 9, 9)[1] == np.inf


def test_tango_is_where_the_score_is_the_quantile():
    """The score of a difference with the most likely shares of pairs, by a search that knows no formula for them."""
    b, c, n = 4, 9, 60
    for difference, sign in zip(tango(b, c, n), (1, -1), strict=True):
        shares = np.linspace(max(0, -difference), (1 - difference) / 2, 200_001)[1:-1]
        likelihood = b * np.log(shares) + c * np.log(shares + difference)
        likelihood += (n - b - c) * np.log(1 - 2 * shares - difference)
        share = shares[likelihood.argmax()]
        error = np.sqrt(n * (2 * share + difference - difference**2))
        assert (c - b - n * difference) / error == pytest.approx(sign * 1.959964, abs=1e-4)
    assert tango(0, 0, 54) == pytest.approx((-0.0664, 0.0664), abs=1e-4)  # Newcombe 1998, method 10 (score)


@pytest.mark.parametrize("confidence_level", LEVELS)
def test_students_interval(confidence_level):
    values = np.random.default_rng(1).normal(0.3, 2, 15)
    expected = stats.ttest_1samp(values, 0).confidence_interval(confidence_level)
    assert student_interval(values, confidence_level) == pytest.approx(tuple(expected))
    assert all(map(math.isnan, student_interval(values[:1], confidence_level)))


VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40).map(np.array)


@given(VALUES, st.randoms())
def test_the_interval_of_a_mean_is_never_shorter_than_students_at_either_end_and_order_changes_no_bit(values, random):
    lower, upper = mean_interval(values)
    least, most = student_interval(np.sort(values))
    slack = 1e-9 * (1 + np.abs(values).max())
    assert lower <= least + slack
    assert upper >= most - slack
    shuffled = list(values)
    random.shuffle(shuffled)
    assert mean_interval(np.array(shuffled)) == (lower, upper)


@given(VALUES, st.sampled_from([-1.0, 2.0, 0.5, 2.0**-400, 2.0**400]))
def test_the_interval_of_scaled_values_is_the_interval_scaled(values, factor):
    expected = sorted(factor * end for end in mean_interval(values))
    assert mean_interval(factor * values) == pytest.approx(expected, rel=1e-9, abs=1e-9 * abs(factor))


def test_the_ends_of_a_mean_solve_halls_transformation():
    """The published direction: g(W) = W + k (W² + 1/2)/3 + k² W³/27 is Student's quantile at both ends."""
    values = np.random.default_rng(2).exponential(size=40)
    n, mean, error = len(values), values.mean(), values.std(ddof=1) / math.sqrt(len(values))
    k = (1.5 + 10 / n) * stats.skew(values) / math.sqrt(n)
    t = stats.t.ppf(0.975, n - 1)
    _, upper = mean_interval(values)
    w = (mean - upper) / error
    assert w + k * w**2 / 3 + k**2 * w**3 / 27 + k / 6 == pytest.approx(-t)


def test_too_few_values_and_equal_ones():
    assert all(map(math.isnan, mean_interval(np.array([1.0]))))
    assert mean_interval(np.full(9, 0.25)) == (0.25, 0.25)


def test_which_end_is_risky():
    rng = np.random.default_rng(3)
    skewed = rng.lognormal(size=20)
    assert (risky_end(skewed), risky_end(-skewed)) == ("upper", "lower")
    assert risky_end(rng.normal(size=50)) == ""
    assert risky_end(rng.lognormal(size=5000)) == ""
    assert risky_end(rng.normal(size=FEWEST - 1)) == "both"
    assert risky_end(rng.normal(size=500), count=3.5) == "both"  # weights that rest on a few samples


GOOD_MODEL = "cross-entropy of a good model"
DRAWN = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    GOOD_MODEL: lambda rng, shape: np.logaddexp(0, -rng.normal(3, 2, size=shape)),
    "bounded": lambda rng, shape: rng.beta(0.5, 2, size=shape),
}
MEANS = {"normal": 0.0, "lognormal": math.exp(0.5), "exponential": 1.0, GOOD_MODEL: 0.182009, "bounded": 0.2}


@one_of_each(lambda name, n: n)
@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("n", [12, 20, 50, 200])
def test_neither_end_of_a_mean_decides_wrongly_more_often_than_it_may(name, n):
    rng, mean, repeats = np.random.default_rng(4), MEANS[name], 1500
    wrong = {"lower": 0, "upper": 0}
    for values in DRAWN[name](rng, (repeats, n)):
        lower, upper = mean_interval(values)
        risky = risky_end(values)
        wrong["lower"] += lower > mean and risky not in ("lower", "both")
        wrong["upper"] += upper < mean and risky not in ("upper", "both")
    assert max(wrong.values()) <= stats.binom.ppf(0.999, repeats, 0.025)
