"""Two-sided confidence intervals, (lower, upper), as pure functions of counts and NumPy arrays.

They hold for independent samples. An interval of level 0.95 leaves 2.5 % to each side.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
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


def two_sided_z(confidence_level: float) -> float:
    """The normal quantile of an interval with as much beyond each end."""
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
    z, p = two_sided_z(confidence_level), successes / n
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


def first_where(holds: Callable[[float], bool], below: float, above: float) -> float:
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
    middle, half = math.atanh(r), two_sided_z(confidence_level) * math.sqrt(variance)
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
    middle, half = math.log(share / (1 - share)), two_sided_z(confidence_level) * error / (share * (1 - share))
    ends = middle - half, middle + half
    lower, upper = (1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x)) for x in ends)
    return lower, upper


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
    z, n, p = two_sided_z(confidence_level), float(sizes.sum()), (right + 1) / (sizes + 2)
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
