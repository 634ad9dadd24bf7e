"""Intervals and tail probabilities of many groups of samples at once, as arrays with an entry for each group."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from assay.stats.distributions import normal_quantile
from assay.stats.intervals import FEWEST

Array: TypeAlias = np.ndarray[Any, Any]


def wilson_ends(successes: Array, n: Array, confidence_level: float) -> tuple[Array, Array]:
    """Wilson's score interval of each proportion, as `assay.stats.intervals.wilson` has it; NaN without samples.

    Example:
        >>> lower, upper = wilson_ends(np.array([9]), np.array([10]), 0.95)
        >>> lower.round(4), upper.round(4)
        (array([0.5958]), array([0.9821]))
    """
    z = normal_quantile((1 + confidence_level) / 2)
    with np.errstate(all="ignore"):
        p = successes / n
        middle, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        lower, upper = (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)
    known = n > 0
    return np.where(known & (successes == 0), 0.0, lower), np.where(known & (successes == n), 1.0, upper)


def clopper_pearson_ends(successes: Array, n: Array, confidence_level: float) -> tuple[Array, Array]:
    """The exact interval of each proportion, as `assay.stats.intervals.clopper_pearson` has it; NaN without samples.

    Example:
        >>> lower, upper = clopper_pearson_ends(np.array([9]), np.array([10]), 0.95)
        >>> lower.round(4), upper.round(4)
        (array([0.555]), array([0.9975]))
    """
    from scipy.special import betaincinv

    tail, known = (1 - confidence_level) / 2, n > 0
    with np.errstate(all="ignore"):
        lower = np.where(successes > 0, betaincinv(np.maximum(successes, 1), n - successes + 1, tail), 0.0)
        upper = np.where(successes < n, betaincinv(successes + 1, np.maximum(n - successes, 1), 1 - tail), 1.0)
    return np.where(known, lower, np.nan), np.where(known, upper, np.nan)


def student_ends(means: Array, deviations: Array, n: Array, confidence_level: float) -> tuple[Array, Array]:
    """Student's interval of each mean; NaN with fewer than 12 samples.

    Args:
        means: of the groups.
        deviations: the standard deviations of their samples, with `n - 1`.
        n: how many samples each has.
        confidence_level: between 0 and 1.

    Example:
        >>> [end.round(3) for end in student_ends(np.array([0.5, 0.5]), np.array([0.1, 0.1]), np.array([20, 5]), 0.95)]
        [array([0.453,   nan]), array([0.547,   nan])]
    """
    from scipy.special import stdtrit

    sizes, of_size = np.unique(n, return_inverse=True)
    quantiles = np.where(sizes >= FEWEST, stdtrit(np.maximum(sizes - 1, 1), (1 + confidence_level) / 2), np.nan)
    with np.errstate(all="ignore"):
        half = quantiles[of_size] * deviations / np.sqrt(n)
    return means - half, means + half


def share_tails(successes: Array, n: Array, share: float, *, upper: bool) -> Array:
    """How probable so few successes are in each group, or so many (`upper`), if each sample had this probability.

    Example:
        >>> share_tails(np.array([0, 1]), np.array([4, 4]), 0.5, upper=False)
        array([0.0625, 0.3125])
    """
    from scipy.special import bdtr, bdtrc

    if not 0 <= share <= 1:
        return np.full(len(n), math.nan)
    tails = bdtrc(successes - 1.0, n, share) if upper else bdtr(successes.astype(np.float64), n, share)
    if upper:
        tails = np.where(successes == 0, 1.0, tails)
    return np.where(n > 0, tails, np.nan)


def mean_tails(means: Array, deviations: Array, n: Array, mean: float, *, upper: bool) -> Array:
    """The same of means, by Student's t; NaN with fewer than 12 samples, and of samples that are all equal.

    Example:
        >>> mean_tails(np.array([0.5]), np.array([0.1]), np.array([20]), 0.55, upper=False).round(4)
        array([0.0188])
    """
    from scipy.special import stdtr

    with np.errstate(all="ignore"):
        t = (means - mean) / (deviations / np.sqrt(n))
    known = (n >= FEWEST) & (deviations > 0)
    return np.where(known, stdtr(np.maximum(n - 1, 1), np.where(known, -t if upper else t, 0.0)), np.nan)
