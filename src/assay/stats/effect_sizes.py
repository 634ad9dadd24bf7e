"""Effect sizes: how large a difference is, beside how sure it is."""

from __future__ import annotations

import math

from assay.stats.intervals import Array
from assay.stats.moments import power_of_two


def cohens_d(a: Array, b: Array) -> float:
    """Difference of means, second minus first, in pooled standard deviations (Cohen 1988, chapter 2).

    Example:
        >>> import numpy as np
        >>> round(cohens_d(np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 6.0])), 4)
        1.8074
    """
    unit, freedom = power_of_two(a, b), len(a) + len(b) - 2
    a, b = a / unit, b / unit
    pooled = math.sqrt(((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / freedom)
    return _ratio(float(b.mean() - a.mean()), pooled)


def cohens_dz(differences: Array) -> float:
    """Mean of paired differences in their own standard deviations (Cohen 1988, section 2.3.5).

    Example:
        >>> import numpy as np
        >>> round(cohens_dz(np.array([1.0, 2.0, 3.0])), 4)
        2.0
    """
    differences = differences / power_of_two(differences)
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
