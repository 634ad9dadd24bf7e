"""The Fréchet distance of two sets of features: FID, FAD and MiFID."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor

from assay.errors import ConfigError, RoundingWarning, describe, warn
from assay.metrics.base import Examples, number
from assay.metrics.distances import chunks
from assay.metrics.exact_arithmetic import rounded
from assay.metrics.generative.features import FeatureMetric, repetitions
from assay.tally.base import Tally
from assay.tally.points.feature_moments import FeatureMoments, Moments
from assay.tally.points.finite_rows import PointArrays
from assay.tally.sums.exact import fraction

_NO_DISTANCE = 1e-8
_LEAST_PENALTY = 1e-14
_ROUNDING = 1e-3
"""What rounding may change of a distance, as a share of it, before a warning says so."""
_EQUAL = 1e-6
"""What it may change as a share of the variances: two sets that are nearly equal are at a distance of nearly 0."""


@dataclass(frozen=True, kw_only=True)
class FrechetDistance(FeatureMetric):
    r"""The Fréchet distance of generated from real samples by their features: FID of Inception features, FAD of audio.

    $$ |\mu_1 - \mu_2|^2 + \mathrm{tr}\,\Sigma_1 + \mathrm{tr}\,\Sigma_2
    - 2\,\mathrm{tr} (\Sigma_1^{1/2} \Sigma_2 \Sigma_1^{1/2})^{1/2} $$

    with the means and the unbiased covariances of both groups. It takes the features; the network is the caller's.
    The value depends on the number of samples: compare values of equal numbers only. With fewer samples than features
    the covariances have no full rank; the value is defined, but far from that of many samples.

    Features are rounded to a fixed point, multiples of `2 ** -20` for the `feature_range` 7.5, and their sums and
    products are exact integers, so the covariances have the same bits for any order, batches, devices and processes,
    and do not lose digits where means are large. The eigenvalues are computed from them on the CPU in float64. Memory:
    the features while there are at most `4 D` of them, then tables of `16 D (D + 128)` bytes. A sample of integer
    weight w counts as w equal samples; weighted samples are always kept.

    Rounding: features that the fixed point does not hold may change the value by at most `d (2 sqrt(value) + d)` with
    `d = 2 ** -21 sqrt(num_features)` for the `feature_range` 7.5 and many samples of each group. Where that is more
    than a thousandth of the value, a `RoundingWarning` says so.

    Raises:
        ConfigError: `num_features` below 1, or a `feature_range` outside `2 ** -64 ... 2 ** 64`.
        InvalidValuesError: by `compute`, if a feature is NaN, infinite or beyond `feature_range`, a target is neither 0
            nor 1, or a weight is negative or no integer.

    Example:
        >>> import torch
        >>> features = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [3.0, 0.0], [5.0, 0.0], [3.0, 2.0]])
        >>> FrechetDistance(num_features=2)(features, torch.tensor([False] * 3 + [True] * 3))
        tensor(9., dtype=torch.float64)

    Source: M. Heusel, H. Ramsauer, T. Unterthiner, B. Nessler, S. Hochreiter, GANs trained by a two time-scale update
    rule converge to a local Nash equilibrium, NeurIPS 2017; K. Kilgour and others, Fréchet audio distance, Interspeech
    2019.
    """

    feature_range: Annotated[
        float,
        "the largest absolute value that a feature may have. Features are rounded to multiples of about `2 ** -23` of "
        "it; one beyond it raises when the metric is computed.",
    ] = 30.0

    examples: ClassVar[Examples] = ({"num_features": 3}, {"num_features": 3, "feature_range": 1000.0})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tally(False)  # raises what the tally has to say

    def tally(self, weighted: bool) -> Tally:
        return FeatureMoments(self.num_features, self.feature_range, weighted)

    def compute(self, counts: tuple[Moments, Moments]) -> Tensor:
        first, second = counts
        if min(first.count, second.count) < 2:
            return number(math.nan)
        apart = sum(
            (a * second.count - b * first.count) ** 2 for a, b in zip(first.sums, second.sums, strict=True)
        ) * fraction(1, 2 * first.unit)
        distance = rounded(Fraction(apart) / (first.count * second.count) ** 2)
        value = _distance(distance, *((each.covariance, each.count) for each in counts))
        self._warn_of_rounding(value, first, second)
        return number(value)

    def _warn_of_rounding(self, value: float, first: Moments, second: Moments) -> None:
        """Warn that features are small beside the steps of the fixed point.

        The root of the Fréchet distance is a metric, so it changes by at most the sum of both groups' shifts.
        """
        shift = first.largest_shift + second.largest_shift
        change = shift * (2 * math.sqrt(value) + shift)
        variance = sum(float(np.trace(each.covariance)) for each in (first, second))
        if change > max(_ROUNDING * value, _EQUAL * variance):
            got = f"{value:.3g}, which rounding of the features may have changed by {change:.1g}"
            expected = f"features that are not small beside feature_range={self.feature_range:g}"
            do = "Pass the largest absolute value of the features as feature_range"
            warn(describe(type(self).__name__, got, expected, do), RoundingWarning)


def _distance(means: float, *groups: tuple[np.ndarray, int]) -> float:
    """The Fréchet distance from the squared distance of the means, and the covariance and size of each group."""
    (small, size), (large, _) = sorted(groups, key=lambda group: group[1])
    values, vectors = torch.linalg.eigh(torch.from_numpy(small))
    rank = min(len(values), size - 1)
    root = (vectors * values.clamp(min=0).sqrt())[:, len(values) - rank :]
    cross = torch.linalg.eigvalsh(root.T @ torch.from_numpy(large) @ root).clamp(min=0).sqrt()
    traces = math.fsum([*np.diag(small), *np.diag(large)])
    return max(0.0, means + traces - 2 * math.fsum(cross.tolist()))


@dataclass(frozen=True, kw_only=True)
class MemorizationInformedFrechetInceptionDistance(FeatureMetric):
    r"""MiFID: the Fréchet distance over a penalty for samples that are copies of real ones.

    $$ \frac{FID}{M + 10^{-14}}, \quad M = \frac{1}{N} \sum_i \min_j \left(1 - |\cos(x_i, y_j)|\right) $$

    over the generated samples x and the real ones y. `M` is 1 where it is not below `cosine_distance_eps`: then nothing
    is taken for memorized. Samples whose features are all 0 have no direction and are left out of `M`, which is 1 where
    nothing is left. The value is 0 where FID is below `1e-8`. All features are kept, and the time grows as the product
    of both numbers of samples. A sample of integer weight w counts as w equal samples.

    Example:
        >>> import torch
        >>> features = torch.tensor([[0.0, 1.0], [2.0, 1.0], [1.0, 3.0], [3.0, 0.0], [5.0, 1.0], [3.0, 2.0]])
        >>> real = torch.tensor([0, 0, 0, 1, 1, 1])
        >>> MemorizationInformedFrechetInceptionDistance(num_features=2)(features, real)
        tensor(7.6034, dtype=torch.float64)

    Source: C.-Y. Bai, H.-T. Lin, C. Raffel, W. C. Kan, On training sample memorization: lessons from benchmarking
    generative modeling with a large-scale competition, KDD 2021.
    """

    cosine_distance_eps: Annotated[float, "samples closer than this to a real one are taken for memorized."] = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.cosine_distance_eps <= 1:
            do = "Pass 0.1, the default"
            raise ConfigError(describe("cosine_distance_eps", self.cosine_distance_eps, "in (0, 1]", do))

    def compute(self, counts: tuple[PointArrays, PointArrays]) -> Tensor:
        distance, points, weights = distance_of_rows(self, counts)
        if math.isnan(distance):
            return number(math.nan)
        if distance <= _NO_DISTANCE:
            return number(0.0)
        return number(distance / (self._penalty(points[0], points[1], weights[0]) + _LEAST_PENALTY))

    def _penalty(self, generated: np.ndarray, real: np.ndarray, weights: np.ndarray) -> float:
        weights = weights[generated.any(1)]
        (generated, real) = (_directions(rows[rows.any(1)]) for rows in (generated, real))
        if not len(generated) or not len(real):
            return 1.0
        nearest = [1 - np.abs(generated[some] @ real.T).max(1) for some in chunks(len(generated), len(real))]
        mean = math.fsum((np.concatenate(nearest) * weights).tolist()) / float(weights.sum())
        return mean if mean < self.cosine_distance_eps else 1.0


def distance_of_rows(
    metric: FeatureMetric, counts: tuple[PointArrays, PointArrays]
) -> tuple[float, list[np.ndarray], list[np.ndarray]]:
    """The Fréchet distance of two groups of kept features; NaN where one has fewer than two.

    Returns:
        The distance; the features of each group, divided by one power of two where their squares would overflow; how
        often each occurs.
    """
    weights = [repetitions(metric, each.weights, len(each.preds)) for each in counts]
    sizes = [int(each.sum()) for each in weights]
    if min(sizes) < 2:
        return math.nan, [], weights
    exponent = max(int(np.frexp(np.abs(each.preds).max(initial=0))[1]) for each in counts)
    exponent = exponent if abs(exponent) > 400 else 0  # squares must fit float64
    points = [np.ldexp(each.preds.astype(np.float64), -exponent) for each in counts]
    means = [times @ rows / size for times, rows, size in zip(weights, points, sizes, strict=True)]
    covariances = [
        ((rows - mean).T * times) @ (rows - mean) / (size - 1)
        for rows, times, mean, size in zip(points, weights, means, sizes, strict=True)
    ]
    apart = float(((means[0] - means[1]) ** 2).sum())
    distance = rounded(Fraction(_distance(apart, *zip(covariances, sizes, strict=True))) * Fraction(4) ** exponent)
    return distance, points, weights


def _directions(rows: np.ndarray) -> np.ndarray:
    rows = rows / np.abs(rows).max(1, keepdims=True)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
