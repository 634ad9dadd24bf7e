"""Metrics that are quotients of true and false positives and negatives.

Counts are integers (exact sums where samples are weighted), and every value is rounded once. A sample of weight `w`
counts as `w` samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite, nan
from typing import Annotated, Any, ClassVar

import numpy as np
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import SHARE, number
from assay.metrics.classification.label_metrics import Answers, Average, LabelMetric, TopKField, bits_of, fixed, mean
from assay.metrics.classification.ratio import Ratio
from assay.metrics.classification.ratio_metric import FEWEST_OF_CLASS_FOR_INTERVAL, RatioMetric
from assay.metrics.per_sample import SampleTerms
from assay.stats.control_variates import stratified_interval
from assay.stats.intervals import Ends, clopper_pearson, wilson
from assay.tally.labels.confusion import ClassTotals, Counts

JACCARD = Ratio("tp", "tp + fn + fp")


@dataclass(frozen=True, kw_only=True)
class Accuracy(RatioMetric):
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

    Returns:
        float64, shape `()`, or `(C,)` or `(num_labels,)` with `average=None`. 0 / 0 is 0 for a class with data, NaN
        without. If `ignore_index` is a class, averages over classes leave it out, and its own value is NaN.

    Source: Powers, Evaluation: from precision, recall and F-measure to ROC (2011), arXiv:2010.16061.
    """

    ratio = Ratio("tp + tn", "tp + fp + fn + tn")
    multiclass_ratio = Ratio("tp", "tp + fn")
    share_of_samples = ratio
    samples_of_class = ("correct", "")
    pooled = "correct"
    higher_is_better = True
    unchanged_by = frozenset({"swap"})

    average: Average | None = "micro"
    zero_division: ClassVar[float] = 0.0  # type: ignore[misc]


@dataclass(frozen=True, kw_only=True)
class Precision(RatioMetric):
    """The share of predictions of a class that are right.

    `tp / (tp + fp)`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> Precision(num_classes=3)(preds, target)
        tensor(0.8333, dtype=torch.float64)

    Source: van Rijsbergen, Information Retrieval (1979), chapter 7.
    """

    ratio = Ratio("tp", "tp + fp")
    share_of_samples = ratio
    samples_of_class = ("true positives", "predicted positives")
    pooled = "correct"
    higher_is_better = True


@dataclass(frozen=True, kw_only=True)
class Recall(RatioMetric):
    """The share of targets of a class that were found.

    `tp / (tp + fn)`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> Recall(num_classes=3)(preds, target)
        tensor(0.8333, dtype=torch.float64)

    Source: van Rijsbergen, Information Retrieval (1979), chapter 7.
    """

    ratio = Ratio("tp", "tp + fn")
    share_of_samples = ratio
    samples_of_class = ("true positives", "positives")
    pooled = "correct"
    higher_is_better = True


@dataclass(frozen=True, kw_only=True)
class Specificity(RatioMetric):
    """The share of samples that are not of a class that were not taken for it.

    `tn / (tn + fp)`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> Specificity(num_classes=3)(preds, target)
        tensor(0.8889, dtype=torch.float64)

    Returns:
        float64, shape `()`, or `(C,)` or `(num_labels,)` with `average=None`. 0 / 0 is 0 for a class with data, NaN
        without. If `ignore_index` is a class, averages over classes leave it out, and its own value is NaN.

    Source: Yerushalmy, Public Health Reports 62 (1947), 1432-1449.
    """

    ratio = Ratio("tn", "tn + fp")
    share_of_samples = ratio
    samples_of_class = ("true negatives", "negatives")
    higher_is_better = True

    zero_division: ClassVar[float] = 0.0  # type: ignore[misc]


@dataclass(frozen=True, kw_only=True)
class NegativePredictiveValue(RatioMetric):
    """The share of samples not predicted as a class that are not of it.

    `tn / (tn + fn)`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> NegativePredictiveValue(num_classes=3)(preds, target)
        tensor(0.8889, dtype=torch.float64)

    Source: Altman and Bland, BMJ 309 (1994), 102.
    """

    ratio = Ratio("tn", "tn + fn")
    share_of_samples = ratio
    samples_of_class = ("true negatives", "predicted negatives")
    higher_is_better = True


