"""Signed errors, errors in relation to the values, and distances made of these."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, get_args

from torch import Tensor

from assay.metrics.aggregation.geometric_mean import geometric_mean
from assay.metrics.base import NOT_NEGATIVE
from assay.metrics.exact_arithmetic import quotient, quotient_of, result, root
from assay.metrics.output_metrics import (
    MEAN_SQUARED_ERROR,
    SQUARED_ERROR,
    SQUARES,
    TARGET_SPREAD,
    WEIGHT,
    YY,
    ElementwiseMetric,
    MeanTermMetric,
    Of,
    OutputMetric,
    target_spread,
)
from assay.tally.base import Tally
from assay.tally.composite import combine
from assay.tally.output import of_output
from assay.tally.sums.exact import Number
from assay.tally.sums.extremes import Extremes, Range
from assay.tally.sums.float_terms import (
    CanberraTerm,
    Equal,
    FractionalBiasTerm,
    LogAbsoluteError,
    NormalizedBiasTerm,
    WaveHedgesTerm,
    difference,
)
from assay.tally.sums.polynomials import QuotientOfSums, SumOf
from assay.tally.sums.terms import PREDS, TARGET, FloatTerm, Term
from assay.tally.sums.totals import Totals

_MEAN_ERROR = QuotientOfSums(SumOf(TARGET) - SumOf(PREDS), WEIGHT)

Normalization = Literal["mean", "range", "std", "l2"]


@dataclass(frozen=True)
class MeanError(ElementwiseMetric):
    """Mean error: how far the target lies above the predictions on average.

    `sum(w (target - preds)) / sum(w)`. Positive where predictions are too low.

    Example:
        >>> import torch
        >>> MeanError()(torch.tensor([2.5, 0.0, 2.0, 8.0]), torch.tensor([3.0, -0.5, 2.0, 7.0]))
        tensor(-0.2500, dtype=torch.float64)

    Source: Botchkarev, Interdisciplinary Journal of Information, Knowledge, and Management 14 (2019), 45-76.
    """

    higher_is_better = None
    examples = ({}, {"num_outputs": 2})
    terms = frozenset({PREDS, TARGET})
    per_sample_terms: ClassVar[Mapping[str, Of]] = {
        "target above prediction": lambda preds, target: difference(target, preds)
    }
    formula = _MEAN_ERROR


@dataclass(frozen=True)
class FractionalBias(MeanTermMetric):
    """Fractional bias: the mean error in relation to the mean of prediction and target, between -2 and 2.

    `sum(w 2 (target - preds) / (target + preds)) / sum(w)`, for values above 0. Equal values count as 0, also two
    zeros; infinite where `target` is `-preds`.

    Example:
        >>> import torch
        >>> FractionalBias()(torch.tensor([1.0, 4.0]), torch.tensor([3.0, 4.0]))
        tensor(0.5000, dtype=torch.float64)

    Source: Botchkarev, Interdisciplinary Journal of Information, Knowledge, and Management 14 (2019), 45-76.
    """

    term, term_name = FractionalBiasTerm(), "fractional bias"
    higher_is_better = None
    inputs = "positive pairs"


@dataclass(frozen=True)
class MeanNormalizedBias(MeanTermMetric):
    """Mean normalized bias: the mean of the errors in relation to the target.

    `sum(w (target - preds) / target) / sum(w)`.

    Raises:
        ConfigError: `num_outputs` below 1.
        InvalidValuesError: by `compute`, if a target was 0.

    Example:
        >>> import torch
        >>> MeanNormalizedBias()(torch.tensor([1.0, 3.0]), torch.tensor([2.0, 4.0]))
        tensor(0.3750, dtype=torch.float64)

    Source: Botchkarev, Interdisciplinary Journal of Information, Knowledge, and Management 14 (2019), 45-76.
    """

    term, term_name = NormalizedBiasTerm(), "normalized bias"
    higher_is_better = None
    inputs = "positive pairs"


@dataclass(frozen=True)
class TotalTermMetric(OutputMetric):
    """The sum of a term that is computed in floating point for each sample.

    Shapes: `preds` and `target` `(N, num_outputs)`; for one output any shape, every element of which is a sample.
    """

    value_range = NOT_NEGATIVE
    higher_is_better: ClassVar[bool | None] = False
    exact_terms: ClassVar[bool] = False
    term: ClassVar[FloatTerm]
    estimates = False

    @property
    def terms(self) -> frozenset[Term]:
        return frozenset({self.term})

    def value(self, counts: Totals, k: int) -> Number:
        return counts[self.term][k] if counts.count[k] else math.nan


@dataclass(frozen=True)
class CanberraDistance(TotalTermMetric):
    """Canberra distance between predictions and target.

    `sum(w |preds - target| / (|preds| + |target|))`, where two zeros count as 0.

    Example:
        >>> import torch
        >>> CanberraDistance()(torch.tensor([1.0, 4.0, 0.0]), torch.tensor([3.0, 4.0, 0.0]))
        tensor(0.5000, dtype=torch.float64)

    Source: SciPy, scipy.spatial.distance.canberra.
    """

    term = CanberraTerm()
    unchanged_by = frozenset({"swap"})


@dataclass(frozen=True)
class WaveHedgesDistance(TotalTermMetric):
    """Wave Hedges distance between predictions and target, for values above 0.

    `sum(w |preds - target| / max(preds, target))`, where equal values count as 0.

    Example:
        >>> import torch
        >>> WaveHedgesDistance()(torch.tensor([1.0, 4.0]), torch.tensor([2.0, 4.0]))
        tensor(0.5000, dtype=torch.float64)

    Source: Hedges, An empirical modification to linear wave theory, Proceedings of the Institution of Civil Engineers
    61 (1976); Cha, Comprehensive survey on distance measures between probability density functions (2007).
    """

    term = WaveHedgesTerm()
    inputs = "positive pairs"
    unchanged_by = frozenset({"swap"})


_ERROR, _SIZE = SQUARED_ERROR * WEIGHT, SumOf(TARGET) * SumOf(TARGET)
_NORMALIZED = {
    "mean": QuotientOfSums(_ERROR * SumOf(TARGET), _ERROR * _SIZE * _SIZE, "of the divisor"),  # with the sign of a mean
    "std": QuotientOfSums(_ERROR, TARGET_SPREAD, "of the quotient"),
    "l2": QuotientOfSums(SQUARED_ERROR, WEIGHT * SumOf(YY), "of the quotient"),
}


@dataclass(frozen=True)
class NormalizedRootMeanSquaredError(ElementwiseMetric):
    """Root mean squared error in relation to the size or the spread of the target.

    `sqrt(sum(w (preds - target)²) / sum(w)) / d`, with `d` the mean of the target, its range, its standard deviation or
    its Euclidean norm. A range leaves out samples of weight 0; other weights have no influence on it.

    Returns:
        float64, shape `()` or `(num_outputs,)`. Where `d` is 0: infinite, or NaN when there is no error either. With a
        mean below 0 it is negative.

    Raises:
        ConfigError: an unknown `normalization`, `num_outputs` below 1.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0.0, 1.0, 2.0, 3.0]), torch.tensor([0.0, 1.0, 2.0, 2.0])
        >>> NormalizedRootMeanSquaredError(normalization="range")(preds, target)
        tensor(0.2500, dtype=torch.float64)

    Source: Botchkarev, Interdisciplinary Journal of Information, Knowledge, and Management 14 (2019), 45-76.
    """

    value_range = NOT_NEGATIVE

    normalization: Annotated[Normalization, '"mean", "range", "std" (of these samples) or "l2" of the target.'] = "mean"

    inputs = "positive pairs"
    examples = tuple({"normalization": each} for each in get_args(Normalization))
    scale = "root"
    terms = SQUARES | {TARGET}

    def tally(self, weighted: bool) -> Tally:
        sums = super().tally(weighted)
        if self.normalization != "range":
            return sums
        extremes = Extremes("ignore", "target")
        outputs = self.num_outputs
        each = [extremes] if outputs == 1 else [of_output(extremes, k, outputs) for k in range(outputs)]
        return combine([sums, *each])

    @property
    def quotient_of_sums(self) -> QuotientOfSums | None:
        return _NORMALIZED.get(self.normalization) if self.num_outputs == 1 else None

    def compute(self, counts: Totals | tuple[Totals | Range, ...]) -> Tensor:
        totals, *ranges = counts if isinstance(counts, tuple) else (counts,)
        assert isinstance(totals, Totals)
        return result([self._normalized(totals, k, ranges) for k in range(self.num_outputs)])

    def _normalized(self, counts: Totals, k: int, ranges: list[Totals | Range]) -> Number:
        squares = quotient_of(MEAN_SQUARED_ERROR, counts, k)
        size = math.nan if isinstance(squares, float) else self._size(counts, k, ranges)
        if isinstance(squares, float) or isinstance(size, float):
            return math.nan
        if not size:
            return math.inf if squares else math.nan
        error = root(squares / (size * size if self.normalization in ("mean", "range") else size))
        return -error if size < 0 and self.normalization == "mean" else error

    def _size(self, counts: Totals, k: int, ranges: list[Totals | Range]) -> Number:
        """What the error of output `k` is divided by, or for "std" and "l2" the square of it, exactly."""
        if ranges:
            extent = ranges[k]
            assert isinstance(extent, Range)
            if not (math.isfinite(extent.largest) and math.isfinite(extent.smallest)):
                return math.nan
            return Fraction(extent.largest) - Fraction(extent.smallest)
        if self.normalization == "mean":
            return quotient(counts[TARGET][k], counts.weight[k])
        if self.normalization == "l2":
            return counts[YY][k]
        return quotient(target_spread(counts, k), counts.weight[k])


@dataclass(frozen=True)
class GeometricMeanAbsoluteError(ElementwiseMetric):
    """Geometric mean of the absolute errors; 0 where a prediction is right.

    `exp(sum(w log |preds - target|) / sum(w))`.

    Example:
        >>> import torch
        >>> GeometricMeanAbsoluteError()(torch.tensor([1.0, 8.0]), torch.tensor([2.0, 4.0]))
        tensor(2.0000, dtype=torch.float64)

    Source: Botchkarev, Interdisciplinary Journal of Information, Knowledge, and Management 14 (2019), 45-76.
    """

    value_range = NOT_NEGATIVE

    exact_terms = False
    inputs = "unequal pairs"
    unchanged_by = frozenset({"swap"})

    _logs: ClassVar[FloatTerm] = LogAbsoluteError()
    _zeros: ClassVar[FloatTerm] = Equal()
    scale = "exponential"

    @property
    def terms(self) -> frozenset[Term]:
        return frozenset({self._logs, self._zeros})

    def value(self, counts: Totals, k: int) -> Number:
        return geometric_mean(counts, k, self._logs, self._zeros)
