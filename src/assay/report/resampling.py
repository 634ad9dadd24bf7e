"""Intervals and tests of a mean by drawing again: the bootstrap, and sign flips of paired differences.

All of them draw from a seed, so the same numbers give the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist

import numpy as np

from assay.report.statistics import Floats, Interval, mean_interval, paired_t

DRAWS = 9999
"""How often is drawn again: p-values go down to 1/10,000."""

UP_TO = 10_000
"""Samples from which on a mean is as good as normal, and Student's interval and test take over from drawing."""

UP_TO_IN_SLICES = 1_000
"""The same where a mean is one of many, those of the slices of a section: drawing for each would take long."""

_FEW = 10
_CHUNK = 4_000_000  # numbers drawn at a time: 32 MB
_EXACT = 13  # 2^13 sign flips are fewer than the draws


def bootstrap(
    values: Floats, level: float = 0.95, seed: int = 0, *, draws: int = DRAWS, method: str = "bca"
) -> Interval:
    """The bootstrap interval of a mean.

    The samples are drawn again with replacement, as many as there are. ``"percentile"`` takes the quantiles of the
    means drawn. ``"bca"`` moves them for bias, ``z0``, and for skewness, the acceleration
    ``a = Σ (x - mean)³ / (6 (Σ (x - mean)²)^1.5)``, which is what the jackknife gives for a mean.

    Args:
        values: the samples; two NaN come back for fewer than two.
        level: the confidence level.
        seed: where the random numbers start.
        draws: how often is drawn.
        method: ``"bca"`` or ``"percentile"``.

    Example:
        >>> lower, upper = bootstrap(np.arange(100.0))
        >>> 43 < lower < 45 and 54 < upper < 56
        True

    Source:
        Efron 1987, JASA 82:171, formulas 2.3 and 7.3; Efron & Tibshirani 1993, An Introduction to the Bootstrap,
        chapter 14.
    """
    if len(values) < 2:
        return math.nan, math.nan
    mean, spread = values.mean(), values - values.mean()
    if not spread.any():
        return float(mean), float(mean)
    means = np.sort(np.concatenate(list(_means(values, draws, np.random.default_rng(seed)))))
    tails = (1 - level) / 2, (1 + level) / 2
    if method == "bca":
        below = (np.sum(means < mean) + np.sum(means <= mean)) / 2  # ties count by half
        unit = spread / np.abs(spread).max()  # powers of very large or small numbers leave what a float can hold
        tails = _moved(tails, below / draws, float(np.sum(unit**3) / (6 * np.sum(unit**2) ** 1.5)))
    lower, upper = np.quantile(means, tails)
    return float(lower), float(upper)


def _means(values: Floats, draws: int, generator: np.random.Generator) -> Iterator[Floats]:
    n = len(values)
    different, counts = np.unique(values, return_counts=True)
    if len(different) <= 16:  # few different values: how often each is drawn is enough
        yield generator.multinomial(n, counts / n, draws) @ different / n
        return
    rows = max(1, _CHUNK // n)
    for start in range(0, draws, rows):
        drawn = generator.integers(n, size=(min(rows, draws - start), n), dtype=np.int32)
        yield values[drawn].mean(1)


def _moved(tails: tuple[float, float], below: float, acceleration: float) -> tuple[float, float]:
    """The tails of BCa; as they are where no mean drawn is below or none above, which says nothing of the bias."""
    normal = NormalDist()
    if not 0 < below < 1:
        return tails
    bias = normal.inv_cdf(below)
    moved = (bias + normal.inv_cdf(tail) for tail in tails)
    lower, upper = (normal.cdf(bias + z / (1 - acceleration * z)) for z in moved)
    return lower, upper


def sign_flip(differences: Floats, seed: int = 0, *, draws: int = DRAWS) -> float:
    """p of the test that paired differences are as likely to have either sign: how often flipped ones sum to as much.

    All flips are counted where they are fewer than the draws. Else flips are drawn, and the observed signs count as one
    of them: ``p = (1 + as large) / (1 + draws)``, which is never 0.

    Args:
        differences: paired differences.
        seed: where the random numbers start.
        draws: how many flips are drawn.

    Example:
        >>> sign_flip(np.array([1.0, 2.0, 3.0]))
        0.25

    Source:
        Fisher 1935, The Design of Experiments, section 21; Phipson & Smyth 2010, Statistical Applications in Genetics
        and Molecular Biology 9:39, for the 1 that is added.
    """
    moved = differences[differences != 0]  # a 0 is the same with either sign
    if not len(moved):
        return 1.0
    least = abs(moved.sum()) - 1e-12 * np.abs(moved).sum()  # the same terms in another order give the same sum
    if len(moved) <= _EXACT:
        signs = 1.0 - 2 * (np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved)) & 1)
        return float(np.mean(np.abs(signs @ moved) >= least))
    large = sum(int(np.sum(np.abs(sums) >= least)) for sums in _flipped(moved, draws, np.random.default_rng(seed)))
    return (1 + large) / (1 + draws)


def _flipped(values: Floats, draws: int, generator: np.random.Generator) -> Iterator[Floats]:
    n, total = len(values), values.sum()
    rows = max(1, _CHUNK // n)
    for start in range(0, draws, rows):
        size = min(rows, draws - start), (n + 7) // 8
        bits = np.unpackbits(generator.integers(256, size=size, dtype=np.uint8), axis=1, count=n)
        yield total - 2 * (bits @ values)


def interval(values: Floats, level: float = 0.95, seed: int = 0, up_to: int = UP_TO) -> tuple[Interval, str]:
    """The interval of a mean that fits how many samples there are, and what it is called.

    Below ten samples the bootstrap is too narrow, and beyond ``up_to`` it gives what Student's interval gives.

    Example:
        >>> interval(np.array([1.0, 2.0, 3.0]))[1]
        "Student's interval"
    """
    if len(values) < _FEW or len(values) > up_to:
        return mean_interval(values, level), "Student's interval"
    return bootstrap(values, level, seed), "BCa bootstrap"


def paired_test(differences: Floats, seed: int = 0, up_to: int = UP_TO) -> tuple[float, str]:
    """The test of paired differences that fits how many there are, and what it is called.

    Example:
        >>> paired_test(np.array([1.0, 2.0, 3.0]))
        (0.25, 'sign flips')
    """
    if len(differences) > up_to:
        return paired_t(differences), "paired t"
    return sign_flip(differences, seed), "sign flips"
