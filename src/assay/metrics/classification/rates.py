"""Metrics that are quotients of true and false positives and negatives.

Counts are integers (exact sums where samples are weighted), and every value is rounded once. A sample of weight `w`
counts as `w` samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite, nan
from typing import Annotated

import numpy as np
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import SHARE, number
from assay.metrics.classification.label_metrics import (
    Answers,
    Array,
    Average,
    Outcomes,
    TopKMetric,
    fixed,
    mean,
    of_jaccard,
)
from assay.metrics.classification.samplewise import SamplewiseMetric, ZeroDivisionMetric
from assay.metrics.per_sample import SampleTerms
from assay.stats.intervals import Ends
from assay.tally.confusion import ClassTotals, Counts

__all__ = [
    "Accuracy",
    "BalancedAccuracy",
    "DiceScore",
    "F1Score",
    "FBetaScore",
    "HammingDistance",
    "JaccardIndex",
    "NegativePredictiveValue",
    "Precision",
    "Recall",
    "Specificity",
]


@dataclass(frozen=True, kw_only=True)
class Accuracy(SamplewiseMetric):
    """The share of labels that are right.

        micro:         sum_k M_kk / sum_kl M_kl
        of class k:    tp / (tp + fn)
        of a label:    (tp + tn) / (tp + tn + fp + fn)

    Micro: right labels / labels. Per class of multiclass data: tp / (tp + fn); per label: (tp + tn) / all.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> Accuracy(num_classes=3)(preds, target)
        tensor(0.7500, dtype=torch.float64)

    Source: Powers, Evaluation: from precision, recall and F-measure to ROC (2011), arXiv:2010.16061.
    """

    average: Average | None = "micro"

    unchanged_by = frozenset({"swap"})
    exact_terms = True
    has_wilson = True
    share = ("correct", "")
    pooled = "correct"
    by_support = True

    def ratio(self, of: Outcomes) -> tuple[Array, Array]:
        if self.num_classes is not None:
            return of.tp, of.support
        return of.tp + of.tn, of.total


@dataclass(frozen=True, kw_only=True)
class Precision(ZeroDivisionMetric):
    """The share of predictions of a class that are right.

    `tp / (tp + fp)`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> Precision(num_classes=3)(preds, target)
        tensor(0.8333, dtype=torch.float64)

    Source: van Rijsbergen, Information Retrieval (1979), chapter 7.
    """

    exact_terms = True
    has_wilson = True
    share = ("true positives", "predicted positives")
    pooled = "correct"

    def ratio(self, of: Outcomes) -> tuple[Array, Array]:
        return of.tp, of.tp + of.fp


@dataclass(frozen=True, kw_only=True)
class Recall(ZeroDivisionMetric):
    """The share of targets of a class that were found.

    `tp / (tp + fn)`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> Recall(num_classes=3)(preds, target)
        tensor(0.8333, dtype=torch.float64)

    Source: van Rijsbergen, Information Retrieval (1979), chapter 7.
    """

    exact_terms = True
    has_wilson = True
    share = ("true positives", "positives")
    pooled = "correct"
    by_support = True

    def ratio(self, of: Outcomes) -> tuple[Array, Array]:
        return of.tp, of.support


@dataclass(frozen=True, kw_only=True)
class Specificity(SamplewiseMetric):
    """The share of samples that are not of a class that were not taken for it.

    `tn / (tn + fp)`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> Specificity(num_classes=3)(preds, target)
        tensor(0.8889, dtype=torch.float64)

    Source: Yerushalmy, Public Health Reports 62 (1947), 1432-1449.
    """

    exact_terms = True
    has_wilson = True
    share = ("true negatives", "negatives")

    def ratio(self, of: Outcomes) -> tuple[Array, Array]:
        return of.tn, of.tn + of.fp


@dataclass(frozen=True, kw_only=True)
class NegativePredictiveValue(ZeroDivisionMetric):
    """The share of samples not predicted as a class that are not of it.

    `tn / (tn + fn)`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> NegativePredictiveValue(num_classes=3)(preds, target)
        tensor(0.8889, dtype=torch.float64)

    Source: Altman and Bland, BMJ 309 (1994), 102.
    """

    exact_terms = True
    has_wilson = True
    share = ("true negatives", "predicted negatives")

    def ratio(self, of: Outcomes) -> tuple[Array, Array]:
        return of.tn, of.tn + of.fn


@dataclass(frozen=True, kw_only=True)
class FBetaScore(ZeroDivisionMetric):
    """The weighted harmonic mean of precision and recall.

    `(1 + beta²) tp / ((1 + beta²) tp + beta² fn + fp)`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> FBetaScore(num_classes=3, beta=2.0)(preds, target)
        tensor(0.7963, dtype=torch.float64)

    Source: van Rijsbergen, Information Retrieval (1979), chapter 7.
    """

    beta: Annotated[float, "how much recall counts against precision."] = 1.0

    examples = ({"beta": 2.0}, {"beta": 0.1, "num_classes": 4, "multidim_average": "samplewise"})

    exact_terms = True
    pooled = "correct"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isfinite(self.beta) and self.beta >= 0):
            raise ConfigError(describe("beta", self.beta, "0 or more", "Give how much recall counts against precision"))

    @property
    def _square(self) -> Fraction:
        square = Fraction(self.beta) ** 2
        return square if self.multidim_average == "global" else square.limit_denominator(1 << 20)

    @property
    def factor(self) -> int:
        return sum(self._square.as_integer_ratio())

    def quotient(self, of: Answers) -> SampleTerms:
        square = self.beta**2
        mean = (square * of["positives"].float() + of["predicted positives"]) / (square + 1)
        return of.share("true positives", f"mean of positives and predicted positives, beta {self.beta}", mean)

    def ratio(self, of: Outcomes) -> tuple[Array, Array]:
        recall, precision = self._square.as_integer_ratio()  # what false negatives and false positives count
        hits = (recall + precision) * of.tp
        return hits, hits + recall * of.fn + precision * of.fp


@dataclass(frozen=True, kw_only=True)
class F1Score(ZeroDivisionMetric):
    """The harmonic mean of precision and recall.

    `2 tp / (2 tp + fn + fp)`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> F1Score(num_classes=3)(preds, target)
        tensor(0.7778, dtype=torch.float64)

    Source: van Rijsbergen, Information Retrieval (1979), chapter 7.
    """

    examples = (
        {},
        {"num_labels": 3, "average": "micro", "multidim_average": "samplewise"},
        {"num_labels": 3, "average": None, "zero_division": nan, "multidim_average": "samplewise"},
    )
    unchanged_by = frozenset({"swap"})
    exact_terms = True
    has_wilson = True
    share = ("true positives", "mean of positives and predicted positives")
    pooled = "correct"

    def ratio(self, of: Outcomes) -> tuple[Array, Array]:
        return 2 * of.tp, 2 * of.tp + of.fn + of.fp

    def of_class(self, of: Outcomes, confidence_level: float) -> Ends:
        return of_jaccard(of, confidence_level)


@dataclass(frozen=True, kw_only=True)
class DiceScore(F1Score):
    """The Dice coefficient of the pixels, voxels or samples of each class, over all samples together.

    `2 tp / (2 tp + fn + fp)`: the F1 score by the name it has in segmentation.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> DiceScore(num_classes=3)(preds, target)
        tensor(0.7778, dtype=torch.float64)

    Source: Dice, Ecology 26 (1945), 297-302.
    """


@dataclass(frozen=True, kw_only=True)
class JaccardIndex(ZeroDivisionMetric):
    """Intersection over union of what is of a class and what was predicted as it.

    `tp / (tp + fn + fp)`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> JaccardIndex(num_classes=3)(preds, target)
        tensor(0.6667, dtype=torch.float64)

    Source: Jaccard, New Phytologist 11 (1912), 37-50.
    """

    unchanged_by = frozenset({"swap"})
    exact_terms = True
    has_wilson = True
    share = ("true positives", "positives or predicted positives")

    def of_classes(self, of: Outcomes) -> Outcomes:
        return of if self.num_classes is None else replace(of, fp=of.fp * of.present)

    def ratio(self, of: Outcomes) -> tuple[Array, Array]:
        return of.tp, of.tp + of.fn + of.fp


@dataclass(frozen=True, kw_only=True)
class HammingDistance(SamplewiseMetric):
    """The share of labels that are wrong.

    1 - accuracy, for every average: per class of multiclass data `fn / (tp + fn)`, per label `(fp + fn) / all`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> HammingDistance(num_classes=3)(preds, target)
        tensor(0.1667, dtype=torch.float64)

    Returns:
        float64, shape `()`, or `(C,)` or `(num_labels,)` with `average=None`. 0 / 0 is 1 for a class with data, NaN
        without.

    Source: Hamming, Bell System Technical Journal 29 (1950), 147-160.
    """

    higher_is_better = False
    exact_terms = True
    has_wilson = True
    share = ("wrong", "")
    pooled = "wrong"
    by_support = True

    @property
    def undefined(self) -> float:
        return 1.0

    def ratio(self, of: Outcomes) -> tuple[Array, Array]:
        if self.num_classes is not None:
            return of.fn, of.support
        return of.fp + of.fn, of.total


@dataclass(frozen=True, kw_only=True)
class BalancedAccuracy(TopKMetric):
    """The mean recall of the classes that occur in the target.

    Mean of `tp / (tp + fn)` over classes with `tp + fn > 0`; binary data has the classes 0 and 1, and so has each label
    of multilabel data, over which the mean is taken.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> BalancedAccuracy(num_classes=3)(preds, target)
        tensor(0.8333, dtype=torch.float64)

    Source: Brodersen et al., The balanced accuracy and its posterior distribution, ICPR 2010.
    """

    value_range = SHARE

    higher_is_better = True

    def compute(self, counts: Counts | ClassTotals) -> Tensor:
        totals = counts.totals()
        labels = [self._mean_recall(*each) for each in zip(totals.hits, totals.target, strict=True)]
        values = [value for value in labels if value is not None]
        return number(mean(values, [1] * len(values)))

    @staticmethod
    def _mean_recall(hits: np.ndarray, target: np.ndarray) -> int | None:
        """The mean over classes in fixed point; None without any."""
        occurs = (target != 0).astype(bool)
        recalls = fixed(hits[occurs], target[occurs])
        return sum(recalls) // len(recalls) if recalls else None
