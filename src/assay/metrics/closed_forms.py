"""Confidence intervals in closed form, as pure functions of counts and NumPy arrays; without torch.

They are two-sided, (lower, upper), and hold for independent samples.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

Ends: TypeAlias = tuple[float, float]
Array: TypeAlias = np.ndarray[Any, Any]


def normal_quantile(level: float) -> float:
    """How many standard errors a two-sided interval of this level reaches to each side.

    Example:
        >>> round(normal_quantile(0.95), 6)
        1.959964
    """
    return NormalDist().inv_cdf((1 + level) / 2)


def wilson(successes: int, n: int, level: float = 0.95) -> Ends:
    """Wilson's score interval of a proportion.

    ``(p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n)``; (0, 1) without samples.

    Args:
        successes: how many of them.
        n: how many samples.
        level: the confidence level.

    Example:
        >>> tuple(round(end, 4) for end in wilson(9, 10))
        (0.5958, 0.9821)

    Source:
        Wilson 1927, JASA 22:209; Brown, Cai & DasGupta 2001, Statistical Science 16:101.
    """
    if not n:
        return 0.0, 1.0
    z, p = normal_quantile(level), successes / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return (middle - half) / scale if successes else 0.0, (middle + half) / scale if successes < n else 1.0


def fisher_z(r: float, variance: float, level: float = 0.95) -> Ends | None:
    """The interval of a correlation that is symmetric for ``atanh(r)``, which is nearly normal.

    ``tanh(atanh(r) ± z sqrt(variance))``; None for ``|r| = 1``, which says nothing of other samples.

    Args:
        r: the correlation.
        variance: of ``atanh(r)``: ``1 / (n - 3)`` for Pearson's.
        level: the confidence level.

    Example:
        >>> tuple(round(end, 4) for end in fisher_z(0.5, 1 / (30 - 3)))
        (0.1704, 0.729)

    Source:
        Fisher 1921, Metron 1:3; other variances: Bonett & Wright 2000, Psychometrika 65:23.
    """
    if not abs(r) < 1:
        return None
    middle, half = math.atanh(r), normal_quantile(level) * math.sqrt(variance)
    return math.tanh(middle - half), math.tanh(middle + half)


def on_logit_scale(share: float, error: float, level: float = 0.95) -> Ends | None:
    """The interval of a number in (0, 1) that is symmetric for its logit; it never leaves (0, 1).

    ``expit(logit(p) ± z error / (p (1 - p)))``; None at 0 and 1, and without an error.

    Args:
        share: the number.
        error: its standard error.
        level: the confidence level.

    Example:
        >>> tuple(round(end, 4) for end in on_logit_scale(0.9, 0.03))
        (0.824, 0.9453)

    Source:
        Pepe 2003, The Statistical Evaluation of Medical Tests for Classification and Prediction, section 5.2.
    """
    if not 0 < share < 1 or not error > 0:
        return None
    middle, half = math.log(share / (1 - share)), normal_quantile(level) * error / (share * (1 - share))
    lower, upper = (1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x)) for x in _sides(middle, half))
    return lower, upper


def _sides(middle: float, half: float) -> Ends:
    return middle - half, middle + half


def delong_error(positives: Array, negatives: Array) -> float:
    """DeLong's standard error of the area under the ROC curve, from counts at the distinct scores.

    A positive's placement is the share of negatives below it, ties by half, and a negative's that of positives above
    it. The square of the error is ``var(placements of positives) / P + var(placements of negatives) / N``, with
    variances over ``P - 1`` and ``N - 1``. From counts this takes no pairs, and ties are exact.

    Args:
        positives: how many, from the highest score down; whole numbers.
        negatives: how many, likewise.

    Returns:
        The error; NaN for fewer than two positives or negatives.

    Example:
        >>> round(delong_error(np.array([1, 0, 1, 0]), np.array([0, 1, 0, 1])), 4)
        0.3536

    Source:
        DeLong, DeLong & Clarke-Pearson 1988, Biometrics 44:837; in rank form, Sun & Xu 2014, IEEE Signal Processing
        Letters 21:1389.
    """
    p, n = positives.astype(np.float64), negatives.astype(np.float64)
    if p.sum() < 2 or n.sum() < 2:
        return math.nan
    below = (n.sum() - np.cumsum(n) + n / 2) / n.sum()
    above = (np.cumsum(p) - p / 2) / p.sum()
    return math.sqrt(_variance_of_mean(below, p) + _variance_of_mean(above, n))


def _variance_of_mean(values: Array, counts: Array) -> float:
    total = float(counts.sum())
    mean = float(counts @ values) / total
    return float(counts @ (values - mean) ** 2) / (total * (total - 1))


def order_statistics(ordered: Array, q: float, level: float = 0.95) -> Ends | None:
    """The interval of a quantile: two of the samples, whatever their distribution.

    How many samples are below the quantile is binomial; the samples in the places ``nq ± z sqrt(nq(1 - q))``, rounded
    outwards, have it between them. None where there are no such places.

    Args:
        ordered: the samples, rising.
        q: which quantile, in [0, 1].
        level: the confidence level.

    Example:
        >>> order_statistics(np.arange(1, 101), 0.5)
        (40.0, 61.0)

    Source:
        Conover 1999, Practical Nonparametric Statistics, section 3.2.
    """
    n = len(ordered)
    half = normal_quantile(level) * math.sqrt(n * q * (1 - q))
    lower, upper = math.floor(n * q - half), math.ceil(n * q + half) + 1  # places, counted from 1
    if lower < 1 or upper > n:
        return None
    return float(ordered[lower - 1]), float(ordered[upper - 1])
