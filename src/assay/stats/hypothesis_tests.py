"""Hypothesis tests of paired and of independent samples, and corrections for many of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from assay.errors import ConfigError, describe
from assay.stats.distributions import binomial_cdf, normal_two_sided, student_quantile, student_two_sided
from assay.stats.intervals import Array, Ends, clopper_pearson, wilson
from assay.stats.moments import power_of_two

CORRECTIONS = ("holm", "bh", "none")
DRAWS = 9999
"""How many random sign flips are drawn: p-values go down to 1/10,000."""

_CHUNK = 4_000_000  # numbers drawn at a time: 32 MB
_EXACT = 13  # 2^13 sign flips are fewer than the draws


def mcnemar(b: int, c: int, *, mid: bool = True) -> float:
    """McNemar's test of paired yes-or-no outcomes, from the binomial distribution.

    Under the null hypothesis a pair that differs is as likely to differ either way. The exact p is twice the smaller
    tail of Binomial(b + c, 1/2); mid-p counts the observed split by half, which keeps the level in practice and has
    more power.

    Args:
        b: pairs that are yes first and no second.
        c: pairs that are no first and yes second.
        mid: the mid-p version; the exact conditional one where False.

    Example:
        >>> mcnemar(1, 9, mid=False), mcnemar(1, 9)
        (0.021484375, 0.01171875)

    Source:
        McNemar 1947, Psychometrika 12:153; Fagerland, Lydersen & Laake 2013, BMC Medical Research Methodology 13:91.
    """
    n, k = b + c, min(b, c)
    if not n:
        return 1.0
    tail = binomial_cdf(k, n)
    if mid:
        tail -= (tail - binomial_cdf(k - 1, n)) / 2
    return min(1.0, 2 * tail)


def two_proportions(
    s1: int, n1: int, s2: int, n2: int, confidence_level: float = 0.95, factor: float = 1.0, *, safe: bool = False
) -> tuple[float, Ends]:
    """Two proportions of different samples: p of the score test, and Newcombe's interval of the second minus the first.

    ``z = (p2 - p1) / sqrt(p (1-p) (1/n1 + 1/n2))`` with the pooled p; the interval puts two of Wilson's together. One
    of its ends may miss in up to 4.1 % instead of 2.5 %. With two of Clopper and Pearson's no end missed in more than
    2.4 % of all outcomes of 10 to 300 samples.

    Args:
        s1: successes of the first.
        n1: samples of the first, above 0.
        s2: successes of the second.
        n2: samples of the second, above 0.
        confidence_level: between 0 and 1.
        factor: how many times the first is subtracted in the interval.
        safe: put two of Clopper and Pearson's together, for gates.

    Returns:
        The p-value and the interval.

    Example:
        >>> p, (lower, upper) = two_proportions(56, 70, 48, 80)
        >>> round(p, 4), round(lower, 4), round(upper, 4)
        (0.008, -0.3339, -0.0524)

    Source:
        Newcombe 1998, Statistics in Medicine 17:873, method 10; its example is the one above with the signs turned.
    """
    p1, p2, pooled = s1 / n1, s2 / n2, (s1 + s2) / (n1 + n2)
    spread = math.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2))
    ends = clopper_pearson if safe else wilson
    (l1, u1), (l2, u2) = ends(s1, n1, confidence_level), ends(s2, n2, confidence_level)
    d = p2 - factor * p1
    interval = d - math.hypot(p2 - l2, factor * (u1 - p1)), d + math.hypot(u2 - p2, factor * (p1 - l1))
    return normal_two_sided((p2 - p1) / spread) if spread else 1.0, interval


def paired_t(differences: Array) -> float:
    """p of Student's test that the mean of paired differences is 0; NaN for fewer than two.

    Example:
        >>> round(paired_t(np.array([1.0, 2.0, 3.0])), 4)
        0.0742

    Source:
        Student 1908, Biometrika 6:1.
    """
    if len(differences) < 2:
        return math.nan
    return paired_t_of(float(differences.mean()), _standard_error(differences), len(differences))


def paired_t_of(mean: float, error: float, count: int) -> float:
    """`paired_t` of ``count`` differences with this mean and standard error of it."""
    return student_two_sided(mean / error, count - 1) if error else float(mean == 0)


def sign_flip(differences: Array, seed: int = 0, *, draws: int = DRAWS) -> float:
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


def _flipped(values: Array, draws: int, generator: np.random.Generator) -> Iterator[Array]:
    n, total = len(values), values.sum()
    rows = max(1, _CHUNK // n)
    for start in range(0, draws, rows):
        size = min(rows, draws - start), (n + 7) // 8
        bits = np.unpackbits(generator.integers(256, size=size, dtype=np.uint8), axis=1, count=n)
        yield total - 2 * (bits @ values)


def paired_test(differences: Array, seed: int = 0, up_to: int = 10_000) -> tuple[float, str]:
    """The test of paired differences that fits how many there are, and its name.

    Above ``up_to`` samples the mean is as good as normal, and Student's test takes over from sign flips.

    Example:
        >>> paired_test(np.array([1.0, 2.0, 3.0]))
        (0.25, 'sign flips')
    """
    if len(differences) > up_to:
        return paired_t(differences), "paired t"
    return sign_flip(differences, seed), "sign flips"


def welch(a: Array, b: Array, confidence_level: float = 0.95) -> tuple[float, Ends]:
    """Means of different samples: p of Welch's test, and its interval of the second minus the first.

    The degrees of freedom are Satterthwaite's: ``(s²a + s²b)² / (s⁴a/(na-1) + s⁴b/(nb-1))``, with s² the square of a
    standard error.

    Args:
        a: the first samples.
        b: the second samples.
        confidence_level: between 0 and 1.

    Returns:
        The p-value and the interval; NaN where a side has fewer than two samples.

    Example:
        >>> p, (lower, upper) = welch(np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 6.0]))
        >>> round(p, 4), round(lower, 4), round(upper, 4)
        (0.1021, -0.7876, 5.4542)

    Source:
        Welch 1947, Biometrika 34:28.
    """
    if min(len(a), len(b)) < 2:
        return math.nan, (math.nan, math.nan)
    unit = power_of_two(a, b)
    a, b = a / unit, b / unit
    va, vb, d = _standard_error(a) ** 2, _standard_error(b) ** 2, float(b.mean() - a.mean())
    if not va + vb:
        return float(d == 0), (unit * d, unit * d)
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    error = math.sqrt(va + vb)
    half = error * student_quantile((1 + confidence_level) / 2, freedom)
    return student_two_sided(d / error, freedom), (unit * (d - half), unit * (d + half))


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def agree(p: ArrayLike, lower: ArrayLike, upper: ArrayLike, confidence_level: float) -> tuple[Array, Array, Array]:
    """p and the interval of a difference, so that both say the same: whether the difference may be 0.

    The test and the interval that hold their levels best are often of different kinds, and then now and then one rules
    out 0 and the other does not. A difference is found where both rule it out. So where the interval holds 0, p is at
    least ``1 - confidence_level``; and where p is not below that, the interval reaches to 0. The test keeps its level
    if one of the two does, and the interval covers no less often than before. NaN stay.

    Args:
        p: the p-value that the difference is 0; any shape.
        lower: the lower end of the interval.
        upper: the upper end.
        confidence_level: that of the interval.

    Returns:
        p, and both ends.

    Example:
        >>> tuple(each.tolist() for each in agree([0.2, 0.3, 0.1], [-0.1, 0.1, 0.2], [0.5, 0.5, 0.5], 0.75))
        ([0.25, 0.3, 0.1], [-0.1, 0.0, 0.2], [0.5, 0.5, 0.5])
    """
    p, lower, upper = (np.asarray(each, np.float64) for each in (p, lower, upper))
    least = 1 - confidence_level
    with np.errstate(invalid="ignore"):
        held = (lower <= 0) & (upper >= 0)
        reaching = p >= least
        return (
            np.where(held & (p < least), least, p),
            np.where(reaching & (lower > 0), 0.0, lower),
            np.where(reaching & (upper < 0), 0.0, upper),
        )


def correct(ps: Sequence[float], how: str = "holm") -> list[float]:
    """p-values corrected for how many there are.

    ``"holm"`` bounds the chance of one false finding or more: the k-th smallest of m is multiplied by ``m - k + 1``,
    and none is below the one before. ``"bh"`` (Benjamini and Hochberg) bounds the expected share of false findings:
    times ``m / k``, and none is above the next. ``"none"`` leaves them.

    Args:
        ps: p-values; NaN are left out of the count and stay.
        how: one of ``CORRECTIONS``.

    Raises:
        ConfigError: another word.

    Example:
        >>> correct([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
        >>> correct([0.01, 0.04, 0.03], "bh")
        [0.03, 0.04, 0.04]

    Source:
        Holm 1979, Scandinavian Journal of Statistics 6:65; Benjamini & Hochberg 1995, JRSS B 57:289.
    """
    if how not in CORRECTIONS:
        raise ConfigError(
            describe("correction", repr(how), f"one of {', '.join(CORRECTIONS)}", "Pass correction='holm'")
        )
    values = np.asarray(ps, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(values))
    if how == "none" or not len(known):
        return [float(value) for value in values]
    order = known[np.argsort(values[known], kind="stable")]
    rank = np.arange(1, len(order) + 1)
    if how == "holm":
        adjusted = np.maximum.accumulate(values[order] * (len(order) + 1 - rank))
    else:
        adjusted = np.minimum.accumulate((values[order] * len(order) / rank)[::-1])[::-1]
    values[order] = np.minimum(1.0, adjusted)
    return [float(value) for value in values]
