"""Samples that come in clusters, such as questions on one passage: what a mean says whose samples are not independent.

Samples of one cluster resemble each other, so they say less than as many independent ones. Clusters are independent:
the sum of what the samples of each contribute takes the place of the samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.stats.distributions import normal_quantile, student_quantile, student_two_sided
from assay.stats.hypothesis_tests import paired_test
from assay.stats.intervals import (
    Array,
    Ends,
    clopper_pearson_of,
    risky_end_of_skewness,
    skewed_ends,
    wilson,
)
from assay.stats.moments import power_of_two

FEWEST_CLUSTERS = 6
"""With fewer clusters there is neither an interval nor a test: of 5, no flip of signs has a p below 1/16."""
_UNEVEN = 1.5
"""How much more skewed the mean is than sums of clusters of uneven sizes show; `ClusteredMean.interval` says where."""


def sums_by_cluster(chunks: Iterable[Array], codes: NDArray[np.int64], count: int) -> Array:
    """The sum of what the samples of each cluster contribute.

    Args:
        chunks: what the samples contribute, in order.
        codes: the cluster of each sample, integers below ``count``.
        count: how many clusters there are.

    Example:
        >>> sums_by_cluster([np.array([1.0, 2.0]), np.array([4.0])], np.array([0, 1, 0]), 2)
        array([5., 2.])
    """
    sums, start = np.zeros(count), 0
    for chunk in chunks:
        sums += np.bincount(codes[start : start + len(chunk)], weights=chunk, minlength=count)
        start += len(chunk)
    return sums


@dataclass(frozen=True)
class ClusteredMean:
    """A mean of samples in clusters, with its error.

    Attributes:
        mean: the mean.
        error: its standard error.
        freedom: the degrees of freedom of the error.
        skewness: of the mean.
        effective: how many clusters of equal size there would be: ``1 / Σ a²`` with the share a of each in the weight.
        heavy: the weight of each cluster: how many samples it has, or the sum of their weights.
        sums: what each cluster contributes: the sum over its samples, the mean not taken off.
        apart: how far each cluster moves the mean, so that the squares add up to that of the error.
    """

    mean: float
    error: float
    freedom: float
    skewness: float
    effective: float
    heavy: Array
    sums: Array
    apart: Array

    @classmethod
    def of(cls, sums: Array, sizes: Array, weights: Array | None = None) -> ClusteredMean:
        """The mean of samples whose sums by cluster are known.

        With ``S`` the sum of a cluster less the mean times its size, ``a`` its share of all weight and N samples, the
        variance is ``Σ S² / (1 - a) / N²``. The degrees of freedom are
        ``1 / (Σ a² + Σ a² b² / ((1 - a) (1 - b)))``, the second sum over pairs of different clusters; for G clusters of
        equal size, ``G - 1``.

        Args:
            sums: what the samples of each cluster add up to; two clusters or more.
            sizes: how many samples each has.
            weights: the weight of the samples of each, of a quotient of two means; the sizes by default.

        Example:
            >>> found = ClusteredMean.of(np.array([3.0, 5.0, 4.0]), np.full(3, 4.0))
            >>> round(found.mean, 4), round(found.error, 4), round(found.freedom, 4)
            (1.0, 0.1443, 2.0)

        Source:
            CR2, for a mean: Bell & McCaffrey 2002, Survey Methodology 28:169; the degrees of freedom: Pustejovsky &
            Tipton 2018, Journal of Business & Economic Statistics 36:672.
        """
        count = float(sizes.sum())
        heavy = sizes if weights is None else weights
        shares, effective = heavy / float(heavy.sum()), float(heavy.sum()) ** 2 / float(np.sum(heavy**2))
        mean = float(sums.sum()) / count
        apart = (sums - mean * sizes) / count / np.sqrt(1 - shares)
        leverage = shares**2 / (1 - shares)
        freedom = 1 / (1 / effective + float(leverage.sum() ** 2 - np.sum(leverage**2)))
        unit = power_of_two(apart)
        error = unit * math.sqrt(float(np.sum((apart / unit) ** 2)))
        skewness = float(np.sum((apart / error) ** 3)) if error else 0.0
        return cls(mean, error, freedom, skewness, effective, heavy, sums, apart)

    def interval(self, confidence_level: float = 0.95, *, safe: bool = False) -> Ends:
        """The wider of Student's and Hall's intervals at each end, with clusters in the place of samples.

        Args:
            confidence_level: between 0 and 1.
            safe: for gates: sums of a few clusters of uneven sizes show too little of the skewness, so it is taken
                ``1 + 1.5 (G / effective - 1)`` times for G clusters.
        """
        hidden = 1 + _UNEVEN * (np.count_nonzero(self.heavy) / self.effective - 1) if safe else 1.0
        return skewed_ends(self.mean, self.error, hidden * self.skewness, self.freedom + 1, confidence_level)

    @property
    def risky(self) -> str:
        """The end of `interval` that may miss more often than its level says, as `risky_end` has it for samples."""
        return risky_end_of_skewness(self.skewness, self.effective)

    def test(self, seed: int = 0, up_to: int = 10_000) -> tuple[float, str]:
        """p of the test that the mean is 0, and its name: sign flips of whole clusters, or Student's of their sums."""
        p, name = paired_test(self.sums, seed, up_to)
        return p, f"{name} of clusters"

    def _inflation(self, confidence_level: float) -> float:
        """By how much fewer samples count, as the error of clusters is estimated from few of them: (z / t)²."""
        q = (1 + confidence_level) / 2
        return (normal_quantile(q) / student_quantile(q, self.freedom)) ** 2

    def share_interval(self, count: float, confidence_level: float = 0.95, *, safe: bool = False) -> Ends:
        """The interval of a share of yes: the wider of two at each end.

        One is Wilson's of so many independent samples as the error says. These are ``p (1 - p) / error² (z / t)²``, at
        most as many as there are; of all yes or all no, as many as there are clusters. The other is that of a mean,
        `interval`: where few clusters have a no, Wilson's lower end alone is too high in up to 17 % of cases.

        Args:
            count: how many samples the share is of.
            confidence_level: between 0 and 1.
            safe: Clopper and Pearson's, for gates.

        Source:
            Korn & Graubard 1998, Survey Methodology 24:193; Dean & Pagano 2015, Journal of Survey Statistics and
            Methodology 3:484.
        """
        n = self.independent_samples(count, confidence_level)
        lower, upper = (clopper_pearson_of if safe else wilson)(min(max(self.mean, 0.0), 1.0) * n, n, confidence_level)
        if not self.error:
            return lower, upper
        least, most = self.interval(confidence_level, safe=safe)
        return max(0.0, min(lower, least)), min(1.0, max(upper, most))

    def independent_samples(self, count: float, confidence_level: float = 0.95) -> float:
        """How many independent samples say as much of a share of yes; see `share_interval`."""
        spread = self.mean * (1 - self.mean)
        n = min(spread / self.error**2 if self.error and spread > 0 else self.effective, count)
        return n * self._inflation(confidence_level)

    def pairs_for_one(self, b: int, c: int, n: int, differing: int, confidence_level: float = 0.95) -> float:
        """How many of n paired yes or no say as much as one independent pair: as the error of their difference says.

        Where fewer than `FEWEST_CLUSTERS` clusters have pairs that differ, the error says little, and there are no more
        independent pairs than clusters: few that differ are no proof that no other ones do.

        Args:
            b: pairs that are yes first and no second.
            c: pairs that are no first and yes second.
            n: all pairs.
            differing: how many clusters have pairs that differ.
            confidence_level: between 0 and 1.
        """
        plain = (b + c - (c - b) ** 2 / n) / n**2
        effect = max(1.0, self.error**2 / plain) if plain > 0 else 1.0
        if differing < FEWEST_CLUSTERS:
            effect = max(effect, n / self.effective)
        return effect / self._inflation(confidence_level)


