"""The bootstrap of groups of samples: how often each group counts in a replicate, and which percentiles to take."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from assay.stats.distributions import normal_cdf, student_quantile

Whole: TypeAlias = NDArray[np.int64]


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
    return np.searchsorted(_CUMULATIVE, numbers, side="right").astype(np.int64).reshape(n_resamples, groups)


def _poisson_cumulative() -> NDArray[np.uint64]:
    """`2 ** 64 P(X <= k)` for X from Poisson(1): 1 / e is the sum of `(-1) ** k / k!`, in integers."""
    unit = 1 << 128
    rest = sum((-1) ** k * unit // math.factorial(k) for k in range(40))
    shares = [rest // math.factorial(k) for k in range(30)]
    totals = [sum(shares[: k + 1]) >> 64 for k in range(30)]
    return np.array([total for total in totals if total < (1 << 64) - 1], dtype=np.uint64)


_CUMULATIVE = _poisson_cumulative()


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
