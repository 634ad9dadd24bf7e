"""The best value of one rate where another one reaches a minimum, and the threshold that gives it."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import SHARE, vector
from assay.metrics.classification.ranking import roc_points
from assay.metrics.classification.ranking_metric import RankingMetric, Rankings, first_number
from assay.tally.scores import curves
from assay.tally.scores.curves import Array, Ranking


class OperatingPoint(NamedTuple):
    """The best value under a condition, and the threshold that gives it: scores that reach it are positive.

    With `logits=True` the threshold is a logit (multiclass: log-odds), whose sigmoid is the probability.
    """

    value: Tensor
    threshold: Tensor


@dataclass(frozen=True, kw_only=True)
class OperatingPointMetric(RankingMetric):
    """The highest value of one rate among the thresholds at which another reaches a minimum.

    Returns:
        `OperatingPoint(value, threshold)`: float64 of shape `()`, or `(classes,)`. NaN without positives or negatives.
    """

    higher_is_better = True
    part_ranges: ClassVar[Mapping[str, tuple[float, float]]] = {"value": SHARE}

    @property
    def minimum(self) -> float:
        """What the other rate must reach."""
        value: float = getattr(self, self._field)
        return value

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.minimum <= 1:
            raise ConfigError(describe(self._field, self.minimum, "a rate in [0, 1]", "Give a share, not per cent"))

    needs: ClassVar[str] = "positives and negatives"

    @property
    def _field(self) -> str:
        return next(name for name in self.__dataclass_fields__ if name.startswith("min_"))

    @abstractmethod
    def rates(self, ranking: Ranking) -> tuple[Array, ...]:
        """The rate to be high, the one with a minimum, and the thresholds."""

    def compute(self, counts: Rankings) -> OperatingPoint:
        points = [self._best(ranking) for ranking in counts]
        values, thresholds = ([point[k] for point in points] for k in range(2))
        self._warn_of_missing([k for k, value in enumerate(values) if math.isnan(value)], self.needs)
        shaped: Callable[[list[float]], Tensor] = first_number if self._single else vector
        return OperatingPoint(shaped(values), shaped(thresholds))

    def _best(self, ranking: Ranking) -> tuple[float, float]:
        wanted, limited, thresholds = self.rates(ranking)
        if not ranking.num_positives or (self.needs != "positives" and not ranking.num_negatives):
            return math.nan, math.nan
        allowed = np.flatnonzero((limited >= self.minimum) & ~np.isnan(wanted))
        if not len(allowed):
            return 0.0, math.inf
        best = allowed[np.lexsort([thresholds[allowed], limited[allowed], wanted[allowed]])[-1]]
        return float(wanted[best]), float(thresholds[best])


@dataclass(frozen=True, kw_only=True)
class RecallAtFixedPrecision(OperatingPointMetric):
    """The highest recall at a precision of at least `min_precision`, and its threshold.

        max_t recall(t) where precision(t) >= min_precision

    Among equal recalls the higher precision decides, then the higher threshold. Where no threshold reaches the
    precision, the value is 0 and the threshold infinite: nothing is predicted. From a histogram, the thresholds are the
    lower ends of its bins.

    Returns:
        `OperatingPoint(value, threshold)`: float64 of shape `()`, or `(classes,)`. NaN without positives.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1])
        >>> RecallAtFixedPrecision(min_precision=0.9)(preds, target).value
        tensor(0.5000, dtype=torch.float64)

    Source: TorchMetrics, `RecallAtFixedPrecision`.
    """

    min_precision: Annotated[float, "the least precision, in [0, 1]."]

    examples = ({"min_precision": 0.5}, {"min_precision": 0.5, "exact_up_to": 0})
    needs = "positives"

    def rates(self, ranking: Ranking) -> tuple[Array, ...]:
        recall = curves.ratios(ranking.hits, ranking.num_positives)
        return _points(ranking, recall, curves.precisions(ranking), ranking.thresholds)


@dataclass(frozen=True, kw_only=True)
class PrecisionAtFixedRecall(OperatingPointMetric):
    """The highest precision at a recall of at least `min_recall`, and its threshold.

        max_t precision(t) where recall(t) >= min_recall

    As `RecallAtFixedPrecision`, with the two exchanged.

    Returns:
        `OperatingPoint(value, threshold)`: float64 of shape `()`, or `(classes,)`. NaN without positives.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1])
        >>> PrecisionAtFixedRecall(min_recall=0.75)(preds, target).value
        tensor(0.6667, dtype=torch.float64)

    Source: TorchMetrics, `PrecisionAtFixedRecall`.
    """

    min_recall: Annotated[float, "the least recall, in [0, 1]."]

    examples = ({"min_recall": 0.5}, {"min_recall": 0.5, "exact_up_to": 0})
    needs = "positives"

    def rates(self, ranking: Ranking) -> tuple[Array, ...]:
        recall = curves.ratios(ranking.hits, ranking.num_positives)
        return _points(ranking, curves.precisions(ranking), recall, ranking.thresholds)


@dataclass(frozen=True, kw_only=True)
class SensitivityAtSpecificity(OperatingPointMetric):
    """The highest sensitivity (recall) at a specificity of at least `min_specificity`, and its threshold.

        max_t sensitivity(t) where specificity(t) >= min_specificity

    Predicting nothing, with an infinite threshold, has specificity 1, so there always is a value. Ties as in
    `RecallAtFixedPrecision`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1])
        >>> SensitivityAtSpecificity(min_specificity=0.5)(preds, target).value
        tensor(1., dtype=torch.float64)

    Source: TorchMetrics, `SensitivityAtSpecificity`.
    """

    min_specificity: Annotated[float, "the least specificity, in [0, 1]."]

    examples = ({"min_specificity": 0.5}, {"min_specificity": 0.5, "exact_up_to": 0})

    def rates(self, ranking: Ranking) -> tuple[Array, ...]:
        _, tpr, thresholds = roc_points(ranking)
        return tpr, _specificity(ranking), thresholds


@dataclass(frozen=True, kw_only=True)
class SpecificityAtSensitivity(OperatingPointMetric):
    """The highest specificity at a sensitivity (recall) of at least `min_sensitivity`, and its threshold.

        max_t specificity(t) where sensitivity(t) >= min_sensitivity

    As `SensitivityAtSpecificity`, with the two exchanged.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1])
        >>> SpecificityAtSensitivity(min_sensitivity=0.75)(preds, target).value
        tensor(0.5000, dtype=torch.float64)

    Source: TorchMetrics, `SpecificityAtSensitivity`.
    """

    min_sensitivity: Annotated[float, "the least sensitivity, in [0, 1]."]

    examples = ({"min_sensitivity": 0.5}, {"min_sensitivity": 0.5, "exact_up_to": 0})

    def rates(self, ranking: Ranking) -> tuple[Array, ...]:
        _, tpr, thresholds = roc_points(ranking)
        return _specificity(ranking), tpr, thresholds


def _specificity(ranking: Ranking) -> Array:
    """The share of the negatives below every threshold, beginning with the infinite one where scores are thresholds."""
    below = ranking.num_negatives - ranking.alarms[ranking.points]
    if not ranking.at_thresholds:
        below = np.append(ranking.num_negatives, below)
    return curves.ratios(below, ranking.num_negatives)


def _points(ranking: Ranking, *columns: Array) -> tuple[Array, ...]:
    """The entries of columns that are points of a curve."""
    return tuple(column[ranking.points] for column in columns)
