"""Two-sided confidence intervals, (lower, upper), as pure functions of counts and NumPy arrays.

They hold for independent samples. An interval of level 0.95 leaves 2.5 % to each side.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from assay.stats.distributions import beta_quantile, binomial_cdf, normal_quantile, student_quantile

Ends: TypeAlias = tuple[float, float]
Array: TypeAlias = np.ndarray[Any, Any]

FEWEST = 12
"""Samples below which a mean of numbers has no interval that a decision may rest on."""


FEW = 5
"""Samples of a kind (right or wrong, say) below which the interval of a share has a caution."""
FEW_OF_A_KIND = f"fewer than {FEW} of one kind: it may hold the true value less often"

_STEEPEST = 1.125  # where (1 - (1 - x)^(1/3)) / x is largest: there Hall's end is four times as far as Student's


def _z(confidence_level: float) -> float:
    return normal_quantile((1 + confidence_level) / 2)


def wilson(successes: float, n: float, confidence_level: float = 0.95) -> Ends:
    """Wilson's score interval of a proportion.

    ``(p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n)``; (0, 1) without samples.

    Args:
        successes: how many of them.
        n: how many samples.
        confidence_level: between 0 and 1.

    Example:
        >>> tuple(round(end, 4) for end in wilson(9, 10))
        (0.5958, 0.9821)

    Source:
        Wilson 1927, JASA 22:209; Brown, Cai & DasGupta 2001, Statistical Science 16:101.
    """
    if not n:
        return 0.0, 1.0
    z, p = _z(confidence_level), successes / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return (middle - half) / scale if successes else 0.0, (middle + half) / scale if successes < n else 1.0


def few_of_a_kind(successes: float, n: float) -> str:
    """What a reader must know of Wilson's interval where fewer than `FEW` samples are of a kind; else nothing.

    A share of so few takes few values: intervals of 95 % then hold it in 83 to 100 % of samplings, by what it is.

    Example:
        >>> few_of_a_kind(38, 40), few_of_a_kind(20, 40)
        ('fewer than 5 of one kind: it may hold the true value less often', '')
    """
    return FEW_OF_A_KIND if min(successes, n - successes) < FEW else ""


def clopper_pearson(successes: int, n: int, confidence_level: float = 0.95) -> Ends:
    """The exact interval of a proportion: each end misses it in at most ``(1 - confidence_level) / 2`` of samplings.

    The lower end is the proportion at which so many or more have the probability ``(1 - confidence_level) / 2``, the
    upper end that at which so many or fewer have it; (0, 1) without samples. Wilson's interval is shorter and covers as
    often as it says on average, but one of its ends may miss more often than that.

    Args:
        successes: how many of them.
        n: how many samples.
        confidence_level: between 0 and 1.

    Example:
        >>> tuple(round(end, 4) for end in clopper_pearson(9, 10))
        (0.555, 0.9975)

    Source:
        Clopper & Pearson 1934, Biometrika 26:404.
    """
    return clopper_pearson_of(successes, n, confidence_level)


def clopper_pearson_of(successes: float, n: float, confidence_level: float) -> Ends:
    """Clopper and Pearson's interval, also of numbers of samples that are no integers."""
    tail = (1 - confidence_level) / 2
    lower = beta_quantile(tail, successes, n - successes + 1) if successes else 0.0
    return lower, beta_quantile(1 - tail, successes + 1, n - successes) if successes < n else 1.0


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
    half = _z(confidence_level) * math.sqrt((p + q - (p - q) ** 2) / (n + 2))
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
    z = _z(confidence_level)
    return -_upper_of_tango(c, b, n, z, correction), _upper_of_tango(b, c, n, z, correction)


def _upper_of_tango(b: float, c: float, n: float, z: float, correction: float) -> float:
    def is_above(difference: float) -> bool:
        linear = (2 * n + b - c) * difference - b - c
        root = math.sqrt(max(0.0, linear**2 + 8 * n * b * difference * (1 - difference)))
        share = max(0.0, (root - linear) / (4 * n))  # of pairs that are yes first and no second
        error = math.sqrt(max(0.0, n * (2 * share + difference * (1 - difference))))
        return c - b - n * difference + correction < -z * error

    return _first_where(is_above, (c - b) / n, 1.0)


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
    z = _z(confidence_level)
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
    share = _first_where(may_be, 0.0, min((both + c) / (2 * both + b + c), 1 - 1e-12))
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


