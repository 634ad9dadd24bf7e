"""Any metric of labels, for each group of samples, and how far its values lie apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import NOT_NEGATIVE, number
from assay.metrics.classification.label_metrics import LabelMetric
from assay.metrics.classification.rates import Recall
from assay.metrics.composition import WrapperMetric
from assay.metrics.fairness.rates import NumGroups
from assay.tally.base import Tally
from assay.tally.labels.confusion import ClassCounts, Confusion
from assay.tally.labels.groups import GroupCounts, group_tally


@dataclass(frozen=True)
class GroupwiseMetric(WrapperMetric):
    """A metric that is computed from the confusion matrix of each group.

    Shapes:
        The arguments of an update are those of the metric, and `groups=`: integers `(N,)`, the group of each
        sample, or one of each target.

    Rounding: as that of the metric.

    Raises:
        ConfigError: the metric is not computed from a confusion matrix; `num_groups` below 1.
        InvalidValuesError: by `compute`, if a group is not in `0 ... num_groups - 1`, or for what the metric refuses.
    """

    family = "fairness"
    examples = (
        {"metric": Recall(), "num_groups": 3},
        {"metric": Recall(num_classes=4, average=None), "num_groups": 3},
    )

    metric: Annotated[LabelMetric, "a metric of labels, such as `Recall()`, that is computed from a confusion matrix."]
    num_groups: NumGroups = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.metric, LabelMetric) or not isinstance(
            self.metric.tally(False), Confusion | ClassCounts
        ):
            do = "Use evaluate(slices=...) for any metric of groups"
            expected = "one that is computed from a confusion matrix"
            raise ConfigError(describe("metric", repr(self.metric), expected, do))
        self.tally(False)  # raises what the tally has to say

    def tally(self, weighted: bool) -> Tally:
        return group_tally(self.metric.labels, self.num_groups, weighted)


@dataclass(frozen=True)
class ByGroup(GroupwiseMetric):
    """The value of a metric for each group of samples.

    `{"group_0": value of the samples of group 0, ...}`.

    Returns:
        A dictionary from `"group_<number>"` to what the metric returns, float64 mostly; in ascending order of numbers.
        With `num_groups` every group has a value, NaN without data.

    Example:
        >>> import torch
        >>> from assay.metrics import Accuracy
        >>> preds, target = torch.tensor([1, 0, 1, 1]), torch.tensor([1, 0, 0, 1])
        >>> ByGroup(Accuracy())(preds, target, groups=torch.tensor([7, 7, 2, 2]))
        {'group_2': tensor(0.5000, dtype=torch.float64), 'group_7': tensor(1., dtype=torch.float64)}

    Source: the values are those of the metric.
    """

    def compute(self, counts: GroupCounts) -> dict[str, Any]:
        return {f"group_{group}": self.metric.compute(matrix) for group, matrix in counts.items()}


@dataclass(frozen=True)
class GroupDifference(GroupwiseMetric):
    """The largest difference between the values of a metric for two groups of samples; 0 if all are equal.

    `max(value of a group) - min(value of a group)`. Of a metric with several values, such as one for each class, the
    largest of their differences. Groups for which a value is undefined are left out of it.

    Returns:
        float64, shape `()`; NaN unless two groups have a value.

    Example:
        >>> import torch
        >>> from assay.metrics import Accuracy
        >>> preds, target = torch.tensor([1, 0, 1, 1]), torch.tensor([1, 0, 0, 1])
        >>> GroupDifference(Accuracy())(preds, target, groups=torch.tensor([7, 7, 2, 2]))
        tensor(0.5000, dtype=torch.float64)

    Source: S. Verma, J. Rubin, Fairness definitions explained, FairWare (2018).
    """

    higher_is_better = False
    defined_for = "two groups with data for which the metric is defined"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "higher_is_better", False)
        object.__setattr__(self, "value_range", NOT_NEGATIVE)

    def compute(self, counts: GroupCounts) -> Tensor:
        values = [list(_numbers(self.metric.compute(matrix))) for matrix in counts.values()]
        ranges = [_range([value for value in each if not math.isnan(value)]) for each in zip(*values, strict=True)]
        return number(max((each for each in ranges if each is not None), default=math.nan))


def _range(values: list[float]) -> float | None:
    return max(values) - min(values) if len(values) > 1 else None


def _numbers(value: Any) -> Iterator[float]:
    """All numbers of a value."""
    if isinstance(value, Tensor):
        yield from np.asarray(value.double()).ravel().tolist()
    else:
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)
