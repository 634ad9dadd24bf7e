"""Every formula against SciPy, an exact enumeration, or a published figure."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assay.errors import ConfigError
from assay.stats import hypothesis_tests as s
from assay.stats.hypothesis_tests import DRAWS, paired_test, sign_flip

LEVELS = (0.8, 0.95, 0.99)


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


def test_the_safe_interval_of_two_proportions_rarely_misses_at_either_end():
    """Summed over all outcomes, at the shares where one of Wilson's ends misses in 3.9 %."""
    sizes, missed = (20, 100), {True: 0.0, False: 0.0}
    outcomes = [stats.binom.pmf(np.arange(n + 1), n, p) for n, p in zip(sizes, (0.91, 0.89), strict=True)]
    for safe in missed:
        for s1, s2 in np.ndindex(sizes[0] + 1, sizes[1] + 1):
            lower, _ = s.two_proportions(s1, sizes[0], s2, sizes[1], safe=safe)[1]
            missed[safe] += outcomes[0][s1] * outcomes[1][s2] * (lower > -0.02)
    assert missed[True] < 0.025 < missed[False]


@pytest.mark.parametrize("confidence_level", LEVELS)
def test_means_against_scipy(confidence_level):
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.3, 2, 15), rng.exponential(1, 40)
    one, two = stats.ttest_1samp(a, 0), stats.ttest_ind(b, a, equal_var=False)
    assert s.paired_t(a) == pytest.approx(one.pvalue)
    p, ends = s.welch(a, b, confidence_level)
    assert p == pytest.approx(two.pvalue)
    assert ends == pytest.approx(tuple(two.confidence_interval(confidence_level)))


def test_means_of_too_few_or_all_equal():
    few, same = np.array([1.0]), np.array([2.0, 2.0, 2.0])
    assert math.isnan(s.paired_t(few))
    assert math.isnan(s.welch(few, same)[0])
    assert s.paired_t(same) == 0
    assert s.paired_t(0 * same) == 1
    assert s.welch(same, same) == (1.0, (0.0, 0.0))
    assert s.welch(same, same + 1) == (0.0, (1.0, 1.0))


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
    with pytest.raises(ConfigError, match="correction: got 'sidak'"):
        s.correct([0.1], "sidak")


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


@pytest.mark.parametrize("count", [6, 9])
@pytest.mark.parametrize("step", [0.001, 1.0])
def test_counted_sign_flips_keep_any_level_exactly(count, step):
    """Of all signs that differences could have had, no more than a share of p have a p as small."""
    sizes = np.round(np.random.default_rng(count).exponential(3, count) / step) * step
    every = [sign_flip(sizes * signs) for signs in itertools.product((-1.0, 1.0), repeat=count)]
    for level in np.unique(every):
        assert np.mean(np.array(every) <= level + 1e-12) <= level + 1e-12


def test_drawn_sign_flips_keep_the_level_since_the_observed_signs_are_one_of_them():
    """Of 21 signs that are as likely, the observed ones are the most extreme once in 21 times."""
    rng, found = np.random.default_rng(8), []
    for seed in range(4000):
        found.append(sign_flip(rng.normal(size=20), seed, draws=20))
    assert min(found) == 1 / 21
    assert np.mean(np.array(found) <= 0.05) == pytest.approx(1 / 21, abs=4 * math.sqrt(20) / 21 / math.sqrt(4000))


def test_the_same_seed_gives_the_same_answer_and_another_seed_another():
    values = np.random.default_rng(6).normal(0.1, 1, 50)
    assert sign_flip(values, seed=1) == sign_flip(values, seed=1) != sign_flip(values, seed=2)


def test_which_test_is_taken_depends_on_how_many_there_are():
    many = np.random.default_rng(7).normal(0.02, 1, 101)
    assert paired_test(many, up_to=100) == (s.paired_t(many), "paired t")
    assert paired_test(many[:20], up_to=100)[1] == "sign flips"
