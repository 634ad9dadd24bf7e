"""The bootstrap of groups of samples: how often each group counts in a replicate, and which percentiles to take."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from assay.stats.distributions import normal_cdf, student_quantile, student_two_sided
from assay.stats.intervals import skewed_ends

Whole: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

LEAST = 25
"""The least number of replicates that say something; so many are read at any cost."""
NOISE = 2
"""Standard errors of the skewness of normal replicates: less than that is no skewness."""
BIAS = 2
"""Standard errors by which a gate moves the lower end of a value of which few samples give higher ones."""
BIAS_OF_PAIRS = 1
"""Standard errors by which it moves both ends of the difference of two such values of the same samples."""


def poisson_draws(n_resamples: int, groups: int, seed: int) -> Whole:
    """How often each group counts in each replicate: independent draws from Poisson(1), `(n_resamples, groups)`.

    Integers from a counter are compared with integers, so the draws are the same on every machine.

    Example:
        >>> poisson_draws(2, 8, seed=0)
        array([[0, 0, 0, 1, 1, 0, 3, 4],
               [0, 0, 1, 0, 1, 0, 2, 2]])

    Source: J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011 (Philox).
    """
    numbers = np.random.Philox(key=seed % 2**128).random_raw(n_resamples * groups)
    draws = np.zeros(len(numbers), np.int64)
    for level in _CUMULATIVE[:_COMPARED]:
        draws += numbers >= level
    rare = np.flatnonzero(numbers >= _CUMULATIVE[_COMPARED - 1])  # to look up all of them takes five times as long
    draws[rare] = np.searchsorted(_CUMULATIVE, numbers[rare], side="right")
    return draws.reshape(n_resamples, groups)


def _poisson_cumulative() -> NDArray[np.uint64]:
    """`2 ** 64 P(X <= k)` for X from Poisson(1): 1 / e is the sum of `(-1) ** k / k!`, in integers."""
    unit = 1 << 128
    rest = sum((-1) ** k * unit // math.factorial(k) for k in range(40))
    shares = [rest // math.factorial(k) for k in range(30)]
    totals = [sum(shares[: k + 1]) >> 64 for k in range(30)]
    return np.array([total for total in totals if total < (1 << 64) - 1], dtype=np.uint64)


_CUMULATIVE = _poisson_cumulative()
_COMPARED = 4
"""Of these, that all numbers are compared with; one number of fifty is not below the last of them."""


def expanded_tail(confidence_level: float, groups: int) -> float:
    """The share of replicates beyond each end: below `(1 - confidence_level) / 2`, as the spread is uncertain.

    ``Φ(-sqrt(G / (G - 1)) t)`` with the quantile t of Student's distribution of ``G - 1`` degrees of freedom.

    Example:
        >>> round(expanded_tail(0.95, 128), 4), round(expanded_tail(0.95, 16), 4)
        (0.0235, 0.0139)

    Source: T. Hesterberg, What teachers should know about the bootstrap, The American Statistician 69 (2015), 371,
    section 4.4.
    """
    return normal_cdf(-math.sqrt(groups / (groups - 1)) * student_quantile((1 + confidence_level) / 2, groups - 1))


def replicate_error(replicates: Floats, groups: int) -> tuple[float, float]:
    """The standard error that replicates of resampled groups show, and its degrees of freedom.

    The error is ``sqrt(G / (G - 1)) sd``, since groups have ``1 - 1 / G`` of the variance. It is uncertain as that of G
    groups and that of R replicates together: the degrees of freedom are ``1 / (1 / (G - 1) + 1 / (R - 1))``.

    Args:
        replicates: the R values, two or more.
        groups: how many groups have samples.

    Example:
        >>> tuple(round(each, 4) for each in replicate_error(np.array([1.0, 2.0, 3.0, 4.0]), 16))
        (1.3333, 2.5)
    """
    with np.errstate(invalid="ignore"):  # of infinite values
        deviation = float(replicates.std(ddof=1))
    freedom = 1 / (1 / (groups - 1) + 1 / (len(replicates) - 1))
    return deviation * math.sqrt(groups / (groups - 1)), freedom


def replicate_skewness(replicates: Floats, draws: Whole | None = None) -> float:
    """The skewness of what resampled groups say, which is that of the error of the value.

    With the draws, what each group moves the value by is found by least squares, and the skewness is
    ``sum(moves³) / sum(moves²)^1.5``. Without them, or with fewer than twice as many replicates as groups, it is that
    of the replicates, less two standard errors of what normal ones have by chance.

    Args:
        replicates: the values, two or more.
        draws: how often each group counted in each of them, `(replicates, groups)`.

    Returns:
        The skewness; infinite for infinite replicates.

    Example:
        >>> draws, moves = poisson_draws(400, 32, seed=0), np.arange(32) < 2
        >>> round(replicate_skewness(draws @ moves / draws.sum(1), draws), 1)
        0.6
    """
    if not np.isfinite(replicates).all():
        return math.inf
    if draws is not None and len(replicates) >= 2 * draws.shape[1]:
        terms = np.column_stack([np.ones(len(draws)), draws])
        moves = np.linalg.lstsq(terms, replicates, rcond=None)[0][1:]
        moves -= moves.mean()
        return float(np.sum(moves**3) / np.sum(moves**2) ** 1.5)
    apart = (replicates - replicates.mean()) / replicates.std(ddof=1)
    skewness = float((apart**3).mean())
    return math.copysign(max(0.0, abs(skewness) - NOISE * math.sqrt(6 / len(replicates))), skewness)


def paired_bootstrap(
    difference: float, replicates: Floats, groups: int, confidence_level: float = 0.95, skewness: float = 0.0
) -> tuple[float, float, float]:
    """The interval of a difference of two values of the same samples, and the p-value of none: ``d ± t error``.

    Both have the same resamples, so their replicates differ as the two values do on other samples. Of the intervals
    that could be taken (Student's, percentiles, bias-corrected percentiles), Student's covers nearest to its level, and
    has the p-value that belongs to it; `benchmarks.paired_coverage` compares them. Where few samples make the
    difference, its error is skewed, and the end on that side is Hall's, see `assay.stats.intervals.skewed_ends`.

    Args:
        difference: of the values.
        replicates: the same difference in each replicate; not all equal.
        groups: how many groups have samples.
        confidence_level: between 0 and 1.
        skewness: of the error, see `replicate_skewness`.

    Returns:
        The ends of the interval, and the two-sided p-value.

    Example:
        >>> draws = poisson_draws(400, 128, seed=0)
        >>> apart = draws @ np.linspace(-1, 1.4, 128) / draws.sum(1)
        >>> tuple(round(each, 4) for each in paired_bootstrap(0.2, apart, 128))
        (0.075, 0.325, 0.002)

    Source:
        Efron & Tibshirani 1993, An Introduction to the Bootstrap, chapters 6 and 12; the groups: Wolter 2007,
        Introduction to Variance Estimation, chapter 2.
    """
    error, freedom = replicate_error(replicates, groups)
    ends = skewed_ends(difference, error, skewness, freedom + 1, confidence_level)
    return *ends, student_two_sided(difference / error, freedom)
