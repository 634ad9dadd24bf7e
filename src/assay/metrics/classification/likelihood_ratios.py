"""How much a prediction changes the odds of a class."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from assay.metrics.base import NOT_NEGATIVE
from assay.metrics.classification.label_metrics import Outcomes, RatioMetric

__all__ = ["NegativeLikelihoodRatio", "PositiveLikelihoodRatio"]


@dataclass(frozen=True, kw_only=True)
class LikelihoodRatioMetric(RatioMetric):
    """A quotient of two rates.

    Returns:
        float64, shape `()`, or `(C,)` or `(num_labels,)` with `average=None`. NaN where the rate that divides is 0 or a
        rate has no data, which averages over classes leave out.
    """

    value_range = NOT_NEGATIVE

    @property
    def undefined(self) -> float:
        return math.nan


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

    exact_terms = True

    def ratio(self, of: Outcomes) -> tuple[np.ndarray, np.ndarray]:
        return of.tp * (of.fp + of.tn), of.fp * of.support


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

    exact_terms = True

    higher_is_better = False

    def ratio(self, of: Outcomes) -> tuple[np.ndarray, np.ndarray]:
        return of.fn * (of.fp + of.tn), of.tn * of.support