@dataclass(frozen=True, kw_only=True)
class FBetaScore(RatioMetric):
    """The weighted harmonic mean of precision and recall.

    `(1 + beta²) tp / ((1 + beta²) tp + beta² fn + fp)`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> FBetaScore(num_classes=3, beta=2.0)(preds, target)
        tensor(0.7963, dtype=torch.float64)

    Source: van Rijsbergen, Information Retrieval (1979), chapter 7.
    """

    ratio = Ratio("tp + square tp", "tp + square tp + square fn + fp")
    pooled = "correct"
    higher_is_better = True
    examples = ({"beta": 2.0}, {"beta": 0.1, "num_classes": 4, "multidim_average": "samplewise"})

    beta: Annotated[float, "how much recall counts against precision."] = 1.0

    @property
    def square(self) -> Fraction:
        """The square of beta."""
        if not (isfinite(self.beta) and self.beta >= 0):
            raise ConfigError(describe("beta", self.beta, "0 or more", "Give how much recall counts against precision"))
        return Fraction(self.beta) ** 2

    def terms_of_class(self, of: Answers) -> SampleTerms:
        square = self.beta**2
        mean = (square * of["positives"].float() + of["predicted positives"]) / (square + 1)
        return of.share("true positives", f"mean of positives and predicted positives, beta {self.beta}", mean)


@dataclass(frozen=True, kw_only=True)
class F1Score(RatioMetric):
    """The harmonic mean of precision and recall.

    `2 tp / (2 tp + fn + fp)`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> F1Score(num_classes=3)(preds, target)
        tensor(0.7778, dtype=torch.float64)

    Source: van Rijsbergen, Information Retrieval (1979), chapter 7.
    """

    ratio = Ratio("2 tp", "2 tp + fn + fp")
    share_of_samples = JACCARD
    samples_of_class = ("true positives", "mean of positives and predicted positives")
    pooled = "correct"
    higher_is_better = True
    unchanged_by = frozenset({"swap"})
    examples = (
        {},
        {"num_labels": 3, "average": "micro", "multidim_average": "samplewise"},
        {"num_labels": 3, "average": None, "zero_division": nan, "multidim_average": "samplewise"},
    )


@dataclass(frozen=True, kw_only=True)
class DiceScore(RatioMetric):
    """The Dice coefficient of the pixels, voxels or samples of each class, over all samples together.

    `2 tp / (2 tp + fn + fp)`: the F1 score by the name it has in segmentation.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> DiceScore(num_classes=3)(preds, target)
        tensor(0.7778, dtype=torch.float64)

    Source: Dice, Ecology 26 (1945), 297-302.
    """

    ratio = F1Score.ratio
    share_of_samples = F1Score.share_of_samples
    samples_of_class = F1Score.samples_of_class
    pooled = F1Score.pooled
    higher_is_better = True
    unchanged_by = F1Score.unchanged_by
    examples = F1Score.examples


@dataclass(frozen=True, kw_only=True)
class JaccardIndex(RatioMetric):
    """Intersection over union of what is of a class and what was predicted as it.

    `tp / (tp + fn + fp)`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> JaccardIndex(num_classes=3)(preds, target)
        tensor(0.6667, dtype=torch.float64)

    Source: Jaccard, New Phytologist 11 (1912), 37-50.
    """

    ratio = JACCARD
    share_of_samples = ratio
    samples_of_class = ("true positives", "positives or predicted positives")
    predictions_of_ignored = False
    higher_is_better = True
    unchanged_by = frozenset({"swap"})


@dataclass(frozen=True, kw_only=True)
class HammingDistance(RatioMetric):
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

    ratio = Ratio("fp + fn", "tp + fp + fn + tn")
    multiclass_ratio = Ratio("fn", "tp + fn")
    share_of_samples = ratio
    samples_of_class = ("wrong", "")
    pooled = "wrong"
    higher_is_better = False

    zero_division: ClassVar[float] = 1.0  # type: ignore[misc]
    unweighted = 0.0