def _first_where(holds: Callable[[float], bool], below: float, above: float) -> float:
    """Where a condition begins to hold that does not hold at the lower end; the upper end where it never does."""
    if not holds(above):
        return above
    for _ in range(60):
        middle = (below + above) / 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above


def student_interval(values: Array, confidence_level: float = 0.95) -> Ends:
    """Student's interval of a mean: ``mean ± t sd / sqrt(n)``; two NaN for fewer than two values.

    Exact for normal values. For skewed ones the end on the side of the long tail misses too often; see `mean_interval`.

    Example:
        >>> tuple(round(end, 4) for end in student_interval(np.array([1.0, 2.0, 3.0])))
        (-0.4841, 4.4841)

    Source:
        Student 1908, Biometrika 6:1.
    """
    if len(values) < 2:
        return math.nan, math.nan
    mean, half = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
    half *= student_quantile((1 + confidence_level) / 2, len(values) - 1)
    return mean - half, mean + half


def mean_interval(values: Array, confidence_level: float = 0.95, count: float | None = None) -> Ends:
    """The interval of a mean that allows for skewness: the wider of Student's and Hall's at each end.

    Student's t of skewed values is skewed itself: where a long tail was missed, mean and spread are both too small.
    Hall's interval undoes this by a cubic transformation with the skewness of the mean, see `skewed_ends`. The samples
    are sorted first, so their order does not change a bit.

    Args:
        values: the samples; two NaN come back for fewer than two.
        confidence_level: between 0 and 1.
        count: the effective number of samples, where weights make it smaller than their number.

    Example:
        >>> tuple(round(end, 3) for end in mean_interval(np.array([0.0, 0.1, 0.1, 0.2, 0.3, 0.3, 0.4, 0.5, 0.9, 2.6])))
        (-0.009, 2.81)

    Source:
        Hall 1992, On the removal of skewness by transformation, Journal of the Royal Statistical Society B 54:221.
    """
    if len(values) < 2:
        return math.nan, math.nan
    mean, error, skewness = _mean_and_error(values)
    return skewed_ends(mean, error, skewness, len(values) if count is None else count, confidence_level)


def skewed_ends(value: float, error: float, skewness: float, count: float, confidence_level: float = 0.95) -> Ends:
    """The interval of a value whose error is skewed: the wider of Student's and Hall's at each end.

    With t the quantile of Student's distribution and k the skewness of the error, Hall's ends are
    ``value - error w(±t)`` with ``w(x) = 3 ((1 + k (x - k/6))^(1/3) - 1) / k``. The skewness of few samples comes out
    too small (that of twelve from a lognormal distribution is 1.4 on average and not 6.2), so k is taken
    ``1.5 + 10 / count`` times, up to ``1.125 / t``, from where on w would turn back.

    Args:
        value: the value.
        error: its standard error.
        skewness: of the error: for a mean of n samples their own skewness over ``sqrt(n)``.
        count: how many samples, or groups of them, the error was estimated from.
        confidence_level: between 0 and 1.

    Example:
        >>> tuple(round(end, 3) for end in skewed_ends(1.0, 0.1, 0.2, 50))
        (0.799, 1.293)
    """
    t = student_quantile((1 + confidence_level) / 2, max(count - 1, 1e-9))
    k = math.copysign(min((1.5 + 10 / count) * abs(skewness), _STEEPEST / t), skewness)
    lower, upper = (value - error * x for x in (max(t, _unskewed(t, k)), min(-t, _unskewed(-t, k))))
    return lower, upper


def _unskewed(t: float, k: float) -> float:
    return 3 * (math.cbrt(1 + k * (t - k / 6)) - 1) / k if abs(k) > 1e-6 else t


