"""Shares that a judge found, against true shares."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from assay.stats.misclassified_shares import JudgedShare


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
@pytest.mark.parametrize(("sensitivity", "specificity", "known"), [(0.9, 0.95, 100), (0.7, 0.8, 50), (0.99, 0.99, 30)])
def test_it_holds_the_true_share(share, sensitivity, specificity, known):
    rng, repeats, count = np.random.default_rng(known), 1000, 500
    positive = rng.binomial(count, share * sensitivity + (1 - share) * (1 - specificity), repeats)
    hits, rejections = rng.binomial(known, sensitivity, repeats), rng.binomial(known, specificity, repeats)
    found = [
        JudgedShare(*each, known)
        for each in zip(positive, [count] * repeats, hits, [known] * repeats, rejections, strict=True)
    ]
    held = sum(lower <= share <= upper for lower, upper in (each.interval() for each in found))
    assert held >= stats.binom.ppf(0.001, repeats, 0.945)
    if share == 0.3:  # not cut at 0 or 1
        assert np.mean([each.value for each in found]) == pytest.approx(share, abs=0.02)


def test_a_judge_that_errs_never_changes_nothing():
    assert JudgedShare(30, 100, 50, 50, 50, 50).value == pytest.approx(0.3)
    lower, upper = JudgedShare(30_000, 100_000, 10**7, 10**7, 10**7, 10**7).interval()
    expected = stats.binomtest(30_000, 100_000).proportion_ci(method="wilson")
    assert (lower, upper) == pytest.approx((expected.low, expected.high), abs=2e-5)


def test_a_judge_no_better_than_chance_says_nothing():
    assert math.isnan(JudgedShare(30, 100, 25, 50, 25, 50).value)
    assert JudgedShare(30, 100, 10, 50, 10, 50).interval() == (0.0, 1.0)


def test_the_interval_is_the_formula_of_lang_and_reiczigel():
    z = stats.norm.ppf(0.975)
    q, se, sp = (300 + z**2 / 2) / (1000 + z**2), 91 / 102, 96 / 102
    share = (q + sp - 1) / (se + sp - 1)
    shift = 2 * z**2 * (share * se * (1 - se) / 102 - (1 - share) * sp * (1 - sp) / 102)
    variance = q * (1 - q) / (1000 + z**2) + (share**2 * se * (1 - se) + (1 - share) ** 2 * sp * (1 - sp)) / 102
    half = z * math.sqrt(variance) / (se + sp - 1)
    expected = share + shift - half, share + shift + half
    assert JudgedShare(300, 1000, 90, 100, 95, 100).interval() == pytest.approx(expected, abs=1e-9)