@dataclass(frozen=True, kw_only=True)
class BalancedAccuracy(LabelMetric):
    """The mean recall of the classes that occur in the target.

    Mean of `tp / (tp + fn)` over classes with `tp + fn > 0`; binary data has the classes 0 and 1, and so has each label
    of multilabel data, over which the mean is taken. `adjusted=True` gives `(value - 1 / k) / (1 - 1 / k)` with the k
    classes that occur: 0 for guesses, and 1 if all are right.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> BalancedAccuracy(num_classes=3)(preds, target)
        tensor(0.8333, dtype=torch.float64)

    Source: Brodersen et al., The balanced accuracy and its posterior distribution, ICPR 2010.
    """

    higher_is_better = True

    top_k: TopKField = 1
    adjusted: Annotated[bool, "subtract the value of guesses, and scale so that 1 is still the best."] = False
    needs_many = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.adjusted and (self.num_labels is not None or self.top_k != 1):
            name = "num_labels" if self.num_labels is not None else "top_k"
            do = "Leave adjusted out: what guesses give is known of one class per sample and one prediction"
            raise ConfigError(describe(name, getattr(self, name), "none, with adjusted=True", do))

    @property
    def value_range(self) -> tuple[float, float]:  # type: ignore[override]
        """The least and the largest number that a value can have."""
        return (-1.0, 1.0) if self.adjusted else SHARE

    def compute(self, counts: Counts | ClassTotals) -> Tensor:
        totals = counts.totals()
        bits = bits_of(totals.target.flat)
        if self.adjusted:
            return number(self._adjusted(totals))
        labels = [self._mean_recall(*each, bits) for each in zip(totals.hits, totals.target, strict=True)]
        values = [value for value in labels if value is not None]
        return number(mean(values, [1] * len(values), bits))

    def _adjusted(self, totals: ClassTotals) -> float:
        """The value over that of guesses; NaN of one class."""
        recalls = [
            Fraction(int(hits), int(target))
            for hits, target in zip(totals.hits[0], totals.target[0], strict=True)
            if target
        ]
        if len(recalls) < 2:
            return nan
        chance = Fraction(1, len(recalls))
        return float((sum(recalls, Fraction()) / len(recalls) - chance) / (1 - chance))

    @property
    def closed_form(self) -> str:
        is_of_one = self.num_labels is None and self.ignore_index is None
        return "Wilson's intervals of recalls, joined" if is_of_one and not self.adjusted else ""

    def interval(self, counts: Counts | ClassTotals, confidence_level: float, rows: int) -> Ends | None:
        """The interval of a mean of independent shares, from Wilson's of each."""
        return self._joined(counts, confidence_level, rows, wilson)

    def safe_interval(self, counts: Counts | ClassTotals, confidence_level: float, rows: int) -> Ends | None:
        """The same from Clopper and Pearson's intervals."""
        return self._joined(counts, confidence_level, rows, clopper_pearson)

    def caution(self, counts: Counts | ClassTotals) -> str:
        return self.few_mistakes(counts)

    def _joined(
        self, counts: Counts | ClassTotals, confidence_level: float, rows: int, of_share: Callable[..., Ends]
    ) -> Ends | None:
        totals = counts.totals()
        hits, target = (each[0].tolist() for each in (totals.hits, totals.target))
        if not self.closed_form or min(target) < FEWEST_OF_CLASS_FOR_INTERVAL or sum(target) > rows:
            return None
        ends = [of_share(hit, size, confidence_level) for hit, size in zip(hits, target, strict=True)]
        recalls = [hit / size for hit, size in zip(hits, target, strict=True)]
        return stratified_interval([1 / len(recalls)] * len(recalls), recalls, ends)[1]

    def without_interval(self, counts: Any) -> str:
        return f"a class has fewer than {FEWEST_OF_CLASS_FOR_INTERVAL} samples"

    @staticmethod
    def _mean_recall(hits: np.ndarray, target: np.ndarray, bits: int) -> int | None:
        """The mean over classes in fixed point; None without any."""
        occurs = (target != 0).astype(bool)
        recalls = fixed(hits[occurs], target[occurs], bits)
        return sum(recalls) // len(recalls) if recalls else None
