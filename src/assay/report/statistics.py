"""Tests, intervals and effect sizes in closed form. Pure functions of counts and NumPy arrays, without SciPy.

Resampling (bootstrap, sign flips) is in `assay.report.resampling`. Intervals are two-sided, (lower, upper).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from assay.errors import ConfigError, describe
from assay.metrics.closed_forms import wilson as wilson
from assay.report.distributions import (
    at_most_heads,
    normal_quantile,
    normal_two_sided,
    student_quantile,
    student_two_sided,
)

Floats: TypeAlias = NDArray[np.float64]
Interval: TypeAlias = tuple[float, float]

CORRECTIONS = ("holm", "bh", "none")


def _z(level: float) -> float:
    return normal_quantile((1 + level) / 2)


def mcnemar(b: int, c: int, *, mid: bool = True) -> float:
    """McNemar's test of paired yes-or-no outcomes, from the binomial distribution.

    Under the null hypothesis a pair that differs is as likely to differ either way. The exact p is twice the smaller
    tail of Binomial(b + c, 1/2); mid-p counts the observed split by half, which keeps the level in practice and has
    more power.

    Args:
        b: pairs that are yes first and no second.
        c: pairs that are no first and yes second.
        mid: the mid-p version; the exact conditional one where False.

    Example:
        >>> mcnemar(1, 9, mid=False), mcnemar(1, 9)
        (0.021484375, 0.01171875)

    Source:
        McNemar 1947, Psychometrika 12:153; Fagerland, Lydersen & Laake 2013, BMC Medical Research Methodology 13:91.
    """
    n, k = b + c, min(b, c)
    if not n:
        return 1.0
    tail = at_most_heads(k, n)
    if mid:
        tail -= (tail - at_most_heads(k - 1, n)) / 2
    return min(1.0, 2 * tail)


def paired_proportions(b: int, c: int, n: int, level: float = 0.95) -> Interval:
    """The interval of a difference of paired proportions, second minus first: Wald's, after Laplace (Bonett and Price).

    ``d ± z sqrt((p + q - d²) / (n + 2))`` with ``p = (c + 1)/(n + 2)``, ``q = (b + 1)/(n + 2)``, ``d = p - q``.
    Where no pair differs it is not a point: few samples without a difference are no proof that there is none.

    Args:
        b: pairs that are yes first and no second.
        c: pairs that are no first and yes second.
        n: all pairs.
        level: the confidence level.

    Example:
        >>> tuple(round(end, 4) for end in paired_proportions(1, 9, 50))
        (0.0302, 0.2775)

    Source:
        Bonett & Price 2012, Journal of Educational and Behavioral Statistics 37:479, recommended by Fagerland, Lydersen
        & Laake 2014, Statistics in Medicine 33:2850.
    """
    p, q = (c + 1) / (n + 2), (b + 1) / (n + 2)
    half = _z(level) * math.sqrt((p + q - (p - q) ** 2) / (n + 2))
    return max(-1.0, p - q - half), min(1.0, p - q + half)


def two_proportions(s1: int, n1: int, s2: int, n2: int, level: float = 0.95) -> tuple[float, Interval]:
    """Two proportions of different samples: p of the score test, and Newcombe's interval of the second minus the first.

    ``z = (p2 - p1) / sqrt(p (1-p) (1/n1 + 1/n2))`` with the pooled p; the interval puts two of Wilson's together.

    Args:
        s1: successes of the first.
        n1: samples of the first, above 0.
        s2: successes of the second.
        n2: samples of the second, above 0.
        level: the confidence level.

    Returns:
        The p-value and the interval.

    Example:
        >>> p, (lower, upper) = two_proportions(56, 70, 48, 80)
        >>> round(p, 4), round(lower, 4), round(upper, 4)
        (0.008, -0.3339, -0.0524)

    Source:
        Newcombe 1998, Statistics in Medicine 17:873, method 10; its example is the one above with the signs turned.
    """
    p1, p2, pooled = s1 / n1, s2 / n2, (s1 + s2) / (n1 + n2)
    spread = math.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2))
    (l1, u1), (l2, u2) = wilson(s1, n1, level), wilson(s2, n2, level)
    d = p2 - p1
    interval = d - math.hypot(p2 - l2, u1 - p1), d + math.hypot(u2 - p2, p1 - l1)
    return normal_two_sided(d / spread) if spread else 1.0, interval


def mean_interval(values: Floats, level: float = 0.95) -> Interval:
    """Student's interval of a mean: ``mean ± t sd / sqrt(n)``; two NaN for fewer than two values.

    Example:
        >>> tuple(round(end, 4) for end in mean_interval(np.array([1.0, 2.0, 3.0])))
        (-0.4841, 4.4841)

    Source:
        Student 1908, Biometrika 6:1.
    """
    if len(values) < 2:
        return math.nan, math.nan
    mean, half = float(values.mean()), _standard_error(values)
    half *= student_quantile((1 + level) / 2, len(values) - 1)
    return mean - half, mean + half


def paired_t(differences: Floats) -> float:
    """p of Student's test that the mean of paired differences is 0; NaN for fewer than two.

    Example:
        >>> round(paired_t(np.array([1.0, 2.0, 3.0])), 4)
        0.0742

    Source:
        Student 1908, Biometrika 6:1.
    """
    if len(differences) < 2:
        return math.nan
    error, mean = _standard_error(differences), float(differences.mean())
    if not error:
        return float(mean == 0)
    return student_two_sided(mean / error, len(differences) - 1)


def welch(a: Floats, b: Floats, level: float = 0.95) -> tuple[float, Interval]:
    """Means of different samples: p of Welch's test, and its interval of the second minus the first.

    The degrees of freedom are Satterthwaite's: ``(s²a + s²b)² / (s⁴a/(na-1) + s⁴b/(nb-1))``, with s² the square of a
    standard error.

    Args:
        a: the first samples.
        b: the second samples.
        level: the confidence level.

    Returns:
        The p-value and the interval; NaN where a side has fewer than two samples.

    Example:
        >>> p, (lower, upper) = welch(np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 6.0]))
        >>> round(p, 4), round(lower, 4), round(upper, 4)
        (0.1021, -0.7876, 5.4542)

    Source:
        Welch 1947, Biometrika 34:28.
    """
    if min(len(a), len(b)) < 2:
        return math.nan, (math.nan, math.nan)
    va, vb, d = _standard_error(a) ** 2, _standard_error(b) ** 2, float(b.mean() - a.mean())
    if not va + vb:
        return float(d == 0), (d, d)
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    error = math.sqrt(va + vb)
    half = error * student_quantile((1 + level) / 2, freedom)
    return student_two_sided(d / error, freedom), (d - half, d + half)


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def cohens_d(a: Floats, b: Floats) -> float:
    """Difference of means, second minus first, in pooled standard deviations (Cohen 1988, chapter 2).

    Example:
        >>> round(cohens_d(np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 6.0])), 4)
        1.8074
    """
    freedom = len(a) + len(b) - 2
    pooled = math.sqrt(((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / freedom)
    return _ratio(float(b.mean() - a.mean()), pooled)


def cohens_dz(differences: Floats) -> float:
    """Mean of paired differences in their own standard deviations (Cohen 1988, section 2.3.5).

    Example:
        >>> round(cohens_dz(np.array([1.0, 2.0, 3.0])), 4)
        2.0
    """
    return _ratio(float(differences.mean()), float(differences.std(ddof=1)))


def cohens_h(p1: float, p2: float) -> float:
    """``2 asin sqrt(p2) - 2 asin sqrt(p1)``: differences count more near 0 and 1 (Cohen 1988, chapter 6).

    Example:
        >>> round(cohens_h(0.5, 0.9), 4)
        0.9273
    """
    return 2 * math.asin(math.sqrt(p2)) - 2 * math.asin(math.sqrt(p1))


def odds_ratio(b: int, c: int) -> float:
    """Of pairs that differ: how many times as often yes comes second, ``c / b``; NaN where none differs.

    Example:
        >>> odds_ratio(3, 9), odds_ratio(0, 9)
        (3.0, inf)

    Source:
        The conditional maximum-likelihood estimate of the odds ratio of matched pairs: Breslow & Day 1980, Statistical
        Methods in Cancer Research I, section 5.2.
    """
    return _ratio(float(c), float(b))


def _ratio(top: float, bottom: float) -> float:
    if bottom:
        return top / bottom
    return math.copysign(math.inf, top) if top else math.nan


def correct(ps: Sequence[float], how: str = "holm") -> list[float]:
    """p-values corrected for how many there are.

    ``"holm"`` bounds the chance of one false finding or more: the k-th smallest of m is multiplied by ``m - k + 1``,
    and none is below the one before. ``"bh"`` (Benjamini and Hochberg) bounds the expected share of false findings:
    times ``m / k``, and none is above the next. ``"none"`` leaves them.

    Args:
        ps: p-values; NaN are left out of the count and stay.
        how: one of ``CORRECTIONS``.

    Raises:
        ConfigError: another word.

    Example:
        >>> correct([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
        >>> correct([0.01, 0.04, 0.03], "bh")
        [0.03, 0.04, 0.04]

    Source:
        Holm 1979, Scandinavian Journal of Statistics 6:65; Benjamini & Hochberg 1995, JRSS B 57:289.
    """
    if how not in CORRECTIONS:
        raise ConfigError(describe("correction", repr(how), f"one of {', '.join(CORRECTIONS)}", "Choose one"))
    values = np.asarray(ps, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(values))
    if how == "none" or not len(known):
        return _plain(values)
    order = known[np.argsort(values[known], kind="stable")]
    rank = np.arange(1, len(order) + 1)
    if how == "holm":
        adjusted = np.maximum.accumulate(values[order] * (len(order) + 1 - rank))
    else:
        adjusted = np.minimum.accumulate((values[order] * len(order) / rank)[::-1])[::-1]
    values[order] = np.minimum(1.0, adjusted)
    return _plain(values)


def _plain(values: Any) -> list[float]:
    return [float(value) for value in values]
