"""Every formula against SciPy, an exact enumeration, or a published figure."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from assay.errors import ConfigError
from assay.report import distributions as d
from assay.report import statistics as s
from assay.report.resampling import DRAWS, UP_TO, bootstrap, interval, paired_test, sign_flip

LEVELS = (0.8, 0.95, 0.99)


@pytest.mark.parametrize("freedom", [1, 2.5, 9, 284, 1e5])
def test_students_t(freedom):
    for t in (0.0, 0.3, -1.7, 4.0, 25.0):
        assert d.student_two_sided(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-9)
    assert d.student_two_sided(math.inf, freedom) == 0
    for q in (0.005, 0.5, 0.9, 0.975, 0.9995):
        assert d.student_quantile(q, freedom) == pytest.approx(stats.t.ppf(q, freedom), rel=1e-8, abs=1e-12)


def test_the_incomplete_beta_function():
    grid = itertools.product([0.5, 3, 40, 5e5], [0.5, 1, 30, 5e5], [0, 1e-9, 0.2, 0.4999, 0.7, 1])
    for a, b, x in grid:
        assert d.incomplete_beta(a, b, x) == pytest.approx(special.betainc(a, b, x), rel=1e-7, abs=1e-300)


@pytest.mark.parametrize("n", [1, 10, 1000, 1001, 200_000])
def test_fair_coins(n):
    for k in {-1, 0, n // 3, n // 2 - 3, n // 2, n // 2 + 1, n}:
        assert d.at_most_heads(k, n) == pytest.approx(stats.binom.cdf(k, n, 0.5), rel=1e-8, abs=1e-300)


def test_the_normal_distribution():
    for z in (0.0, -1.0, 1.96, 6.0):
        assert d.normal_two_sided(z) == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-12)
    assert d.normal_quantile(0.995) == pytest.approx(stats.norm.ppf(0.995))


@pytest.mark.parametrize("level", LEVELS)
def test_wilson(level):
    for n in (1, 7, 450):
        for successes in {0, 1, n // 2, n}:
            expected = stats.binomtest(successes, n).proportion_ci(level, method="wilson")
            assert s.wilson(successes, n, level) == pytest.approx(tuple(expected), abs=1e-12)
    assert s.wilson(0, 0, level) == (0, 1)


def test_mcnemar_against_the_binomial_test_and_against_whole_numbers():
    for b, c in itertools.product([0, 1, 2, 9, 30, 800], repeat=2):
        if b + c:
            assert s.mcnemar(b, c, mid=False) == pytest.approx(stats.binomtest(b, b + c).pvalue, rel=1e-9)
        n, k = b + c, min(b, c)
        below, at = Fraction(sum(math.comb(n, i) for i in range(k)), 2**n), Fraction(math.comb(n, k), 2**n)
        expected = min(Fraction(1), 2 * (below + at / 2)) if n else 1
        assert s.mcnemar(b, c) == pytest.approx(float(expected), rel=1e-9)


def test_mid_p_of_the_published_example():
    # Fagerland et al. 2013, table 1 and 4: airway hyper-responsiveness, 1 and 7 discordant pairs.
    assert s.mcnemar(1, 7, mid=False) == pytest.approx(0.0703, abs=5e-5)
    assert s.mcnemar(1, 7) == pytest.approx(0.0391, abs=5e-5)


@pytest.mark.parametrize(("p", "q"), [(0.05, 0.05), (0.2, 0.1), (0.02, 0.0), (0.4, 0.35), (0.3, 0.02)])
def test_the_interval_of_paired_proportions_covers_as_often_as_it_says(p, q):
    n, covered, total = 40, 0.0, 0.0
    for b in range(n + 1):
        for c in range(n + 1 - b):
            weight = stats.multinomial.pmf([b, c, n - b - c], n, [q, p, 1 - p - q])
            lower, upper = s.paired_proportions(b, c, n)
            covered += weight * (lower <= p - q <= upper)
            total += weight
    assert total == pytest.approx(1)
    assert covered > 0.935


def test_the_interval_of_paired_proportions_is_symmetric_and_never_a_point():
    lower, upper = s.paired_proportions(3, 11, 60)
    assert s.paired_proportions(11, 3, 60) == pytest.approx((-upper, -lower))
    assert s.paired_proportions(0, 0, 20)[0] < 0 < s.paired_proportions(0, 0, 20)[1]
    assert s.paired_proportions(0, 9, 9)[1] == 1


def test_two_proportions():
    for s1, n1, s2, n2 in [(56, 70, 48, 80), (3, 900, 12, 800), (40, 40, 30, 50)]:
        table = [[s1, n1 - s1], [s2, n2 - s2]]
        p, _ = s.two_proportions(s1, n1, s2, n2)
        assert p == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue, rel=1e-9)
    assert s.two_proportions(5, 5, 7, 7)[0] == 1
    # Newcombe 1998, table II, method 10, cases (a) to (h); there it is the first minus the second.
    for (s1, n1, s2, n2), expected in {
        (56, 70, 48, 80): (0.0524, 0.3339),
        (9, 10, 3, 10): (0.1705, 0.8090),
        (5, 56, 0, 29): (-0.0381, 0.1926),
        (10, 10, 0, 10): (0.6075, 1.0),
    }.items():
        lower, upper = s.two_proportions(s1, n1, s2, n2)[1]
        assert (-upper, -lower) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("level", LEVELS)
def test_means_against_scipy(level):
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.3, 2, 15), rng.exponential(1, 40)
    one, two = stats.ttest_1samp(a, 0), stats.ttest_ind(b, a, equal_var=False)
    assert s.paired_t(a) == pytest.approx(one.pvalue)
    assert s.mean_interval(a, level) == pytest.approx(tuple(one.confidence_interval(level)))
    p, ends = s.welch(a, b, level)
    assert p == pytest.approx(two.pvalue)
    assert ends == pytest.approx(tuple(two.confidence_interval(level)))


def test_means_of_too_few_or_all_equal():
    few, same = np.array([1.0]), np.array([2.0, 2.0, 2.0])
    assert math.isnan(s.paired_t(few))
    assert all(map(math.isnan, s.mean_interval(few)))
    assert math.isnan(s.welch(few, same)[0])
    assert s.paired_t(same) == 0
    assert s.paired_t(0 * same) == 1
    assert s.welch(same, same) == (1.0, (0.0, 0.0))
    assert s.welch(same, same + 1) == (0.0, (1.0, 1.0))


def test_effect_sizes():
    a, b = np.array([1.0, 4, 2, 5]), np.array([3.0, 3, 7, 9, 6])
    pooled = math.sqrt((((a - 3) ** 2).sum() + ((b - 5.6) ** 2).sum()) / 7)
    assert s.cohens_d(a, b) == pytest.approx(2.6 / pooled)
    assert s.cohens_dz(a) == pytest.approx(3 / np.std(a, ddof=1))
    assert s.cohens_h(0.2, 0.2) == 0
    assert s.cohens_h(0, 1) == pytest.approx(math.pi)
    assert math.isnan(s.odds_ratio(0, 0))
    assert s.odds_ratio(0, 3) == math.inf
    assert s.odds_ratio(4, 1) == 0.25


PS = st.lists(st.floats(0, 1), min_size=1, max_size=7)


@given(PS)
def test_holm_is_bonferroni_closed_under_intersection(ps):
    indices = range(len(ps))
    subsets = [c for r in range(1, len(ps) + 1) for c in itertools.combinations(indices, r)]
    expected = [max(min(1.0, len(c) * min(ps[j] for j in c)) for c in subsets if i in c) for i in indices]
    assert s.correct(ps, "holm") == pytest.approx(expected, rel=1e-12, abs=1e-300)


@given(PS)
def test_benjamini_and_hochberg_against_scipy(ps):
    assert s.correct(ps, "bh") == pytest.approx(stats.false_discovery_control(ps).tolist(), rel=1e-12, abs=1e-300)


def test_undefined_p_values_are_not_counted():
    assert s.correct([0.01, math.nan, 0.02]) == pytest.approx([0.02, math.nan, 0.02], nan_ok=True)
    assert s.correct([0.3, 0.2], "none") == [0.3, 0.2]
    assert s.correct([]) == []
    with pytest.raises(ConfigError, match="correction: got 'sidak', expected one of holm, bh, none"):
        s.correct([0.1], "sidak")


@pytest.mark.parametrize("power", [-150, 150])
def test_the_bootstrap_of_very_large_and_small_numbers_is_that_of_others_scaled(power):
    values = np.random.default_rng(0).exponential(size=50)
    expected = np.array(bootstrap(values))
    np.testing.assert_allclose(np.array(bootstrap(values * 10.0**power)), expected * 10.0**power, rtol=1e-9)


def test_the_percentile_bootstrap_against_all_resamples():
    values = np.array([0.0, 1.5, 1.7, 4.0, 9.0])
    means = np.sort([np.mean(drawn) for drawn in itertools.product(values, repeat=5)])
    expected = np.quantile(means, [0.025, 0.975])
    found = bootstrap(values, draws=200_000, method="percentile")
    assert found == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("kind", ["skewed", "yes or no"])
def test_bca_against_scipy(kind):
    rng = np.random.default_rng(3)
    values = rng.exponential(1, 60) ** 2 if kind == "skewed" else (rng.random(60) < 0.2).astype(float)
    expected = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="BCa", rng=rng).confidence_interval
    error = values.std() / math.sqrt(60)
    found, plain = bootstrap(values, draws=20_000), bootstrap(values, draws=20_000, method="percentile")
    assert found == pytest.approx(tuple(expected), abs=0.12 * error)
    if kind == "skewed":
        assert found[1] - plain[1] > 0.3 * error  # the test can tell the two apart


def test_the_bootstrap_of_nothing_to_draw_from():
    assert bootstrap(np.full(9, 0.25)) == (0.25, 0.25)
    assert all(map(math.isnan, bootstrap(np.array([1.0]))))


def test_sign_flips_are_exact_while_they_are_few():
    rng = np.random.default_rng(4)
    for n in (2, 5, 11):
        values = np.concatenate([np.round(rng.normal(0.4, 1, n), 1), [0.0, 0.0]])
        expected = stats.permutation_test(
            (values,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
        ).pvalue
        assert sign_flip(values) == pytest.approx(expected, abs=1e-12)
    assert sign_flip(np.zeros(5)) == 1
    assert sign_flip(np.array([0.1, 0.2, -0.3])) == 1  # the sum is 0 up to rounding: every other is as large


def test_drawn_sign_flips_come_near_to_all_of_them():
    values = np.random.default_rng(5).normal(0.35, 1, 16)
    signs = 1 - 2 * (np.arange(2**16)[:, None] >> np.arange(16) & 1)
    exact = np.mean(np.abs(signs @ values) >= abs(values.sum()) - 1e-12)
    assert 0.02 < exact < 0.6
    assert sign_flip(values) == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / DRAWS))
    assert sign_flip(values + 9) == 1 / (1 + DRAWS)


def test_the_same_seed_gives_the_same_answer_and_another_seed_another():
    values = np.random.default_rng(6).normal(0.1, 1, 50)
    assert bootstrap(values, seed=1) == bootstrap(values, seed=1) != bootstrap(values, seed=2)
    assert sign_flip(values, seed=1) == sign_flip(values, seed=1) != sign_flip(values, seed=2)


def test_which_method_is_taken_depends_on_how_many_there_are():
    many = np.random.default_rng(7).normal(0.02, 1, UP_TO + 1)
    assert interval(many) == (s.mean_interval(many), "Student's interval")
    assert interval(many[:20])[1] == "BCa bootstrap"
    assert interval(many[:9])[1] == "Student's interval"
    assert paired_test(many) == (s.paired_t(many), "paired t")
    assert paired_test(many[:20])[1] == "sign flips"
