"""How much the means of many groups of samples differ, beyond what chance would make of samples of one kind."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from assay.stats.distributions import chi_square_above

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Heterogeneity:
    """How the means of groups differ.

    Attributes:
        groups: how many groups have samples.
        q: `(N - 1) SSB / SST`; groups of one kind have `groups - 1` on average.
        p: how probable so large a `q` is, were all samples of one kind.
        i2: `1 - (groups - 1) / q`, at least 0: the share of the spread of the means that is more than chance.
        deviation: the standard deviation of the groups' true means, 0 where they differ by no more than chance; NaN
            where no group has two samples.
    """

    groups: int
    q: float
    p: float
    i2: float
    deviation: float


def heterogeneity(sizes: Array, means: Array, squares: float, fourths: float) -> Heterogeneity | None:
    """Whether groups of samples differ, from counts and means alone; for any sizes, also of few samples each.

    With `N` samples in `G` groups, `SSB = Σ n (mean - mean of all)²` and `SST` the sum of squared deviations of all
    samples, `q = (N - 1) SSB / SST`. If samples were assigned to the groups by chance, `q` would have the mean `G - 1`,
    and a variance that follows from the sizes and from the fourth moment of the samples; the probability is that of a
    multiple of chi square with these two moments. For large groups of yes or no, `q` is the chi square of a table.
    `deviation` is the root of the variance component `(MSB - MSW) / n0` of the analysis of variance, with
    `n0 = (N - Σ n² / N) / (G - 1)`.

    Args:
        sizes: how many samples each group has, 1 or more.
        means: the mean of each.
        squares: `Σ (x - mean)²` over all samples.
        fourths: `Σ (x - mean)⁴` over all samples.

    Returns:
        None with fewer than two groups, fewer than four samples, or samples that are all equal.

    Example:
        >>> found = heterogeneity(np.array([400, 400]), np.array([0.9, 0.8]), 800 * 0.1275, 800 * 0.1275 * 0.6175)
        >>> round(found.q, 2), round(found.p, 5), round(found.i2, 2), round(found.deviation, 3)
        (15.67, 7e-05, 0.94, 0.068)

    Source:
        E. J. G. Pitman 1938, Biometrika 29:322 (the analysis of variance under random assignment); G. E. P. Box &
        S. L. Andersen 1955, JRSS B 17:1 (its moments); J. P. T. Higgins & S. G. Thompson 2002, Statistics in Medicine
        21:1539 (I²); S. R. Searle, G. Casella & C. E. McCulloch 1992, Variance Components, chapter 3.
    """
    groups, rows = len(sizes), int(sizes.sum())
    if groups < 2 or rows < 4 or not (math.isfinite(squares) and squares > 0 and math.isfinite(fourths)):
        return None
    n = sizes.astype(np.float64)
    of_all = float(n @ means) / rows
    between = min(float(n @ (means - of_all) ** 2), squares)
    q = (rows - 1) * between / squares
    mean, variance = float(groups - 1), _variance(n, rows, squares, fourths) * ((rows - 1) / squares) ** 2
    if variance <= 1e-9:  # groups of one sample each: every assignment has the same q
        return Heterogeneity(groups, q, 1.0, 0.0, math.nan)
    scale = variance / (2 * mean)
    p = chi_square_above(q / scale, mean / scale)
    i2 = max(0.0, 1 - mean / q) if q else 0.0
    if rows == groups:
        return Heterogeneity(groups, q, p, i2, math.nan)
    per_group = (rows - float(n @ n) / rows) / mean
    component = (between / mean - (squares - between) / (rows - groups)) / per_group
    return Heterogeneity(groups, q, p, i2, math.sqrt(max(0.0, component)))


def _variance(n: Array, rows: int, squares: float, fourths: float) -> float:
    """The variance of SSB over all assignments of the samples to groups of these sizes.

    `E[x1^4]`, `E[x1² x2²]`, ... of distinct samples that are drawn without replacement follow from both moments, and
    SSB is the sum of `(x1 + ... + xn)² / n` over the groups.
    """
    pairs = rows * (rows - 1.0)
    triples, quadruples = pairs * (rows - 2), pairs * (rows - 2) * (rows - 3)
    e4, e31, e22 = fourths / rows, -fourths / pairs, (squares**2 - fourths) / pairs
    e211, e1111 = (2 * fourths - squares**2) / triples, 3 * (squares**2 - 2 * fourths) / quadruples
    own = e4 / n + (n - 1) / n * (4 * e31 + 3 * e22 + (n - 2) * (6 * e211 + (n - 3) * e1111))
    groups = len(n)
    others = groups * (groups - 1.0) * e22 + 2 * (groups - 1) * (rows - groups) * e211
    others += ((rows - groups) ** 2 - float((n - 1) @ (n - 1))) * e1111
    return float(own.sum()) + others - ((groups - 1) * squares / (rows - 1)) ** 2


def central_moments(count: int, sums: tuple[Any, Any, Any, Any]) -> tuple[float, float]:
    """`Σ (x - mean)²` and `Σ (x - mean)⁴` from exact `Σ x`, `Σ x²`, `Σ x³` and `Σ x⁴`.

    Args:
        count: how many numbers there are.
        sums: the sums, as integers or fractions.

    Example:
        >>> central_moments(4, (10, 30, 100, 354))
        (5.0, 10.25)
    """
    one, two, three, four = sums
    squares = two - one * one / count
    fourths = four - 4 * one * three / count + 6 * one * one * two / count**2 - 3 * one**4 / count**3
    return float(squares), float(fourths)