def risky_end(values: Array, count: float | None = None) -> str:
    """The end of `mean_interval` that may miss more often than its level says.

    That is the end on the side of the long tail where samples are too few for how skewed they are,
    ``n < 10 + 15 skewness²``. docs/intervals.md shows how often each end misses where this is false.

    Args:
        values: the samples, not all equal.
        count: the effective number of samples, where weights make it smaller than their number.

    Returns:
        ``"lower"`` or ``"upper"``; ``"both"`` for fewer samples than `FEWEST`; empty where both ends hold.

    Example:
        >>> risky_end(np.arange(20.0)), risky_end(np.arange(20.0) ** 4), risky_end(np.arange(5.0))
        ('', 'upper', 'both')
    """
    n = len(values) if count is None else count
    return "both" if n < FEWEST else risky_end_of_skewness(_mean_and_error(values)[2], n)


def risky_end_of_skewness(skewness: float, n: float) -> str:
    """`risky_end` of ``n`` samples whose mean has a skewness."""
    if n < FEWEST:
        return "both"
    if n * (1 - 15 * skewness**2) >= 10:
        return ""
    return "upper" if skewness > 0 else "lower"


def caution_of_end(risky: str) -> str:
    """What a reader must know of an interval with a `risky_end`; empty without one.

    Example:
        >>> caution_of_end("upper"), caution_of_end("")
        ('few samples for such a long tail: the upper end may miss more often', '')
    """
    if risky == "both":
        return "too few samples: both ends may miss more often"
    return f"few samples for such a long tail: the {risky} end may miss more often" if risky else ""


def _mean_and_error(values: Array) -> tuple[float, float, float]:
    """The mean of samples, its standard error, and its skewness."""
    ordered = np.sort(values)
    mean = float(ordered.mean())
    apart = ordered - mean
    unit = float(np.abs(apart).max())  # powers of very large or small numbers leave what a float can hold
    if not unit:
        return mean, 0.0, 0.0
    scaled, n = apart / unit, len(values)
    squares = float(np.sum(scaled**2))
    return mean, unit * math.sqrt(squares / (n - 1) / n), float(np.sum(scaled**3)) / squares**1.5


def fisher_z(r: float, variance: float, confidence_level: float = 0.95) -> Ends | None:
    """The interval of a correlation that is symmetric for ``atanh(r)``, which is nearly normal.

    ``tanh(atanh(r) ± z sqrt(variance))``; None for ``|r| = 1``, which says nothing of other samples.

    Args:
        r: the correlation.
        variance: of ``atanh(r)``: ``1 / (n - 3)`` for Pearson's.
        confidence_level: between 0 and 1.

    Example:
        >>> tuple(round(end, 4) for end in fisher_z(0.5, 1 / (30 - 3)))
        (0.1704, 0.729)

    Source:
        Fisher 1921, Metron 1:3; other variances: Bonett & Wright 2000, Psychometrika 65:23.
    """
    if not abs(r) < 1:
        return None
    middle, half = math.atanh(r), _z(confidence_level) * math.sqrt(variance)
    return math.tanh(middle - half), math.tanh(middle + half)


def on_logit_scale(share: float, error: float, confidence_level: float = 0.95) -> Ends | None:
    """The interval of a number in (0, 1) that is symmetric for its logit; it never leaves (0, 1).

    ``expit(logit(p) ± z error / (p (1 - p)))``; None at 0 and 1, and without an error.

    Args:
        share: the number.
        error: its standard error.
        confidence_level: between 0 and 1.

    Example:
        >>> tuple(round(end, 4) for end in on_logit_scale(0.9, 0.03))
        (0.824, 0.9453)

    Source:
        Pepe 2003, The Statistical Evaluation of Medical Tests for Classification and Prediction, section 5.2.
    """
    if not 0 < share < 1 or not error > 0:
        return None
    middle, half = math.log(share / (1 - share)), _z(confidence_level) * error / (share * (1 - share))
    ends = middle - half, middle + half
    lower, upper = (1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x)) for x in ends)
    return lower, upper


