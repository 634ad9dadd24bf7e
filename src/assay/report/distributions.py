"""The three distributions that tests need, in float64, without SciPy: normal, Student's t, binomial with p = 1/2.

Source:
    The incomplete beta function is the continued fraction DLMF 8.17.22, evaluated from the front by the modified Lentz
    method; Student's t by DLMF 8.17 and Abramowitz & Stegun 26.7.1, the binomial by DLMF 8.17.5.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_TINY = 1e-300
_STEPS = 100_000  # the fraction takes about the square root of its larger parameter: enough for 10^9 samples


def normal_quantile(q: float) -> float:
    """The point below which a standard normal variable lies with probability ``q``, in (0, 1).

    Example:
        >>> round(normal_quantile(0.975), 6)
        1.959964
    """
    return NormalDist().inv_cdf(q)


def normal_two_sided(z: float) -> float:
    """How likely a standard normal variable is at least as far from 0 as ``z``.

    Example:
        >>> round(normal_two_sided(1.959964), 6)
        0.05
    """
    return math.erfc(abs(z) / math.sqrt(2))


def student_two_sided(t: float, freedom: float) -> float:
    """How likely Student's t is at least as far from 0 as ``t``.

    Args:
        t: the statistic.
        freedom: degrees of freedom, above 0, whole or not.

    Example:
        >>> round(student_two_sided(2.228139, 10), 6)
        0.05
    """
    if math.isinf(t):
        return 0.0
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def student_quantile(q: float, freedom: float) -> float:
    """The point below which Student's t lies with probability ``q``, in (0, 1).

    Example:
        >>> round(student_quantile(0.975, 10), 6)
        2.228139
    """
    if q < 0.5:
        return -student_quantile(1 - q, freedom)
    tail, low, high = 2 * (1 - q), 0.0, 1.0
    while student_two_sided(high, freedom) > tail:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if student_two_sided(middle, freedom) > tail else (low, middle)
    return high


def at_most_heads(k: int, n: int) -> float:
    """How likely ``n`` fair coins show at most ``k`` heads.

    Example:
        >>> at_most_heads(1, 4)
        0.3125
    """
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    if n <= 1000:  # whole numbers, rounded once
        return float(sum(math.comb(n, i) for i in range(k + 1)) / 2**n)
    return incomplete_beta(n - k, k + 1, 0.5)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function.

    Args:
        a: above 0.
        b: above 0.
        x: between 0 and 1.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) / (a * _fraction(a, b, x))


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction 1 + d1/(1 + d2/(1 + …))."""
    value, c, d = 1.0, 1.0, 0.0
    for step in range(1, _STEPS):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + term * d or _TINY)
        c = 1 + term / c or _TINY
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value
