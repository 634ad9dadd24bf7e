"""Two-sided confidence intervals of differences and ratios of paired shares, as pure functions of counts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.stats.intervals import Ends, first_where, two_sided_z

_CORRECTION = 0.25  # the least with which neither end of `paired_proportions` misses in more than 2.6 %


def paired_proportions(b: float, c: float, n: float, confidence_level: float = 0.95) -> Ends:
    """The interval of a difference of paired proportions, second minus first: the wider of two at each end.

    One is Wald's interval after Laplace: ``d ± z sqrt((p + q - d²) / (n + 2))`` with ``p = (c + 1)/(n + 2)``,
    ``q = (b + 1)/(n + 2)``, ``d = p - q`` (Bonett and Price). Its ends miss too often, up to 6 % instead of 2.5 %,
    where few pairs differ. The other is Tango's score interval, see `tango`, with a quarter of the usual correction for
    continuity; without it, its ends miss in up to 3.3 % where pairs are few. docs/compare.md shows how often both
    together miss. Where no pair differs the interval is not a point: few samples without a difference are no proof of
    none.

    Args:
        b: pairs that are yes first and no second.
        c: pairs that are no first and yes second.
        n: all pairs.
        confidence_level: between 0 and 1.

    Example:
        >>> tuple(round(end, 4) for end in paired_proportions(1, 9, 50))
        (0.0302, 0.2985)

    Source:
        Bonett & Price 2012, Journal of Educational and Behavioral Statistics 37:479, recommended by Fagerland, Lydersen
        & Laake 2014, Statistics in Medicine 33:2850; Tango 1998, Statistics in Medicine 17:891.
    """
    p, q = (c + 1) / (n + 2), (b + 1) / (n + 2)
    half = two_sided_z(confidence_level) * math.sqrt((p + q - (p - q) ** 2) / (n + 2))
    lower, upper = tango(b, c, n, confidence_level, _CORRECTION)
    return max(-1.0, min(p - q - half, lower)), min(1.0, max(p - q + half, upper))


def tango(b: float, c: float, n: float, confidence_level: float = 0.95, correction: float = 0.0) -> Ends:
    """Tango's score interval of a difference of paired proportions, second minus first; (-1, 1) without pairs.

    The differences Δ with ``|c - b - nΔ| - correction <= z sqrt(n (2q + Δ (1 - Δ)))``, where q is the most likely share
    of pairs that are yes first and no second, were the difference Δ. With no pair that differs and no correction the
    ends are ``±z² / (n + z²)``.

    Args:
        b: pairs that are yes first and no second.
        c: pairs that are no first and yes second.
        n: all pairs.
        confidence_level: between 0 and 1.
        correction: for continuity, in pairs; usually 0 or 1.

    Example:
        >>> tuple(round(end, 4) for end in tango(1, 9, 50))
        (0.0445, 0.2929)

    Source:
        Tango 1998, Statistics in Medicine 17:891.
    """
    if not n:
        return -1.0, 1.0
    z = two_sided_z(confidence_level)
    return -_upper_of_tango(c, b, n, z, correction), _upper_of_tango(b, c, n, z, correction)


def _upper_of_tango(b: float, c: float, n: float, z: float, correction: float) -> float:
    def is_above(difference: float) -> bool:
        linear = (2 * n + b - c) * difference - b - c
        root = math.sqrt(max(0.0, linear**2 + 8 * n * b * difference * (1 - difference)))
        share = max(0.0, (root - linear) / (4 * n))  # of pairs that are yes first and no second
        error = math.sqrt(max(0.0, n * (2 * share + difference * (1 - difference))))
        return c - b - n * difference + correction < -z * error

    return first_where(is_above, (c - b) / n, 1.0)


def paired_ratio(both: float, b: float, c: float, n: float, confidence_level: float = 0.95) -> Ends:
    """The score interval of a ratio of paired proportions, second over first; (0, inf) where it says nothing.

    The ratios x that the pairs do not contradict: second minus x times first, summed over the pairs, is at most z
    times its error and a quarter of a pair from 0. The error is that of the most likely shares of the four kinds of
    pairs with this ratio, so where no pair differs the interval is not a point.

    Args:
        both: pairs that are yes in both.
        b: pairs that are yes first and no second.
        c: pairs that are no first and yes second.
        n: all pairs.
        confidence_level: between 0 and 1.

    Example:
        >>> tuple(round(end, 4) for end in paired_ratio(40, 1, 3, 50))
        (0.9268, 1.2115)

    Source:
        Nam & Blackwelder 2002, Statistics in Medicine 21:689; Tang, Tang & Chan 2003, Statistics in Medicine 22:1217.
    """
    z = two_sided_z(confidence_level)
    return _lower_ratio(both, b, c, n, z), 1 / lower if (lower := _lower_ratio(both, c, b, n, z)) else math.inf


def _lower_ratio(both: float, b: float, c: float, n: float, z: float) -> float:
    counts = both, b, c, n - both - b - c

    def may_be(share: float) -> bool:
        ratio = share / (1 - share)
        values = 1 - ratio, -ratio, 1.0, 0.0
        total = sum(value * count for value, count in zip(values, counts, strict=True))
        return total - _CORRECTION < z * _error_at_mean_zero(values, counts)

    if not both + c:
        return 0.0
    share = first_where(may_be, 0.0, min((both + c) / (2 * both + b + c), 1 - 1e-12))
    return share / (1 - share)


def _error_at_mean_zero(values: Sequence[float], counts: Sequence[float]) -> float:
    """The standard error of a sum of values, by the most likely shares of each with which their mean is 0.

    The shares are ``count / (n (1 + tilt value))``; values that were not drawn have one where no tilt suffices. Of
    three values that are not 0, of both signs, the tilt solves a quadratic equation.

    Source: Owen 2001, Empirical Likelihood, section 2.9.
    """
    total = sum(value * count for value, count in zip(values, counts, strict=True))
    if total < 0:
        values, total = [-value for value in values], -total
    drawn = [(value, count) for value, count in zip(values, counts, strict=True) if value]
    linear = sum(count * value * (sum(values) - value) for value, count in drawn)
    square = math.prod(value for value, _ in drawn) * sum(count for _, count in drawn) if len(drawn) == 3 else 0.0
    half = -(linear + math.copysign(math.sqrt(max(0.0, linear**2 - 4 * square * total)), linear)) / 2
    roots = [above / below for above, below in ((half, square), (total, half)) if below]
    most = -1 / min(values)
    tilt = min([root for root in roots if root >= 0] + [most])
    if tilt < most * (1 - 1e-12):
        return math.sqrt(sum(count * value**2 / (1 + tilt * value) for value, count in drawn))
    others = [(value, count) for value, count in drawn if value != min(values)]
    rest = sum(count * value / (1 + most * value) for value, count in others)  # what the least value has to balance
    return math.sqrt(rest / most + sum(count * value**2 / (1 + most * value) for value, count in others))
