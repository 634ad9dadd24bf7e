"""How far apart two distributions are, or how they depend on each other, by kernels of all pairs of samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

import numpy as np
from torch import Tensor

from assay.errors import ConfigError, InvalidValuesError, describe
from assay.metrics.base import Examples, number
from assay.metrics.distances import chunks, squared_distances
from assay.metrics.generative.features import FeatureMetric, RowsMetric, repetitions
from assay.tally.base import Tally
from assay.tally.points.finite_rows import FiniteRows, PointArrays

Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _between(kernel: Kernel, x: np.ndarray, times: np.ndarray, y: np.ndarray, others: np.ndarray) -> float:
    """The sum of the kernel over all pairs of a row of `x` and a row of `y`, each as often as it occurs."""
    sums = [times[some] * (kernel(x[some], y) @ others) for some in chunks(len(x), len(y))]
    return math.fsum(np.concatenate(sums).tolist())


def _within(kernel: Kernel, x: np.ndarray, times: np.ndarray) -> float:
    """The mean of the kernel over all pairs of different samples."""
    same = [times[k] * kernel(x[k : k + 1], x[k : k + 1])[0, 0] for k in range(len(x))]
    size = float(times.sum())
    return (_between(kernel, x, times, x, times) - math.fsum(same)) / (size * (size - 1))


def _squared_discrepancy(kernel: Kernel, x: np.ndarray, times: np.ndarray, y: np.ndarray, others: np.ndarray) -> float:
    """The unbiased estimate of the squared maximum mean discrepancy."""
    mean = _between(kernel, x, times, y, others) / (float(times.sum()) * float(others.sum()))
    return _within(kernel, x, times) + _within(kernel, y, others) - 2 * mean


def _gaussian(variance: float, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(squared_distances(x, y) / (-2 * variance)))


@dataclass(frozen=True, kw_only=True)
class KernelInceptionDistance(FeatureMetric):
    r"""KID: the unbiased squared maximum mean discrepancy of generated and real samples by a polynomial kernel.

    $$ \frac{\sum_{i \ne j} k(x_i, x_j)}{m (m - 1)} + \frac{\sum_{i \ne j} k(y_i, y_j)}{n (n - 1)}
    - \frac{2}{m n} \sum_{i, j} k(x_i, y_j),
    \quad k(x, y) = (\gamma\, x \cdot y + c)^d $$

    over all pairs of samples: nothing is drawn, so the same samples give the same value, in any order. It is what the
    mean over random subsets of TorchMetrics tends to with their number. There are no subsets here; a resampled interval
    says how uncertain the value is. It may be negative, as unbiased estimates of 0 are. All features are kept, and the
    time grows as the square of the number of samples. A sample of integer weight w counts as w equal samples.

    Example:
        >>> import torch
        >>> features = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [3.0, 0.0], [5.0, 0.0], [3.0, 2.0]])
        >>> KernelInceptionDistance(num_features=2)(features, torch.tensor([False] * 3 + [True] * 3))
        tensor(382.3194, dtype=torch.float64)

    Source: M. Binkowski, D. J. Sutherland, M. Arbel, A. Gretton, Demystifying MMD GANs, ICLR 2018.
    """

    degree: Annotated[int, "the power `d` of the kernel."] = 3
    gamma: Annotated[float | None, "the factor of the inner product; `1 / num_features` by default."] = None
    coef: Annotated[float, "the constant `c` of the kernel, 0 or more."] = 1.0

    examples: ClassVar[Examples] = ({"num_features": 3}, {"num_features": 3, "degree": 2, "gamma": 0.5, "coef": 0.0})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.degree < 1:
            raise ConfigError(describe("degree", self.degree, "1 or more", "Pass degree=3, the default"))
        if self.gamma is not None and not 0 < self.gamma < math.inf:
            raise ConfigError(describe("gamma", self.gamma, "above 0, finite", "Leave gamma out"))
        if not 0 <= self.coef < math.inf:
            raise ConfigError(describe("coef", self.coef, "0 or more, finite", "Pass coef=1.0, the default"))

    def compute(self, counts: tuple[PointArrays, PointArrays]) -> Tensor:
        x, y = counts
        times, others = (repetitions(self, each.weights, len(each.preds)) for each in counts)
        if min(times.sum(), others.sum()) < 2:
            return number(math.nan)
        largest = max(np.abs(each.preds).max() for each in counts)
        if 2 * self.degree * math.log2(max(1.0, largest)) > 900:
            do = "Scale the features"
            raise InvalidValuesError(describe("preds", f"features up to {largest:g}", "kernels within float64", do))
        return number(_squared_discrepancy(self._kernel, x.preds, times, y.preds, others))

    def _kernel(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        gamma = 1 / self.num_features if self.gamma is None else self.gamma
        return np.asarray((gamma * (x @ y.T) + self.coef) ** self.degree)


@dataclass(frozen=True, kw_only=True)
class SamplePairMetric(RowsMetric):
    """A metric of the rows of `preds` and those of `target`, for which all of them are kept.

    All of them are kept, and the time grows as the square of their number. A row of integer weight w counts as w equal
    rows.

    Shapes: `preds` `(N, num_features)`, `target` likewise; weights `(N,)`.

    Returns:
        float64, shape `()`; NaN with a warning for fewer than two rows.

    Raises:
        ConfigError: an argument that is out of range.
        InvalidValuesError: by `compute`, if a value is NaN or infinite, or a weight is negative or no integer.
    """

    inputs: ClassVar[str] = "related vectors"
    defined_for = "two rows or more"

    def tally(self, weighted: bool) -> Tally:
        return FiniteRows((self.num_features,), (self.num_features,), weighted)


@dataclass(frozen=True, kw_only=True)
class MaximumMeanDiscrepancy(SamplePairMetric):
    r"""The maximum mean discrepancy of the rows of preds and those of target, by a Gaussian kernel.

    $$ \sqrt{\max(0, D)}, \quad D = \frac{1}{N (N - 1)} \sum_{i \ne j} \left(k(x_i, x_j) + k(y_i, y_j)\right)
    - \frac{2}{N^2} \sum_{i, j} k(x_i, y_j),
    \quad k(x, y) = \exp(-|x - y|^2 / 2 \sigma^2) $$

    over all pairs of rows, in any batches. Which row of preds stands beside which row of target does not
    matter. All rows are kept, and the time grows as the square of their number. A row of integer weight w counts as w
    equal rows.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[3.0], [4.0], [5.0]])
        >>> MaximumMeanDiscrepancy(num_features=1)(preds, target)
        tensor(0.8345, dtype=torch.float64)

    Source: A. Gretton, K. M. Borgwardt, M. J. Rasch, B. Schölkopf, A. Smola, A kernel two-sample test, Journal of
    Machine Learning Research 13 (2012), 723-773.
    """

    var: Annotated[float, "the variance `sigma ** 2` of the kernel."] = 1.0

    higher_is_better = False
    examples = ({"num_features": 3}, {"num_features": 3, "var": 64.0})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.var < math.inf:
            raise ConfigError(describe("var", self.var, "above 0, finite", "Pass var=1.0, the default"))

    def compute(self, counts: PointArrays) -> Tensor:
        times = repetitions(self, counts.weights, len(counts.preds))
        if times.sum() < 2:
            return number(math.nan)
        squared = _squared_discrepancy(partial(_gaussian, self.var), counts.preds, times, counts.target, times)
        return number(math.sqrt(max(0.0, squared)))


@dataclass(frozen=True, kw_only=True)
class HSIC(SamplePairMetric):
    r"""The Hilbert-Schmidt independence criterion of preds and target; 0 where they are independent.

    $$ \frac{1}{N (N - 3)} \left[\sum_{i, j} K_{ij} L_{ij} + \frac{\sum K \sum L}{(N - 1)(N - 2)}
    - \frac{2}{N - 2} \sum_i K_i L_i\right] $$

    with `exp(-|x - y|^2 / 2 sigma^2)` for the pairs of different rows of preds in K and of target in L, 0 for a row
    with itself, and the sums `K_i` and `L_i` of each row. It is the unbiased estimate over all rows, for any
    batches, and 0 if that is negative. All rows are kept; time grows as the square of their number, and where
    a sigma is None, memory does, too. A row of integer weight w counts as w equal rows.

    Shapes: `preds` `(N, num_features)`, `target` `(N, num_target_features)`; weights `(N,)`.

    Returns:
        float64, shape `()`; NaN with a warning for fewer than four rows, or where the median distance is 0.

    Example:
        >>> import torch
        >>> preds = torch.arange(6.0)[:, None]
        >>> HSIC(num_features=1)(preds, preds**2)
        tensor(0.0922, dtype=torch.float64)

    Source: L. Song, A. Smola, A. Gretton, J. Bedo, K. Borgwardt, Feature selection via dependence maximization, Journal
    of Machine Learning Research 13 (2012), 1393-1434, equation 5.
    """

    num_target_features: Annotated[
        int | None, "the number of values in a row of `target`; that of `preds` by default."
    ] = None
    sigma_x: Annotated[
        float | None,
        "the standard deviation of the kernel of preds. None: its square is the median squared distance of all pairs "
        "of rows, each row with itself among them.",
    ] = None
    sigma_y: Annotated[float | None, "the same of the kernel of target."] = None

    defined_for = "four rows or more, of which most differ"
    higher_is_better = None
    examples = ({"num_features": 3}, {"num_features": 3, "sigma_x": 2.0, "sigma_y": 2.0})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_target_features is not None and self.num_target_features < 1:
            do = "Give the size of dimension 1 of target"
            raise ConfigError(describe("num_target_features", self.num_target_features, "1 or more", do))
        for name in ("sigma_x", "sigma_y"):
            sigma = getattr(self, name)
            if sigma is not None and not 0 < sigma < math.inf:
                do = f"Leave {name} out for the median distance"
                raise ConfigError(describe(name, sigma, "above 0, finite", do))

    def tally(self, weighted: bool) -> Tally:
        return FiniteRows((self.num_features,), (self.num_target_features or self.num_features,), weighted)

    def compute(self, counts: PointArrays) -> Tensor:
        times = repetitions(self, counts.weights, len(counts.preds))
        size = float(times.sum())
        if size < 4:
            return number(math.nan)
        sides = counts.preds, counts.target
        sigmas = self.sigma_x, self.sigma_y
        variances = [
            _median_distance(rows, times) if sigma is None else sigma**2
            for rows, sigma in zip(sides, sigmas, strict=True)
        ]
        if 0 in variances:
            return number(math.nan)
        sums: list[np.ndarray] = []
        for some in chunks(len(times), len(times)):
            of_preds, of_target = (_gaussian(v, rows[some], rows) for v, rows in zip(variances, sides, strict=True))
            sums.append(np.stack([each @ times for each in (of_preds, of_target, of_preds * of_target)], 1))
        of_k, of_l, of_both = np.concatenate(sums).T - 1  # without the row itself

        def total(values: np.ndarray) -> float:
            return math.fsum((times * values).tolist())

        value = total(of_both) + total(of_k) * total(of_l) / ((size - 1) * (size - 2))
        value -= 2 * total(of_k * of_l) / (size - 2)
        return number(max(0.0, value / (size * (size - 3))))


def _median_distance(rows: np.ndarray, times: np.ndarray) -> float:
    """The median of the squared distances of all pairs of rows, each row with itself among them."""
    from scipy.spatial.distance import pdist

    first, second = np.triu_indices(len(rows), 1)
    distances, pairs = pdist(rows, "sqeuclidean"), 2 * times[first] * times[second]
    order = np.argsort(distances)
    ends = np.concatenate([[0.0], np.cumsum(pairs[order])]) + (times**2).sum()
    values = np.concatenate([[0.0], distances[order]])
    middle = [(times.sum() ** 2 - 1) // 2, times.sum() ** 2 // 2]
    return float(values[np.searchsorted(ends, middle, side="right")].mean())
