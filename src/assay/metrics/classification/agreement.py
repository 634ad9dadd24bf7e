"""Agreement of predicted and true labels beyond chance, read from integer counts and rounded once."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import nan
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import CORRELATION, number
from assay.metrics.classification.label_metrics import LabelMetric
from assay.metrics.classification.ratio_metric import FEWEST_OF_CLASS_FOR_INTERVAL
from assay.metrics.exact_arithmetic import over_root, rounded
from assay.stats.intervals import Ends, fisher_z
from assay.tally.base import Tally
from assay.tally.labels.confusion import ClassTotals, Confusion, Counts

KappaWeights = Literal["linear", "quadratic"]
_Slopes: TypeAlias = tuple[float, NDArray[np.float64]]


class AgreementMetric(LabelMetric):
    """A function of the confusion matrix from -1 to 1, with its interval where each class has some samples."""

    needs_many = True

    @abstractmethod
    def slopes(self, matrix: NDArray[np.float64]) -> _Slopes:
        """The value of a confusion matrix, and how far a sample in each cell moves it; NaN for 0 / 0."""

    @property
    def closed_form(self) -> str:
        is_of_one = self.num_labels is None and self.ignore_index is None
        return "delta method on the confusion matrix" if is_of_one else ""

    def interval(self, counts: Counts | ClassTotals, confidence_level: float, rows: int) -> Ends | None:
        """The interval by the delta method, symmetric on the scale of ``atanh``.

        Half a sample is shared out to each class, over its row, so that no mistake is no proof that there are none.

        Source: Fleiss, Cohen & Everitt, Psychological Bulletin 72 (1969), 323-327.
        """
        if not isinstance(counts, Counts) or not self.closed_form or counts.values.sum() > rows:
            return None
        counted = counts.values[0].astype(np.float64)
        if min(counted.sum(0).min(), counted.sum(1).min()) < FEWEST_OF_CLASS_FOR_INTERVAL:
            return None
        matrix = counted + 0.5 / len(counted)
        (value, slopes), size = self.slopes(matrix), matrix.sum()
        variance = float(np.sum(matrix * slopes**2) - np.sum(matrix * slopes) ** 2 / size) * size / (size - 1)
        if not abs(value) < 1:
            return None
        plain = self.slopes(counted)[0]
        ends = fisher_z(value, max(0.0, variance) / (1 - value**2) ** 2, confidence_level)
        return None if ends is None else (min(ends[0], plain), max(ends[1], plain))

    def caution(self, counts: Counts | ClassTotals) -> str:
        return self.few_mistakes(counts)

    def without_interval(self, counts: Any) -> str:
        return f"a class has fewer than {FEWEST_OF_CLASS_FOR_INTERVAL} samples or predictions"


@dataclass(frozen=True, kw_only=True)
class MatthewsCorrCoef(AgreementMetric):
    """The Matthews correlation coefficient: the correlation of predicted and true class.

    With `s` samples, `c` of them right, and `t_k`, `p_k` of class `k` in target and preds:
    `(c s - sum(p_k t_k)) / sqrt((s² - sum(p_k²)) (s² - sum(t_k²)))`; 0 where the root is 0, as one of them is constant.

    The counts of several labels are pooled.

    Returns:
        float64, shape `()`, in [-1, 1]; NaN without data.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> MatthewsCorrCoef(num_classes=3)(preds, target)
        tensor(0.7000, dtype=torch.float64)

    Source: Gorodkin, Computational Biology and Chemistry 28 (2004), 367-374.
    """

    value_range = CORRELATION

    higher_is_better = True
    unchanged_by = frozenset({"swap"})

    def compute(self, counts: Counts | ClassTotals) -> Tensor:
        totals = counts.totals()
        target, predicted, hits = (each.sum(0) for each in (totals.target, totals.predicted, totals.hits))
        size = target.sum()
        if not size:
            return number(nan)
        covariance = hits.sum() * size - (target * predicted).sum()
        spread = (size * size - (predicted * predicted).sum()) * (size * size - (target * target).sum())
        return number(over_root(Fraction(covariance), Fraction(spread)) if spread else 0.0)

    def slopes(self, matrix: NDArray[np.float64]) -> _Slopes:
        size, hits = matrix.sum(), matrix.trace()
        target, predicted = matrix.sum(1)[:, None], matrix.sum(0)
        covariance = hits * size - float(target[:, 0] @ predicted)
        of_target, of_predicted = size**2 - float(np.sum(target**2)), size**2 - float(predicted @ predicted)
        root = np.sqrt(of_target * of_predicted)
        moved = size * np.eye(len(matrix)) + hits - predicted[:, None] - target.T
        spread = (size - predicted) / of_predicted + (size - target) / of_target
        return covariance / root, (moved - covariance * spread) / root


@dataclass(frozen=True, kw_only=True)
class CohenKappa(AgreementMetric):
    """Cohen's kappa: the agreement of predicted and true class beyond what chance gives.

    `1 - sum(w_ij O_ij) / sum(w_ij E_ij)`, where `O` is the confusion matrix, `E` the one expected of independent labels
    with the same totals, and `w_ij` is 1 off the diagonal, `|i - j|` (linear) or `(i - j)²` (quadratic). NaN where
    chance cannot disagree: one class has all targets and all predictions.

    Raises:
        ConfigError: multilabel data, unknown weights, a class count below 2 or too large for a matrix.
        InvalidValuesError: by `compute`, if there was a NaN, a label out of range, or a score outside [0, 1] without
            `logits=True`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> CohenKappa(num_classes=3, weights="quadratic")(preds, target)
        tensor(0.8000, dtype=torch.float64)

    Source: Cohen, Psychological Bulletin 70 (1968), 213-220.
    """

    value_range = CORRELATION

    higher_is_better = True
    unchanged_by = frozenset({"swap"})

    num_labels: Annotated[int | None, "None: multilabel data has no kappa."] = None
    weights: Annotated[
        KappaWeights | None,
        'how disagreements weigh: None, "linear" or "quadratic". With weights the whole confusion matrix is counted, '
        "`8 (C + 3) (C + 2)` bytes, and 70 times that for weighted samples.",
    ] = None

    examples = ({}, {"weights": "linear"}, {"weights": "quadratic"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_labels is not None:
            do = "Compute it for each label on its own"
            raise ConfigError(describe("num_labels", self.num_labels, "None: kappa is of two raters of one item", do))

    def tally(self, weighted: bool) -> Tally:
        return super().tally(weighted) if self.weights is None else Confusion(self.labels, weighted)

    def compute(self, counts: Counts | ClassTotals) -> Tensor:
        totals = counts.totals()
        target, predicted = totals.target[0], totals.predicted[0]
        size = target.sum()
        if isinstance(counts, ClassTotals) or self.weights is None:
            observed = size - totals.hits.sum()
            expected = size * size - (target * predicted).sum()
        else:
            observed = _by_distance(counts.values[0], 1 if self.weights == "linear" else 2)
            expected = (_linear if self.weights == "linear" else _quadratic)(target, predicted)
        return number(rounded(1 - Fraction(observed * size, expected)) if expected else nan)

    def slopes(self, matrix: NDArray[np.float64]) -> _Slopes:
        apart = np.abs(np.subtract.outer(np.arange(len(matrix)), np.arange(len(matrix)))).astype(np.float64)
        weights = apart ** {None: 0, "linear": 1, "quadratic": 2}[self.weights] * (apart > 0)
        size, observed = matrix.sum(), np.sum(weights * matrix)
        target, predicted = matrix.sum(1), matrix.sum(0)
        expected = float(target @ weights @ predicted)
        moved = (weights @ predicted)[:, None] + target @ weights
        value = 1 - size * observed / expected
        return value, ((1 - value) * moved - observed - size * weights) / expected


def _by_distance(matrix: np.ndarray, power: int) -> int:
    """`sum(|i - j| ** power M_ij)`, exactly: one sum for each diagonal."""
    size = len(matrix)
    return sum(abs(k) ** power * int(np.trace(matrix, k)) for k in range(1 - size, size))


def _linear(target: np.ndarray, predicted: np.ndarray) -> Any:
    """`sum(|i - j| t_i p_j)`: what lies on two sides of each border between classes."""
    below, under = np.cumsum(target), np.cumsum(predicted)
    return (below * (under[-1] - under) + under * (below[-1] - below)).sum()


def _quadratic(target: np.ndarray, predicted: np.ndarray) -> Any:
    """`sum((i - j)² t_i p_j)`."""
    i = np.arange(len(target)).astype(object)
    cross = (i * target).sum() * (i * predicted).sum()
    return (i * i * target).sum() * predicted.sum() + (i * i * predicted).sum() * target.sum() - 2 * cross
