"""Correlations that are read from exact sums, and the cosine between the rows of predictions and target."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import CORRELATION, Examples, Metric
from assay.metrics.exact_arithmetic import quotient, quotient_of_rows, result, sums_or_means
from assay.metrics.output_metrics import MOMENTS, TARGET_SPREAD, WEIGHT, XX, XY, OutputMetric
from assay.metrics.per_sample import SampleTerms
from assay.tally.base import Batch, Tally
from assay.tally.rows.row_terms import Cosine
from assay.tally.sums.exact import Number
from assay.tally.sums.polynomials import QuotientOfSums, SumOf
from assay.tally.sums.row_sums import RowSums, RowTotals
from assay.tally.sums.sums import Sums
from assay.tally.sums.terms import PREDS, TARGET
from assay.tally.sums.totals import Totals

_OFFSET = SumOf(PREDS) - SumOf(TARGET)
_PREDS_SPREAD = WEIGHT * SumOf(XX) - SumOf(PREDS) * SumOf(PREDS)
_SHARED_SPREAD = WEIGHT * SumOf(XY) - SumOf(PREDS) * SumOf(TARGET)
_PEARSON = QuotientOfSums(_SHARED_SPREAD, _PREDS_SPREAD * TARGET_SPREAD, "of the divisor")
_CONCORDANCE = QuotientOfSums(_SHARED_SPREAD + _SHARED_SPREAD, _PREDS_SPREAD + TARGET_SPREAD + _OFFSET * _OFFSET)

_OF_SAMPLE = QuotientOfSums(
    _CONCORDANCE.above * WEIGHT, _CONCORDANCE.below * WEIGHT - _OFFSET * _OFFSET, takes_weights=False
)
"""The same with `ddof=1`."""


@dataclass(frozen=True)
class Correlation(OutputMetric):
    """A metric that is read from the spread of each output."""

    value_range = CORRELATION

    family = "correlation"
    higher_is_better = True
    examples: ClassVar[Examples] = ({}, {"num_outputs": 2})
    defined_for: ClassVar[str] = "samples with weight in which neither preds nor target is constant"
    terms = MOMENTS

    def tally(self, weighted: bool) -> Tally:
        return Sums(MOMENTS, self.num_outputs, weighted)

    @property
    @abstractmethod
    def formula(self) -> QuotientOfSums | None:
        """The correlation of an output as a quotient of sums, where it is one."""


@dataclass(frozen=True)
class PearsonCorrCoef(Correlation):
    """Pearson's correlation coefficient.

    `sum(w (x - mean x)(y - mean y)) / sqrt(sum(w (x - mean x)²) sum(w (y - mean y)²))`: neither a large mean nor an
    outlier costs digits.

    Returns:
        float64 in [-1, 1], shape `()` or `(num_outputs,)`; NaN where preds or target are constant (as in SciPy), and
        without data.

    Example:
        >>> import torch
        >>> PearsonCorrCoef()(torch.tensor([2.5, 0.0, 2.0, 8.0]), torch.tensor([3.0, -0.5, 2.0, 7.0]))
        tensor(0.9849, dtype=torch.float64)

    Source: Pearson, Proceedings of the Royal Society of London 58 (1895), 240-242.
    """

    unchanged_by = frozenset({"swap", "affine"})
    formula = _PEARSON


@dataclass(frozen=True)
class ConcordanceCorrCoef(Correlation):
    """Lin's concordance correlation coefficient: how close pairs are to the line of equality.

    `2 s_xy / (s_xx + s_yy + (mean x - mean y)²)` with `s_xy = sum(w (x - mean x)(y - mean y)) / (sum(w) - ddof)`.

    Returns:
        float64 in [-1, 1], shape `()` or `(num_outputs,)`; NaN where preds and target are the same constant (0 / 0),
        where the weights do not exceed `ddof`, and without data.

    Raises:
        ConfigError: `ddof` below 0, `num_outputs` below 1.

    Example:
        >>> import torch
        >>> ConcordanceCorrCoef()(torch.tensor([2.5, 0.0, 2.0, 8.0]), torch.tensor([3.0, -0.5, 2.0, 7.0]))
        tensor(0.9768, dtype=torch.float64)

    Source: Lin, Biometrics 45 (1989), 255-268.
    """

    ddof: Annotated[
        int, "0 for the population moments of Lin's definition; 1 for the sample moments that TorchMetrics takes."
    ] = 0

    examples = ({}, {"ddof": 1}, {"num_outputs": 2})
    unchanged_by = frozenset({"swap", "common affine"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ddof < 0:
            raise ConfigError(describe("ddof", self.ddof, "0 or more", "Use 0 for Lin's definition"))

    @property
    def formula(self) -> QuotientOfSums | None:
        return None if self.ddof else _CONCORDANCE

    @property
    def quotient_of_sums(self) -> QuotientOfSums | None:
        return _OF_SAMPLE if self.ddof == 1 and self.num_outputs == 1 else super().quotient_of_sums

    def value(self, counts: Totals, k: int) -> Number:
        sum_of = counts.sum_of(k)
        weight, offset = WEIGHT.evaluate(sum_of), _OFFSET.evaluate(sum_of)
        if isinstance(weight, float) or isinstance(offset, float) or weight <= self.ddof:
            return math.nan
        # Both sides times sum(w) (sum(w) - ddof); the last addend has (sum(w) - ddof) / sum(w) in it.
        below = _CONCORDANCE.below.evaluate(sum_of)
        correction = offset * offset * self.ddof / weight
        return quotient(_CONCORDANCE.above.evaluate(sum_of), below if isinstance(below, float) else below - correction)


@dataclass(frozen=True)
class CosineSimilarity(Metric):
    """Cosine of the angle between each row of predictions and of target, summed or averaged over the rows.

    `sum(w x·y / (|x| |y|))`, over `sum(w)` for the mean. Rows are scaled so that nothing overflows.

    Shapes: `preds` and `target` `(N, D)`, weights `(N,)`.

    Returns:
        float64, shape `()`. NaN where a row is all zeros or not finite, with a warning that says how many, and without
        data.

    Raises:
        ConfigError: an unknown `reduction`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[3.0, 4.0], [1.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 2.0]])
        >>> CosineSimilarity(reduction="mean")(preds, target)
        tensor(0.5000, dtype=torch.float64)

    Source: Salton and McGill, Introduction to Modern Information Retrieval (1983), section 6.3.
    """

    family = "correlation"
    higher_is_better = True
    exact_terms = False
    inputs = "vectors"
    examples = ({}, {"reduction": "mean"})
    unchanged_by = frozenset({"swap", "scale"})

    reduction: Annotated[Literal["sum", "mean"], '"sum" or "mean" over the rows.'] = "sum"

    def __post_init__(self) -> None:
        reduction: str | None = self.reduction
        if reduction in ("none", None):  # as in TorchMetrics
            do = "For the cosine of each row call torch.nn.functional.cosine_similarity"
            raise ConfigError(describe("reduction", repr(reduction), '"sum" or "mean"', do))
        super().__post_init__()

    @property
    def estimates(self) -> bool:
        return self.reduction == "mean"

    def tally(self, weighted: bool) -> Tally:
        return RowSums(Cosine(), weighted)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        return SampleTerms.of("cosine", Cosine()(batch).values[0][:, 0]) if self.reduction == "mean" else None

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return quotient_of_rows(self.reduction)

    def compute(self, counts: RowTotals) -> Tensor:
        return result(sums_or_means(counts, self.reduction))