def difference_of(
    a: ClusteredMean, b: ClusteredMean, confidence_level: float = 0.95, correlation: float = 0.0
) -> tuple[float, Ends]:
    """Means of different samples: p of Welch's test, and its interval of the second less the first.

    Args:
        a: the first.
        b: the second.
        confidence_level: between 0 and 1.
        correlation: of the two means, where some clusters have samples of both.

    Example:
        >>> a, b = (ClusteredMean.of(np.array(sums), np.full(4, 2.0)) for sums in ([1.0, 2, 1, 0], [2.0, 2, 1, 2]))
        >>> p, (lower, upper) = difference_of(a, b)
        >>> round(p, 3), round(lower, 3), round(upper, 3)
        (0.178, -0.241, 0.991)
    """
    unit, apart = power_of_two(a.error, b.error), b.mean - a.mean
    first, second = a.error / unit, b.error / unit
    variance = max(0.0, first**2 + second**2 - 2 * correlation * first * second)
    if not variance:
        return float(apart == 0), (apart, apart)
    freedom = (first**2 + second**2) ** 2 / (first**4 / a.freedom + second**4 / b.freedom)
    freedom = freedom if not correlation else min(a.freedom, b.freedom)
    error = unit * math.sqrt(variance)
    half = error * student_quantile((1 + confidence_level) / 2, freedom)
    return student_two_sided(apart / error, freedom), (apart - half, apart + half)
