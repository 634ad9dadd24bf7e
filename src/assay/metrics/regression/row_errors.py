"""Errors of rows of numbers: vectors, and ensembles of predictions."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import NOT_NEGATIVE, Metric
from assay.metrics.exact_arithmetic import means, result
from assay.metrics.per_sample import SampleTerms
from assay.tally.base import Batch, Tally
from assay.tally.rows.vector_terms import EnsembleScore, PairwiseDistance
from assay.tally.sums.polynomials import MEAN_OF_ROWS, QuotientOfSums
from assay.tally.sums.row_sums import RowSums, RowTerm, RowTotals


@dataclass(frozen=True)
class RowMeanMetric(Metric):
    """The mean of a number that each row gives.

    Returns:
        float64, shape `()`; NaN without data, and where a row's number is NaN, with a warning that says how many.

    Raises:
        ShapeError: arguments that are no such rows.
    """

    value_range = NOT_NEGATIVE

    family: ClassVar[str] = "regression"
    higher_is_better: ClassVar[bool | None] = False
    exact_terms: ClassVar[bool] = False
    row_name: ClassVar[str]

    @property
    @abstractmethod
    def row(self) -> RowTerm:
        """What each row gives."""

    def tally(self, weighted: bool) -> Tally:
        return RowSums(self.row, weighted)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        return SampleTerms.of(self.row_name, self.row(batch).values[0].view(-1))

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return MEAN_OF_ROWS

    def compute(self, counts: RowTotals) -> Tensor:
        return result(means(counts))


@dataclass(frozen=True)
class MeanPairwiseDistance(RowMeanMetric):
    """Mean distance between each row of predictions and of target.

    `sum(w |preds - target|_p) / sum(w)`, with the norm of order `p`.

    Shapes: `preds` and `target` `(N, D)`, weights `(N,)`.

    Raises:
        ConfigError: `p` below 1, `eps` below 0 or not finite.

    Example:
        >>> import torch
        >>> MeanPairwiseDistance()(torch.tensor([[0.0, 0.0], [1.0, 1.0]]), torch.tensor([[3.0, 4.0], [1.0, 1.0]]))
        tensor(2.5000, dtype=torch.float64)

    Source: torch.nn.functional.pairwise_distance.
    """

    p: Annotated[float, "the order of the norm: 1 or more, or infinity for the largest difference."] = 2.0
    eps: Annotated[float, "added to every difference, as `torch.nn.PairwiseDistance` does with 1e-6."] = 0.0

    inputs = "vectors"
    examples = ({}, {"p": 1}, {"p": 3}, {"p": math.inf})
    row_name = "distance"
    unchanged_by = frozenset({"swap"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.p >= 1:
            raise ConfigError(describe("p", self.p, "1 or more", "Below 1 it is not a distance"))
        if not 0 <= self.eps < math.inf:
            raise ConfigError(describe("eps", self.eps, "a finite number of 0 or more", "Leave eps out"))

    @property
    def row(self) -> RowTerm:
        return PairwiseDistance(self.p, self.eps)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        name = f"distance, p {self.p}" + (f", eps {self.eps}" if self.eps else "")
        return SampleTerms.of(name, self.row(batch).values[0].view(-1))


@dataclass(frozen=True)
class ContinuousRankedProbabilityScore(RowMeanMetric):
    r"""Continuous ranked probability score of ensembles: how far the distribution of the members is from the outcome.

    $$ \frac{1}{m} \sum_i |x_i - y| - \frac{1}{2 m^2} \sum_{i, j} |x_i - x_j| $$

    with the members x of each row and its target y, averaged over rows. For one member it is the absolute error.

    Shapes: `preds (N, members)`, `target (N,)`, weights `(N,)`.

    Example:
        >>> import torch
        >>> ContinuousRankedProbabilityScore()(torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([3.0]))
        tensor(0.6667, dtype=torch.float64)

    Source: Gneiting and Raftery, Journal of the American Statistical Association 102 (2007), 359-378, equation 21.
    """

    inputs = "ensembles"
    row_name = "continuous ranked probability score"
    row = EnsembleScore()
