"""Quantiles and tails of the distributions that intervals and tests need.

The normal distribution is the one of the standard library; SciPy, imported when first used, gives the others.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_NORMAL = NormalDist()


def normal_quantile(q: float) -> float:
    """The point below which a standard normal variable lies with probability ``q``, in (0, 1).

    Example:
        >>> round(normal_quantile(0.975), 6)
        1.959964
    """
    return _NORMAL.inv_cdf(q)


def normal_cdf(z: float) -> float:
    """The probability that a standard normal variable is at most ``z``.

    Example:
        >>> round(normal_cdf(-1.959964), 6)
        0.025
    """
    return _NORMAL.cdf(z)


def normal_two_sided(z: float) -> float:
    """The probability that a standard normal variable is at least as far from 0 as ``z``.

    Example:
        >>> round(normal_two_sided(1.959964), 6)
        0.05
    """
    return math.erfc(abs(z) / math.sqrt(2))


def student_quantile(q: float, freedom: float) -> float:
    """The point below which Student's t lies with probability ``q``, in (0, 1).

    Args:
        q: the probability.
        freedom: degrees of freedom, above 0, an integer or not.

    Example:
        >>> round(student_quantile(0.975, 3), 4)
        3.1824
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, q))


def student_two_sided(t: float, freedom: float) -> float:
    """The probability that Student's t is at least as far from 0 as ``t``.

    Args:
        t: the statistic.
        freedom: degrees of freedom, above 0, an integer or not.

    Example:
        >>> round(student_two_sided(2.228139, 10), 6)
        0.05
    """
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(t)))


def binomial_cdf(k: int, n: int, p: float = 0.5) -> float:
    """The probability of at most ``k`` successes in ``n`` trials that succeed with probability ``p``.

    Example:
        >>> binomial_cdf(1, 4)
        0.3125
    """
    from scipy.special import bdtr

    return float(bdtr(k, n, p)) if k >= 0 else 0.0


def chi_square_above(x: float, freedom: float) -> float:
    """The probability that a chi-square variable is at least ``x``.

    Args:
        x: the statistic.
        freedom: degrees of freedom, above 0, an integer or not.

    Example:
        >>> round(chi_square_above(3.841459, 1), 6)
        0.05
    """
    from scipy.special import gammaincc

    return float(gammaincc(freedom / 2, x / 2))


def beta_quantile(q: float, a: float, b: float) -> float:
    """The point below which a variable of the beta distribution lies with probability ``q``.

    Example:
        >>> round(beta_quantile(0.5, 2, 2), 6)
        0.5
    """
    from scipy.special import betaincinv

    return float(betaincinv(a, b, q))
