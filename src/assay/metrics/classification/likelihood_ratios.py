"""How much a prediction changes the odds of a class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from assay.metrics.base import NOT_NEGATIVE, number, vector
from assay.metrics.classification.label_metrics import (
    AverageField,
    LabelMetric,
    Outcomes,
    TopKField,
    averaged,
)
from assay.metrics.classification.ratio import Array, Ratio
from assay.tally.labels.confusion import ClassTotals, Counts


@dataclass(frozen=True, kw_only=True)
class LikelihoodRatioMetric(LabelMetric):
    """A quotient of two rates.

    Returns:
        float64, shape `()`, or `(C,)` or `(num_labels,)` with `average=None`. NaN where the rate that divides is 0 or a
        rate has no data, which averages over classes leave out. If `ignore_index` is a class, averages over classes
        leave it out, and its own value is NaN.

    Raises:
        ConfigError: arguments that contradict each other, an unknown average, a class count below 2.
        InvalidValuesError: by `compute`, if there was a NaN, a label out of range, or a score outside [0, 1] without
            `logits=True`.
    """

    value_range = NOT_NEGATIVE
    higher_is_better: ClassVar[bool | None] = True
    rates: ClassVar[tuple[Ratio, Ratio]]

    top_k: TopKField = 1
    average: AverageField = "macro"

    def compute(self, counts: Counts | ClassTotals) -> Tensor:
        values = averaged(self._quotient, self.outcomes(counts), None if self.binary else self.average, math.nan)
        return vector(values) if self.average is None and not self.binary else number(values[0])

    def _quotient(self, of: Outcomes) -> tuple[Array, Array]:
        (above, whole), (below, other) = (rate.weights()(of) for rate in self.rates)
        return above * other, below * whole


@dataclass(frozen=True, kw_only=True)
class PositiveLikelihoodRatio(LikelihoodRatioMetric):
    """Positive likelihood ratio: how many times as often a class is predicted where it is right as where it is wrong.

    `(tp / (tp + fn)) / (fp / (fp + tn))`: 1 for guessing. It multiplies the odds of a class when it is predicted.

    Example:
        >>> import torch
        >>> PositiveLikelihoodRatio()(torch.tensor([1, 1, 0, 1, 0]), torch.tensor([1, 1, 0, 0, 0]))
        tensor(3., dtype=torch.float64)

    Source: scikit-learn user guide, class likelihood ratios.
    """

    rates = (Ratio("tp", "tp + fn"), Ratio("fp", "fp + tn"))


@dataclass(frozen=True, kw_only=True)
class NegativeLikelihoodRatio(LikelihoodRatioMetric):
    """Negative likelihood ratio: how many times as often a class is not predicted where it is right as where it is not.

    `(fn / (tp + fn)) / (tn / (fp + tn))`: 1 for guessing, 0 where none is missed. It multiplies the odds of a class
    when it is not predicted.

    Example:
        >>> import torch
        >>> NegativeLikelihoodRatio()(torch.tensor([1, 0, 0, 1, 0]), torch.tensor([1, 1, 0, 0, 0]))
        tensor(0.7500, dtype=torch.float64)

    Source: scikit-learn user guide, class likelihood ratios.
    """

    rates = (Ratio("fn", "tp + fn"), Ratio("tn", "fp + tn"))
    higher_is_better = False
