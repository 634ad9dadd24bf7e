"""The geometric mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from assay.metrics.base import Metric, number
from assay.metrics.exact_arithmetic import quotient, rounded
from assay.tally.base import Tally
from assay.tally.sums.float_terms import IsZero, LogValue
from assay.tally.sums.sums import Sums
from assay.tally.sums.terms import FloatTerm
from assay.tally.sums.totals import Totals


def geometric_mean(counts: Totals, k: int, logs: FloatTerm, zeros: FloatTerm) -> float:
    """The exponential of the mean of logarithms; 0 where a value with weight was 0."""
    if counts[zeros][k]:
        return 0.0 if not math.isnan(counts[zeros][k]) else math.nan
    mean = quotient(counts[logs][k], counts.weight[k])
    return math.exp(rounded(mean)) if not isinstance(counts[logs][k], float) else math.nan


@dataclass(frozen=True)
class GeometricMean(Metric):
    """Geometric mean of the values; 0 where one of them is 0.

    `exp(sum(w log x) / sum(w))`.

    Shapes: `preds` of any shape and real dtype, no `target`; weights `(N,)` or one each.

    Returns:
        float64, shape `()`; NaN where a value is NaN or infinite, and without data.

    Raises:
        InvalidValuesError: by `compute`, if a value was below 0.

    Example:
        >>> import torch
        >>> GeometricMean()(torch.tensor([1.0, 2.0, 4.0]))
        tensor(2.0000, dtype=torch.float64)

    Source: SciPy, scipy.stats.gmean.
    """

    family = "aggregation"
    inputs = "positive values"
    exact_terms = False

    _logs: ClassVar[FloatTerm] = LogValue()
    _zeros: ClassVar[FloatTerm] = IsZero()
    scale = "exponential"

    def tally(self, weighted: bool) -> Tally:
        return Sums(frozenset({self._logs, self._zeros}), None, weighted, ("preds",))

    def compute(self, counts: Totals) -> Tensor:
        return number(geometric_mean(counts, 0, self._logs, self._zeros))
