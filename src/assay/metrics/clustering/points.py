"""Clusterings judged by the points alone: how far apart points of one cluster are, and points of different ones."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor

from assay.errors import ConfigError, InvalidValuesError, describe
from assay.metrics.base import Examples, Metric, number
from assay.metrics.distances import chunks, squared_distances
from assay.metrics.exact_arithmetic import rounded
from assay.native.clusters import radii, sums_and_means
from assay.tally.base import Tally
from assay.tally.points.cluster_sums import ClusterSums, ClusterTotals
from assay.tally.points.finite_rows import FiniteRows, PointArrays, totals_of_points
from assay.tally.sums import exact


@dataclass(frozen=True, kw_only=True)
class PointClusterMetric(Metric):
    """A metric of points and their clusters.

    Shapes:
        `preds` `(N, num_features)`, the points; `target` `(N,)`, the cluster of each: any integers; weights `(N,)`.

    Returns:
        float64, shape `()`; NaN with a warning for fewer than two clusters.

    Raises:
        ConfigError: `num_features` below 1.
        InvalidValuesError: by `compute`, if a point has a NaN or infinite feature, or a weight is negative or NaN.
    """

    family = "clustering"
    inputs: ClassVar[str] = "points"
    higher_is_better: ClassVar[bool | None] = True
    exact_terms: ClassVar[bool] = False
    defined_for = "points of two clusters or more"
    examples: ClassVar[Examples] = ({"num_features": 3},)

    num_features: Annotated[int, "the number of features of a point, `D`."]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_features < 1:
            do = "Give the number of features of a point"
            raise ConfigError(describe("num_features", self.num_features, "1 or more", do))

    def tally(self, weighted: bool) -> Tally:
        return FiniteRows((self.num_features,), (), weighted)


@dataclass(frozen=True, kw_only=True)
class CalinskiHarabaszScore(PointClusterMetric):
    """The Calinski-Harabasz score: the variance between clusters over the variance within them.

    `B (n - K) / (W (K - 1))`, where `B` sums the squared distances of the centroids to the mean, one for each point,
    `W` those of the points to their centroids, and `K` is the number of clusters. 1 where `W` is 0, as in scikit-learn.
    A point of weight w counts as w equal points.

    Returns:
        float64, shape `()`; NaN with a warning for fewer than two clusters, or as many clusters as points.

    Raises:
        ConfigError: `num_features` below 1, or `num_classes` below 2.
        InvalidValuesError: by `compute`, if a point has a NaN or infinite feature, a label is not in
            `0 ... num_classes - 1`, or a weight is no integer.

    Example:
        >>> import torch
        >>> points = torch.tensor([[0.0, 0.0], [0.0, 2.0], [4.0, 0.0], [4.0, 2.0]])
        >>> CalinskiHarabaszScore(num_features=2)(points, torch.tensor([0, 0, 7, 7]))
        tensor(8., dtype=torch.float64)

    Source: T. Calinski, J. Harabasz, A dendrite method for cluster analysis, Communications in Statistics 3 (1974),
    1-27.
    """

    exact_terms = True
    counts_pairs: ClassVar[bool] = True
    defined_for = "points of two clusters or more, and fewer clusters than points"

    num_classes: Annotated[
        int | None,
        "clusters are `0 ... num_classes - 1`, and their sums are counted on the device: `0.6 C D` KiB, and twice that "
        "with weights. Without it all points are kept.",
    ] = None

    def tally(self, weighted: bool) -> Tally:
        if self.num_classes is None:
            return super().tally(weighted)
        return ClusterSums(self.num_classes, self.num_features, weighted)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tally(False)  # raises what the tally has to say

    def compute(self, counts: PointArrays | ClusterTotals) -> Tensor:
        slices = [counts] if isinstance(counts, ClusterTotals) else list(totals_of_points(counts))
        weights = slices[0].weights
        _check_integers(type(self).__name__, all(weight.denominator == 1 for weight in weights))
        size, clusters = sum(weights, Fraction(0)), len(weights)
        if not 2 <= clusters < size:
            return number(math.nan)
        spreads = [each.spread() for each in slices]
        between, within = (sum(each, Fraction(0)) for each in zip(*spreads, strict=True))
        return number(rounded(between * (size - clusters) / (within * (clusters - 1))) if within else 1.0)


@dataclass(frozen=True, kw_only=True)
class PointDistanceMetric(PointClusterMetric):
    """A metric of points and their clusters for which all of them are kept."""

    terms_in_float64 = True

    def compute(self, counts: PointArrays) -> Tensor:
        if not counts.target.max(initial=0):
            return number(math.nan)
        low, high = torch.aminmax(torch.from_numpy(counts.preds))
        exponent = math.frexp(max(-float(low), float(high)))[1]  # units do not matter, and squares must fit
        if not self._fits(exponent):
            counts = replace(counts, preds=_scaled(counts.preds, -exponent))
        return number(self.value(counts))

    def _fits(self, exponent: int) -> bool:
        """Whether points below `2 ** exponent` give the bits that points below 1 would give."""
        return abs(exponent) <= 64

    @abstractmethod
    def value(self, points: PointArrays) -> float:
        """The value, for two clusters or more."""


@dataclass(frozen=True, kw_only=True)
class DaviesBouldinScore(PointDistanceMetric):
    """The Davies-Bouldin score: how wide clusters are, relative to how far apart their centroids are; 0 is best.

    The mean over clusters `i` of the largest `(s_i + s_j) / d_ij`, with the mean distance `s` of a cluster's points to
    their centroid, and the distance `d_ij` of two centroids. Pairs of clusters with one centroid are left out.

    Example:
        >>> import torch
        >>> points = torch.tensor([[0.0, 0.0], [0.0, 2.0], [4.0, 0.0], [4.0, 2.0]])
        >>> DaviesBouldinScore(num_features=2)(points, torch.tensor([0, 0, 7, 7]))
        tensor(0.5000, dtype=torch.float64)

    Source: D. L. Davies, D. W. Bouldin, A cluster separation measure, IEEE Transactions on Pattern Analysis and Machine
    Intelligence 1 (1979), 224-227.
    """

    higher_is_better = False

    def value(self, points: PointArrays) -> float:
        centroids = _centroids(points)
        width = _means(_radii(points, centroids, 2.0), points)
        worst: list[float] = []
        for some in chunks(len(centroids), len(centroids)):
            apart = np.sqrt(squared_distances(centroids[some], centroids))
            apart[apart == 0] = math.inf
            worst += ((width[some, None] + width) / apart).max(1).tolist()
        return math.fsum(worst) / len(worst)


@dataclass(frozen=True, kw_only=True)
class DunnIndex(PointDistanceMetric):
    """The Dunn index: the smallest distance between two centroids over the largest of a point to its centroid.

        min_{k != l} |c_k - c_l|_p / max_i |x_i - c(x_i)|_p

    Infinite where every point is a centroid. Weights other than 0 move the centroids only.

    Raises:
        ConfigError: `num_features` below 1, or `p` below 1.
        InvalidValuesError: by `compute`, if a point has a NaN or infinite feature, or a weight is negative or NaN.

    Example:
        >>> import torch
        >>> points = torch.tensor([[0.0, 0.0], [0.0, 2.0], [4.0, 0.0], [4.0, 2.0]])
        >>> DunnIndex(num_features=2)(points, torch.tensor([0, 0, 7, 7]))
        tensor(4., dtype=torch.float64)

    Source: TorchMetrics' DunnIndex; J. C. Dunn, Well-separated clusters and optimal fuzzy partitions, Journal of
    Cybernetics 4 (1974), 95-104, has other distances.
    """

    p: Annotated[float, "the order of the norm: 1 or more, or infinity for the largest difference."] = 2.0

    examples = ({"num_features": 3}, {"num_features": 3, "p": 1}, {"num_features": 3, "p": math.inf})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.p >= 1:
            raise ConfigError(describe("p", self.p, "1 or more", "Pass p=2, the default; below 1 it is no distance"))

    def _fits(self, exponent: int) -> bool:
        return self.p in (1, 2, math.inf) and super()._fits(exponent)  # rounding of other powers depends on the unit

    def value(self, points: PointArrays) -> float:
        centroids = _centroids(points)
        widest = float(_radii(points, centroids, self.p).max())
        nearest = min(
            float(np.linalg.norm(centroids[k + 1 :] - centroids[k], self.p, axis=1).min())
            for k in range(len(centroids) - 1)
        )
        return nearest / widest if widest else math.inf if nearest else math.nan


@dataclass(frozen=True, kw_only=True)
class SilhouetteScore(PointDistanceMetric):
    """The mean silhouette coefficient: how much closer points are to their own cluster than to the next one.

    The mean over points of `(b - a) / max(a, b)`, with the mean distance `a` to the other points of the same cluster,
    and `b`, the smallest mean distance to the points of another cluster. 0 for a point that is alone in its cluster,
    and where both are 0. A point of weight w counts as w equal points. The time grows as the square of the number of
    points.

    Returns:
        float64, shape `()`; NaN with a warning for fewer than two clusters, or as many clusters as points.

    Raises:
        ConfigError: `num_features` below 1.
        InvalidValuesError: by `compute`, if a point has a NaN or infinite feature, or a weight is no integer.

    Example:
        >>> import torch
        >>> points = torch.tensor([[0.0, 0.0], [0.0, 2.0], [4.0, 0.0], [4.0, 2.0]])
        >>> SilhouetteScore(num_features=2)(points, torch.tensor([0, 0, 7, 7]))
        tensor(0.5279, dtype=torch.float64)

    Source: P. J. Rousseeuw, Silhouettes: a graphical aid to the interpretation and validation of cluster analysis,
    Journal of Computational and Applied Mathematics 20 (1987), 53-65.
    """

    counts_pairs: ClassVar[bool] = True
    defined_for = "points of two clusters or more, and fewer clusters than points"

    def value(self, points: PointArrays) -> float:
        points = points.in_order()  # in which distances are added up
        weights = np.ones(len(points.preds)) if points.weights is None else points.weights.astype(np.float64)
        _check_integers(type(self).__name__, bool((weights == np.rint(weights)).all() and weights.max() < 2.0**53))
        members = _members(points.target)
        order, starts = np.concatenate(members), np.cumsum([0, *map(len, members[:-1])])
        rows, cluster, weights = points.preds[order], points.target[order], weights[order]
        sizes = np.add.reduceat(weights, starts)
        if len(sizes) == sizes.sum():
            return math.nan
        terms: list[float] = []
        for some in chunks(len(rows), len(rows)):
            apart = np.sqrt(squared_distances(rows[some], rows)) * weights
            sums, own = np.add.reduceat(apart, starts, axis=1), cluster[some, None]
            inner = np.take_along_axis(sums, own, 1)[:, 0] / np.maximum(sizes[own[:, 0]] - 1, 1)
            means = sums / sizes
            np.put_along_axis(means, own, math.inf, 1)
            outer = means.min(1)
            larger = np.maximum(inner, outer)
            defined = (larger > 0) & (sizes[own[:, 0]] > 1)
            terms += (weights[some] * np.where(defined, (outer - inner) / np.where(defined, larger, 1), 0)).tolist()
        return math.fsum(terms) / float(sizes.sum())


def _members(cluster: np.ndarray) -> list[np.ndarray]:
    """The rows of each cluster."""
    return np.split(np.argsort(cluster, kind="stable"), np.cumsum(np.bincount(cluster))[:-1])


def _scaled(values: np.ndarray, exponent: int) -> np.ndarray:
    """The values times a power of two, each rounded at most once."""
    return values * 2.0**exponent if -1022 <= exponent <= 1023 else np.ldexp(values, exponent)


def _means(radius: np.ndarray, points: PointArrays) -> np.ndarray:
    """The mean of the values of each cluster: a quotient of sums that are rounded once."""
    if points.weights is None:
        if found := sums_and_means(radius[:, None], points.target):
            return found[0][:, 0] / np.bincount(points.target)
        (totals,) = totals_of_points(replace(points, preds=radius[:, None]), needs_squares=False)
        sums = exact.quotients(([x for row in totals.sums for x in row], totals.unit), ([1] * len(totals.sums), 0))
        return np.array(sums) / np.bincount(points.target)
    weights = points.weights.astype(np.float64)
    weights = np.ldexp(weights, -np.frexp(weights.max())[1])  # their unit does not matter, and sums must fit
    members = _members(points.target)
    return np.array([math.fsum(radius[each] * weights[each]) / math.fsum(weights[each]) for each in members])


def _centroids(points: PointArrays) -> np.ndarray:
    if points.weights is None and (found := sums_and_means(points.preds, points.target)):
        return found[1]
    return np.concatenate([each.centroids() for each in totals_of_points(points, needs_squares=False)], 1)


def _radii(points: PointArrays, centroids: np.ndarray, p: float) -> np.ndarray:
    """How far each point is from the centroid of its cluster."""
    preds, cluster = points.preds, points.target
    found = radii(preds, cluster, centroids) if p == 2 else None
    if found is not None:
        return found
    parts = [
        np.linalg.norm(preds[some] - centroids[cluster[some]], p, axis=1) for some in chunks(len(preds), preds.shape[1])
    ]
    return np.concatenate(parts)


def _check_integers(metric: str, integers: bool) -> None:
    """Raise where a weight is no integer."""
    if not integers:
        do = "Scale them to numbers of points"
        raise InvalidValuesError(
            describe(
                "weights", f"fractions or huge numbers for {metric}", "integers, as pairs of points are counted", do
            )
        )
