"""Estimates of less variance: by a number that is known of more samples, and by shares of strata that are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.stats.distributions import student_quantile
from assay.stats.intervals import Array, Ends


@dataclass(frozen=True)
class ControlledMean:
    """The mean of numbers that are known of some samples, by another number that is known of more.

    Attributes:
        mean: the estimate.
        error: its standard error.
        freedom: the degrees of freedom of the error.
        residuals: what the control leaves of the numbers, with the mean 0.
        variance_ratio: the variance of the estimate over that of the plain mean.
    """

    mean: float
    error: float
    freedom: float
    residuals: Array
    variance_ratio: float

    @classmethod
    def of(cls, values: Array, controls: Array, mean_of_all: float, count: int) -> ControlledMean:
        """The estimate ``x̄ - β (z̄ - mean_of_all)``, with the slope β of the values on the controls.

        Its variance is ``s² / n + (S² - s²) / N``, with s² of the residuals and S² of the n values.

        Args:
            values: of n samples, three or more, which are a random part of all.
            controls: the other number of the same samples, not all equal.
            mean_of_all: the mean of the other number over all samples.
            count: how many these are, N.

        Example:
            >>> found = ControlledMean.of(np.array([1.0, 2, 3, 5]), np.array([0.0, 1, 2, 3]), 2.0, 100)
            >>> round(found.mean, 3), round(found.error, 3)
            (3.4, 0.255)

        Source:
            Cochran 1977, Sampling Techniques, section 12.6 (double sampling for regression).
        """
        n, apart = len(values), controls - controls.mean()
        centred = values - values.mean()
        slope = float(apart @ centred) / float(apart @ apart)
        residuals = centred - slope * apart
        rest, plain = float(residuals @ residuals) / (n - 2), float(centred @ centred) / (n - 1)
        variance = rest / n + max(0.0, plain - rest) / count
        ratio = variance / (plain / n) if plain else math.nan
        mean = float(values.mean()) - slope * (float(controls.mean()) - mean_of_all)
        return cls(mean, math.sqrt(variance), n - 2.0, residuals, ratio)

    def interval(self, confidence_level: float = 0.95) -> Ends:
        """Student's interval."""
        half = self.error * student_quantile((1 + confidence_level) / 2, self.freedom)
        return self.mean - half, self.mean + half


def stratified_interval(shares: Sequence[float], values: Sequence[float], ends: Sequence[Ends]) -> tuple[float, Ends]:
    """A mean over strata whose shares are known, and its interval from those of the strata.

    The mean is ``Σ W v``; its lower end is ``√(Σ W² (v - l)²)`` below it, and the upper one likewise.

    Args:
        shares: of the strata, which add up to 1.
        values: their means.
        ends: the ends of the intervals of these.

    Example:
        >>> mean, (lower, upper) = stratified_interval([0.8, 0.2], [0.9, 0.5], [(0.85, 0.93), (0.3, 0.7)])
        >>> round(mean, 3), round(lower, 3), round(upper, 3)
        (0.82, 0.763, 0.867)

    Source:
        Zou & Donner 2008, Statistics in Medicine 27:1693.
    """
    weights, means = np.asarray(shares), np.asarray(values)
    lower, upper = np.array(ends).T
    mean = float(weights @ means)
    below, above = np.linalg.norm(weights * (means - lower)), np.linalg.norm(weights * (upper - means))
    return mean, (mean - float(below), mean + float(above))
