"""Intervals of means that hold at any number of looks: what bets on bounded samples win.

Whoever bets a fraction of the wealth on each sample, at odds that are fair or worse where the mean is at most m, has
more than ``1 / level`` times the first wealth at any time with a probability of at most ``level`` (Ville 1939). So
samples may be looked at after each one, and collecting them may stop whenever the interval says enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from assay.stats.intervals import Array, Ends

FRACTIONS = np.geomspace(0.003, 0.95, 40)
"""Fractions of the wealth that are bet, each from the same part of it: small ones find small differences."""
GRID = 1 << 12
"""Different numbers of which wealth is computed exactly; of more, they are rounded against the bet."""
_HALVINGS = 45


def log_wealth(values: Array, counts: Array, low: float, bound: float) -> float:
    """The logarithm of what bets against a mean of at most ``bound`` have won.

    With x the samples, the wealth is the mean over fractions f of ``Π (1 - f + f (x - low) / (bound - low))``. It
    depends on how often each value came, and on no order.

    Args:
        values: the different values of the samples, ``low`` or more.
        counts: how many samples have each.
        low: the least number that a sample can have.
        bound: the largest mean that the bets are against.

    Example:
        >>> round(log_wealth(np.array([0.0, 1.0]), np.array([5, 95]), 0.0, 0.8), 2)
        6.71

    Source:
        Waudby-Smith & Ramdas 2024, Journal of the Royal Statistical Society B 86:1, section 4; the mixture: Cover 1991,
        Mathematical Finance 1:1.
    """
    if bound <= low:
        return math.inf if bound < low or bool((counts[values > low] > 0).any()) else 0.0
    odds = (values - low) / (bound - low) - 1
    logs = np.log1p(FRACTIONS[:, None] * odds) @ counts
    return float(np.logaddexp.reduce(logs) - math.log(len(FRACTIONS)))


def betting_interval(
    values: Array, low: float, high: float, confidence_level: float = 0.95, counts: Array | None = None
) -> Ends:
    """The interval of a mean of bounded samples that holds at any number of looks.

    Each end is where the bets against a mean on its other side have won ``2 / (1 - confidence_level)`` times their
    stake.

    Args:
        values: the samples, between ``low`` and ``high``; or the different ones, with how many there are of each.
        low: the least number that a sample can have.
        high: the largest one.
        confidence_level: between 0 and 1.
        counts: how many samples have each value; one each by default.

    Example:
        >>> tuple(round(end, 3) for end in betting_interval(np.array([0.0, 1.0]), 0.0, 1.0, counts=np.array([5, 95])))
        (0.838, 0.992)
    """
    samples = np.asarray(values, np.float64), np.ones(len(values)) if counts is None else counts
    lower = _lower_end(*_on_grid(*samples, low, high), low, confidence_level)
    upper = -_lower_end(*_on_grid(-samples[0], samples[1], -high, -low), -high, confidence_level)
    return lower, upper


def clustered_betting_interval(
    sums: Array, sizes: Array, largest: float, low: float, high: float, confidence_level: float = 0.95
) -> Ends:
    """The same for bounded samples in clusters, which may depend on each other within a cluster.

    The sum S over the n samples of a whole cluster is one observation: its bet against a mean of at most m wins
    ``f (S - m n) / ((m - low) N)`` of the wealth, with the size N of the largest cluster, which must be known before
    any is seen. The mean is that of all samples, ``E S / E n``.

    Args:
        sums: of whole clusters.
        sizes: how many samples each has.
        largest: the most that a cluster can have.
        low: the least number that a sample can have.
        high: the largest one.
        confidence_level: between 0 and 1.

    Example:
        >>> sums = np.array([0.0] * 5 + [4.0] * 95)
        >>> tuple(round(end, 3) for end in clustered_betting_interval(sums, np.full(100, 4.0), 4, 0.0, 1.0))
        (0.838, 0.992)
    """
    lower = _lower_of_clusters(sums, sizes, largest, low, confidence_level)
    upper = -_lower_of_clusters(-sums, sizes, largest, -high, confidence_level)
    return max(low, lower), min(high, upper)


def _lower_of_clusters(sums: Array, sizes: Array, largest: float, low: float, confidence_level: float) -> float:
    wanted = math.log(2 / (1 - confidence_level))

    def have_won(bound: float) -> bool:
        if bound <= low:
            return bool((sums > low * sizes).any())
        odds = (sums - bound * sizes) / ((bound - low) * largest)
        logs = np.log1p(FRACTIONS[:, None] * odds).sum(1)
        return bool(np.logaddexp.reduce(logs) - math.log(len(FRACTIONS)) >= wanted)

    total = float(sizes.sum())
    return _last_where(have_won, low, float(sums.sum()) / total if total else low)


def _lower_end(values: Array, counts: Array, low: float, confidence_level: float) -> float:
    wanted = math.log(2 / (1 - confidence_level))
    total = float(counts.sum())
    mean = float(values @ counts) / total if total else low
    return _last_where(lambda bound: log_wealth(values, counts, low, bound) >= wanted, low, mean)


def _last_where(holds: Callable[[float], bool], below: float, above: float) -> float:
    """Where a condition ends to hold, which it does once from the lower end on."""
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        below, above = (middle, above) if holds(middle) else (below, middle)
    return below


def _on_grid(values: Array, counts: Array, low: float, high: float) -> tuple[Array, Array]:
    """The different values with their counts; where there are many, each rounded down to one of `GRID`."""
    different, codes = np.unique(values, return_inverse=True)
    if len(different) > GRID:
        steps = np.floor((values - low) / (high - low) * GRID)
        different, codes = np.unique(low + steps * ((high - low) / GRID), return_inverse=True)
    return np.maximum(different, low), np.bincount(codes, weights=counts, minlength=len(different))
