"""Criteria of fairness: how far rates of groups of samples lie apart, computed from exact counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nan
from typing import Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import SHARE, Examples, number
from assay.metrics.classification.label_metrics import Average, LabelMetric, Outcomes
from assay.metrics.classification.ratio import Ratio
from assay.metrics.classification.ratio_metric import RatioMetric
from assay.tally.base import Tally
from assay.tally.labels.confusion import Counts
from assay.tally.labels.groups import GroupCounts, group_tally

NumGroups = Annotated[
    int | None,
    "groups are `0 ... num_groups - 1`, and one table is counted on the device. Without it groups are any integers, "
    "and labels are kept.",
]
SELECTION = Ratio("tp + fp", "tp + fp + fn + tn")
"""The share of samples that are predicted as the class."""
TRUE_POSITIVES, FALSE_POSITIVES = Ratio("tp", "tp + fn"), Ratio("fp", "fp + tn")
RIGHT_LABELS, RIGHT_CLASSES = Ratio("tp + tn", "tp + fp + fn + tn"), Ratio("tp", "tp + fn")


@dataclass(frozen=True, kw_only=True)
class SelectionRate(RatioMetric):
    """The share of samples that are predicted as positive, or as each class.

    `(tp + fp) / all`.

    Returns:
        float64, shape `()`, or `(C,)` or `(num_labels,)` with `average=None`; NaN without data.

    Example:
        >>> import torch
        >>> SelectionRate()(torch.tensor([0.2, 0.9, 0.7, 0.8]), torch.tensor([0, 1, 0, 1]))
        tensor(0.7500, dtype=torch.float64)

    Source: S. Verma, J. Rubin, Fairness definitions explained, FairWare (2018).
    """

    family = "fairness"
    ratio = SELECTION
    share_of_samples = SELECTION
    samples_of_class = ("predicted positives", "")

    average: Average | None = None
    multidim_average: ClassVar[str] = "global"  # type: ignore[misc]
    zero_division: ClassVar[float] = 0.0  # type: ignore[misc]


@dataclass(frozen=True, kw_only=True)
class GroupRateMetric(LabelMetric):
    """A metric that compares rates of groups of samples.

    The task is multiclass with `num_classes`, multilabel with `num_labels`, else binary. Of several classes or labels,
    the one counts that differs most.

    Shapes:
        As for any metric of labels, such as `Recall`, and `groups=`: integers `(N,)`, the group of each sample,
        or one of each target.

    Returns:
        float64, shape `()`, in [0, 1]; NaN unless two groups have a rate. Groups for which a rate is 0 / 0 are left out
        of it.

    Raises:
        ConfigError: arguments that contradict each other, a class count below 2, `num_groups` below 1.
        InvalidValuesError: by `compute`, if there was a NaN, a label or a group out of range, or a score outside [0, 1]
            without `logits=True`.
    """

    value_range = SHARE

    family = "fairness"
    inputs: ClassVar[str] = "labels"
    rates: ClassVar[tuple[Ratio, ...]]
    divides: ClassVar[bool] = False
    """Whether the lowest rate is divided by the highest, or else subtracted from it."""
    higher_is_better: ClassVar[bool | None] = False
    examples: ClassVar[Examples] = ({"num_groups": 3}, {})
    defined_for = "two groups with data for which the rate is defined"

    num_groups: NumGroups = None

    def tally(self, weighted: bool) -> Tally:
        return group_tally(self.labels, self.num_groups, weighted)

    def compute(self, counts: GroupCounts) -> Tensor:
        spreads = list(self._spreads(list(counts.values()))) if counts else []
        worst = min if self.divides else max
        return number(float(worst(spreads)) if spreads else nan)

    def _of_groups(self, groups: Sequence[Counts]) -> Outcomes:
        """The outcomes of all groups `(groups, classes or labels)`; those of labels are found at once."""
        if self.num_classes is not None:
            each = [self.outcomes(matrix) for matrix in groups]
        else:
            each = [self.outcomes(Counts(np.concatenate([matrix.values for matrix in groups])))]
        counts = zip(*((of.tp, of.fp, of.fn, of.tn, of.present) for of in each), strict=True)
        tp, fp, fn, tn, present = (np.concatenate(part).reshape(len(groups), -1) for part in counts)
        return Outcomes(tp, fp, fn, tn, present)

    def _spreads(self, groups: Sequence[Counts]) -> Iterator[Fraction]:
        """How far each rate of each class is apart."""
        of = self._of_groups(groups)
        for rate in self.rates:
            above, below = rate.weights()(of)
            for pairs in zip(above.T.tolist(), below.T.tolist(), strict=True):
                rates = [pair for pair in zip(*pairs, strict=True) if pair[1]]
                if len(rates) < 2 or (self.divides and not any(count for count, _ in rates)):
                    continue
                low, high = _extremes(rates)
                yield low / high if self.divides else high - low


def _extremes(rates: Sequence[tuple[int, int]]) -> tuple[Fraction, Fraction]:
    """The lowest and the highest quotient: that of floats tells which few may be it."""
    quotients = [above / below for above, below in rates]
    lowest, highest = min(quotients), max(quotients)
    low = min(Fraction(*rate) for rate, each in zip(rates, quotients, strict=True) if each == lowest)
    return low, max(Fraction(*rate) for rate, each in zip(rates, quotients, strict=True) if each == highest)


@dataclass(frozen=True, kw_only=True)
class DemographicParityDifference(GroupRateMetric):
    """The difference between the highest and the lowest selection rate of a group; 0 if the rates are equal.

        max_g r_g - min_g r_g,  r_g = (tp_g + fp_g) / n_g

    The selection rate is the share of a group's samples that are predicted as positive.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([1, 0, 1, 1]), torch.tensor([1, 0, 0, 1])
        >>> DemographicParityDifference()(preds, target, groups=torch.tensor([7, 7, 2, 2]))
        tensor(0.5000, dtype=torch.float64)

    Source: S. Verma, J. Rubin, Fairness definitions explained, FairWare (2018).
    """

    rates = (SELECTION,)


@dataclass(frozen=True, kw_only=True)
class DemographicParityRatio(GroupRateMetric):
    """The lowest selection rate of a group, divided by the highest; 1 if the rates are equal.

        min_g r_g / max_g r_g,  r_g = (tp_g + fp_g) / n_g

    The selection rate is the share of a group's samples that are predicted as positive. NaN where nothing is.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([1, 0, 1, 1]), torch.tensor([1, 0, 0, 1])
        >>> DemographicParityRatio()(preds, target, groups=torch.tensor([7, 7, 2, 2]))
        tensor(0.5000, dtype=torch.float64)

    Source: S. Verma, J. Rubin, Fairness definitions explained, FairWare (2018).
    """

    rates = (SELECTION,)
    divides = True
    higher_is_better = True


@dataclass(frozen=True, kw_only=True)
class EqualOpportunityDifference(GroupRateMetric):
    """The difference between the highest and the lowest recall of a group; 0 if the recalls are equal.

        max_g r_g - min_g r_g,  r_g = tp_g / (tp_g + fn_g)

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([1, 0, 1, 1]), torch.tensor([1, 1, 0, 1])
        >>> EqualOpportunityDifference()(preds, target, groups=torch.tensor([7, 7, 2, 2]))
        tensor(0.5000, dtype=torch.float64)

    Source: M. Hardt, E. Price, N. Srebro, Equality of opportunity in supervised learning (2016), arXiv:1610.02413.
    """

    rates = (TRUE_POSITIVES,)


@dataclass(frozen=True, kw_only=True)
class EqualOpportunityRatio(GroupRateMetric):
    """The lowest recall of a group, divided by the highest; 1 if the recalls are equal. NaN if none is found.

        min_g r_g / max_g r_g,  r_g = tp_g / (tp_g + fn_g)

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([1, 0, 1, 1]), torch.tensor([1, 1, 0, 1])
        >>> EqualOpportunityRatio()(preds, target, groups=torch.tensor([7, 7, 2, 2]))
        tensor(0.5000, dtype=torch.float64)

    Source: M. Hardt, E. Price, N. Srebro, Equality of opportunity in supervised learning (2016), arXiv:1610.02413.
    """

    rates = (TRUE_POSITIVES,)
    divides = True
    higher_is_better = True


@dataclass(frozen=True, kw_only=True)
class EqualizedOddsDifference(GroupRateMetric):
    """The larger of two differences between groups: of true positive rates, and of false positive rates.

        max(max_g tpr_g - min_g tpr_g, max_g fpr_g - min_g fpr_g)
        tpr_g = tp_g / (tp_g + fn_g),  fpr_g = fp_g / (fp_g + tn_g)

    Each is that between the highest and the lowest rate of a group; 0 if both rates are equal.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([1, 0, 1, 1]), torch.tensor([1, 0, 0, 1])
        >>> EqualizedOddsDifference()(preds, target, groups=torch.tensor([7, 7, 2, 2]))
        tensor(1., dtype=torch.float64)

    Source: M. Hardt, E. Price, N. Srebro, Equality of opportunity in supervised learning (2016), arXiv:1610.02413.
    """

    rates = (TRUE_POSITIVES, FALSE_POSITIVES)


@dataclass(frozen=True, kw_only=True)
class EqualizedOddsRatio(GroupRateMetric):
    """The smaller of two ratios between groups: of true positive rates, and of false positive rates.

        min(min_g tpr_g / max_g tpr_g, min_g fpr_g / max_g fpr_g)
        tpr_g = tp_g / (tp_g + fn_g),  fpr_g = fp_g / (fp_g + tn_g)

    Each is the lowest rate of a group, divided by the highest; 1 if both rates are equal. A ratio of rates
    that are all 0 is left out.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([1, 0, 1, 1]), torch.tensor([1, 0, 0, 1])
        >>> EqualizedOddsRatio()(preds, target, groups=torch.tensor([7, 7, 2, 2]))
        tensor(0., dtype=torch.float64)

    Source: M. Hardt, E. Price, N. Srebro, Equality of opportunity in supervised learning (2016), arXiv:1610.02413.
    """

    rates = (TRUE_POSITIVES, FALSE_POSITIVES)
    divides = True
    higher_is_better = True


@dataclass(frozen=True, kw_only=True)
class SubgroupAccuracyDifference(GroupRateMetric):
    """The difference between the highest and the lowest accuracy of a group; 0 if they are equal.

        max_g a_g - min_g a_g,  a_g = right labels of group g / labels of group g

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([1, 0, 1, 1]), torch.tensor([1, 0, 0, 1])
        >>> SubgroupAccuracyDifference()(preds, target, groups=torch.tensor([7, 7, 2, 2]))
        tensor(0.5000, dtype=torch.float64)

    Source: S. Verma, J. Rubin, Fairness definitions explained, FairWare (2018).
    """

    unchanged_by = frozenset({"swap"})

    @property
    def rates(self) -> tuple[Ratio, ...]:  # type: ignore[override]
        return (RIGHT_LABELS if self.num_classes is None else RIGHT_CLASSES,)

    def _of_groups(self, groups: Sequence[Counts]) -> Outcomes:
        return super()._of_groups(groups).pooled()


@dataclass(frozen=True, kw_only=True)
class GroupStatRates(GroupRateMetric):
    """The shares of true positives, false positives, true negatives and false negatives in each group, binary data.

    `{"group_0": (tp, fp, tn, fn) / samples, ...}`.

    Returns:
        A dictionary from `"group_<number>"` to float64 of shape `(4,)`, in ascending order of numbers. With
        `num_groups` every group has a value, NaN without data.

    Raises:
        ConfigError: `num_classes` or `num_labels`; `num_groups` below 1.
        InvalidValuesError: by `compute`, if there was a NaN, a label or a group out of range, or a score outside [0, 1]
            without `logits=True`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([1, 0, 1, 1]), torch.tensor([1, 0, 0, 1])
        >>> GroupStatRates()(preds, target, groups=torch.tensor([7, 7, 2, 2]))["group_2"]
        tensor([0.5000, 0.5000, 0.0000, 0.0000], dtype=torch.float64)

    Source: Fawcett, Pattern Recognition Letters 27 (2006), 861-874.
    """

    higher_is_better = None
    examples = ({"num_groups": 3},)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_classes is not None or self.num_labels is not None:
            do = "Use ByGroup(StatScores(...)) for the counts of several classes"
            raise ConfigError(describe("GroupStatRates", "num_classes or num_labels", "binary data", do))

    def compute(self, counts: GroupCounts) -> dict[str, Tensor]:  # type: ignore[override]
        return {f"group_{group}": _shares(self.outcomes(matrix)) for group, matrix in counts.items()}


def _shares(of: Outcomes) -> Tensor:
    total = of.total[0]
    values = [each[0] / total if total else nan for each in (of.tp, of.fp, of.tn, of.fn)]
    return torch.tensor(values, dtype=torch.float64, device="cpu")