def delong_error(positives: Array, negatives: Array) -> float:
    """DeLong's standard error of the area under the ROC curve, from counts at the distinct scores.

    A positive's placement is the share of negatives below it, ties by half, and a negative's that of positives above
    it. The square of the error is ``var(placements of positives) / P + var(placements of negatives) / N``, with
    variances over ``P - 1`` and ``N - 1``. From counts this takes no pairs, and ties are exact.

    Args:
        positives: how many, from the highest score down; integers.
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
    return math.sqrt(sum(_placement_variances(positives, negatives)[1:]))


def _placement_variances(positives: Array, negatives: Array) -> tuple[float, float, float]:
    """The area under the ROC curve, and the variances of the mean placements of positives and of negatives."""
    p, n = positives.astype(np.float64), negatives.astype(np.float64)
    if p.sum() < 2 or n.sum() < 2:
        return math.nan, math.nan, math.nan
    below = (n.sum() - np.cumsum(n) + n / 2) / n.sum()
    above = (np.cumsum(p) - p / 2) / p.sum()
    return float(p @ below / p.sum()), _variance_of_mean(below, p), _variance_of_mean(above, n)


def area_interval(positives: Array, negatives: Array, confidence_level: float = 0.95, *, safe: bool = False) -> Ends:
    """The interval of the area A under the ROC curve, from counts at the distinct scores: the widest of two or three.

    - DeLong's, see `delong_error`, on the logit scale, with the quantile of Student's distribution whose degrees of
      freedom are Welch's. It is too short for few positives, and does not exist at 0 and 1.
    - Newcombe's fifth: the areas θ with ``|A - θ| <= z sqrt(V(θ))`` and the variance of Hanley and McNeil, in which
      both counts are their mean.
    - ``safe``: Clopper and Pearson's of A among so many samples as the error says, ``A (1 - A) / error²``, but at most
      twice the smaller of both counts (Korn and Graubard). Where some positives are found surely and others not at all,
      a few of them show no spread, and only this holds.

    Args:
        positives: how many, from the highest score down; integers.
        negatives: how many, likewise.
        confidence_level: between 0 and 1.
        safe: whether neither end may miss more often than its level says; where there are fewer than some 50 positives
            or negatives the interval is then wider than most scores need.

    Returns:
        Both ends; two NaN for fewer than two positives or negatives.

    Example:
        >>> counts = np.array([3, 2, 0, 1, 0]), np.array([0, 2, 3, 4, 6])
        >>> [tuple(round(end, 3) for end in area_interval(*counts, safe=safe)) for safe in (False, True)]
        [(0.517, 0.987), (0.517, 0.996)]

    Source:
        Newcombe 2006, Statistics in Medicine 25:559, method 5; Korn & Graubard 1998, Survey Methodology 24:193.
    """
    area, a, b = _placement_variances(positives, negatives)
    if math.isnan(area):
        return math.nan, math.nan
    p, n, variance = float(positives.sum()), float(negatives.sum()), a + b
    ends = [_newcombe_area(area, p, n, _z(confidence_level))]
    if variance > 0:
        freedom = variance**2 / (a**2 / (p - 1) + b**2 / (n - 1))
        t = student_quantile((1 + confidence_level) / 2, freedom)
        scaled = on_logit_scale(area, math.sqrt(variance) * t / _z(confidence_level), confidence_level)
        ends += [scaled] if scaled else []
    if safe:
        count = min(area * (1 - area) / variance if variance > 0 else math.inf, 2 * min(p, n))
        ends.append(clopper_pearson_of(area * count, count, confidence_level))
    return min(lower for lower, _ in ends), max(upper for _, upper in ends)


def _newcombe_area(area: float, p: float, n: float, z: float) -> Ends:
    k = (p + n) / 2 - 1

    def is_near(other: float, area: float) -> bool:
        variance = other * (1 - other) * (1 + k * (1 - other) / (2 - other) + k * other / (1 + other)) / (p * n)
        return area - other <= z * math.sqrt(variance)

    lower = _first_where(lambda other: is_near(other, area), 0.0, area) if area else 0.0
    upper = 1 - _first_where(lambda other: is_near(other, 1 - area), 0.0, 1 - area) if area < 1 else 1.0
    return lower, upper


def _variance_of_mean(values: Array, counts: Array) -> float:
    total = float(counts.sum())
    mean = float(counts @ values) / total
    return float(counts @ (values - mean) ** 2) / (total * (total - 1))


def calibration_interval(
    right: Array, confidence: Array, sizes: Array, confidence_level: float = 0.95, *, squared: bool = False
) -> Ends:
    """The interval of the calibration error over bins, which can hold 0.

    The differences of bins are never below 0, so a calibrated model has an error above 0 by chance. The lower end takes
    off the most that this can be: with n samples of which m are in bin b, and v the variance of right or wrong there,
    ``E - sum sqrt(2/π v m) / n - z e`` with ``e = sqrt(sum m v) / n``. The upper end is ``E + z e``, as the expected
    value of E is no less than the error. Of the root of the mean square the same holds for the square: chance adds
    ``sum v / n``, and ``e² = sum (2 v² + 4 m gap² v) / n²``. v is ``p (1 - p)`` with ``p = (right + 1) / (m + 2)``.

    Args:
        right: how many samples are right, in each bin; of binary data, how many targets are 1.
        confidence: the sum of the confidences in each bin.
        sizes: how many samples are in each bin.
        confidence_level: between 0 and 1.
        squared: of the root of the mean square instead of the mean.

    Example:
        >>> bins = np.array([30.0, 55.0]), np.array([28.0, 58.0]), np.array([100.0, 100.0])
        >>> tuple(round(end, 3) for end in calibration_interval(*bins))
        (0.0, 0.091)

    Source:
        For the square, Kumar, Liang & Ma 2019, Verified Uncertainty Calibration; docs/intervals.md shows the coverage.
    """
    right, confidence, sizes = (each[sizes > 0].astype(np.float64) for each in (right, confidence, sizes))
    z, n, p = _z(confidence_level), float(sizes.sum()), (right + 1) / (sizes + 2)
    variance, gaps = p * (1 - p), np.abs(right - confidence) / sizes
    if squared:
        square, chance = float(sizes @ gaps**2) / n, float(variance.sum()) / n
        error = math.sqrt(float((2 * variance**2 + 4 * sizes * gaps**2 * variance).sum())) / n
        return math.sqrt(max(0.0, square - chance - z * error)), math.sqrt(square + z * error)
    value, chance = float(sizes @ gaps) / n, float(np.sqrt(2 / math.pi * variance * sizes).sum()) / n
    error = math.sqrt(float(sizes @ variance)) / n
    return max(0.0, value - chance - z * error), value + z * error


def order_statistics(ordered: Array, q: float, confidence_level: float = 0.95) -> Ends | None:
    """The interval of a quantile: two of the samples, for any distribution.

    How many samples are below the quantile is binomial. The lower end is in the last place that is above the quantile
    with a probability of at most ``(1 - confidence_level) / 2``, the upper end in the first that is below it with at
    most that. Of few samples there may be no such place on one side: then that end is infinite.

    Args:
        ordered: the samples, rising.
        q: which quantile, in [0, 1].
        confidence_level: between 0 and 1.

    Returns:
        Both ends; None where neither is a sample, and for q of 0 and 1, which are extremes.

    Example:
        >>> order_statistics(np.arange(1, 101), 0.5), order_statistics(np.arange(1, 21), 0.9)
        ((40.0, 61.0), (15.0, inf))

    Source:
        Conover 1999, Practical Nonparametric Statistics, section 3.2.
    """
    n, tail = len(ordered), (1 - confidence_level) / 2
    if not n or not 0 < q < 1:
        return None
    places = range(n + 1)
    below = bisect_right(places, tail, key=lambda k: binomial_cdf(k, n, q))  # so many places are rarely above it
    above = bisect_left(places, 1 - tail, key=lambda k: binomial_cdf(k, n, q))  # the first place, counted from 0
    if not below and above >= n:
        return None
    return float(ordered[below - 1]) if below else -math.inf, float(ordered[above]) if above < n else math.inf
