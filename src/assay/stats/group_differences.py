"""Tests and intervals of the differences of many groups at once, as arrays with an entry for each group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from assay.stats.group_intervals import wilson_ends
from assay.stats.hypothesis_tests import agree
from assay.stats.intervals import FEWEST

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True)
class GroupDifferences:
    """What is known of the difference of each group, the second minus the first.

    Attributes:
        p: how probable so large a difference is, were there none; NaN where it was not tested.
        lower: the lower ends of the intervals, NaN where a group has no interval.
        upper: the upper ends.
    """

    p: Array
    lower: Array
    upper: Array


def share_differences(
    successes: tuple[Array, Array], n: tuple[Array, Array], confidence_level: float
) -> GroupDifferences:
    """Two shares in each group: Fisher's exact test, twice the smaller tail, and Newcombe's interval.

    The test is exact for any number of samples, so that it holds at the tiny levels at which one group in 100,000 is
    found; the score test does not. The interval puts two of Wilson's together. Both say the same (see `agree`).

    Args:
        successes: of the first and of the second, for each group.
        n: how many samples each has.
        confidence_level: between 0 and 1.

    Example:
        >>> import numpy as np
        >>> found = share_differences((np.array([8]), np.array([1])), (np.array([10]), np.array([6])), 0.95)
        >>> found.p.round(4), found.lower.round(3), found.upper.round(3)
        (array([0.049]), array([-0.831]), array([-0.13]))

    Source: R. A. Fisher 1935, JRSS 98:39; Newcombe 1998, Statistics in Medicine 17:873, method 10.
    """
    from scipy.stats import hypergeom

    (s1, s2), (n1, n2) = successes, n
    known = (n1 > 0) & (n2 > 0)
    table = [np.where(known, each, 1) for each in (n1 + n2, s1 + s2, n2)]
    hits = np.where(known, s2, 0)
    tails = hypergeom.cdf(hits, *table), hypergeom.sf(hits - 1, *table)
    p = np.where(known, np.minimum(1.0, 2 * np.minimum(*tails)), np.nan)
    (l1, u1), (l2, u2) = (wilson_ends(s, count, confidence_level) for s, count in ((s1, n1), (s2, n2)))
    with np.errstate(all="ignore"):
        p1, p2 = s1 / n1, s2 / n2
        lower = p2 - p1 - np.hypot(p2 - l2, u1 - p1)
        upper = p2 - p1 + np.hypot(u2 - p2, p1 - l1)
    return GroupDifferences(*agree(p, lower, upper, confidence_level))


def mean_differences(
    means: tuple[Array, Array], deviations: tuple[Array, Array], n: tuple[Array, Array], confidence_level: float
) -> GroupDifferences:
    """Two means in each group: Welch's test and interval; NaN with fewer than 12 samples on a side.

    Args:
        means: of the first and of the second, for each group.
        deviations: the standard deviations of their samples, with `n - 1`.
        n: how many samples each has.
        confidence_level: between 0 and 1.

    Example:
        >>> import numpy as np
        >>> twenty = np.array([20])
        >>> of = (np.array([0.5]), np.array([0.6])), (np.array([0.1]), np.array([0.1])), (twenty, twenty)
        >>> found = mean_differences(*of, 0.95)
        >>> found.p.round(4), found.lower.round(3), found.upper.round(3)
        (array([0.0031]), array([0.036]), array([0.164]))

    Source: B. L. Welch 1947, Biometrika 34:28.
    """
    from scipy.special import stdtr, stdtrit

    with np.errstate(all="ignore"):
        v1, v2 = (deviation**2 / count for deviation, count in zip(deviations, n, strict=True))
        error = np.sqrt(v1 + v2)
        freedom = (v1 + v2) ** 2 / (v1**2 / (n[0] - 1) + v2**2 / (n[1] - 1))
        difference = means[1] - means[0]
        known = (n[0] >= FEWEST) & (n[1] >= FEWEST) & (error > 0)
        safe = np.where(known, freedom, 1.0)
        p = np.where(known, 2 * stdtr(safe, np.where(known, -np.abs(difference / error), 0.0)), np.nan)
        half = np.where(known, stdtrit(safe, (1 + confidence_level) / 2) * error, math.nan)
    return GroupDifferences(p, difference - half, difference + half)
