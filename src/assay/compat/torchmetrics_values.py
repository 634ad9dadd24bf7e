"""Values as TorchMetrics gives them: their shapes, dtypes, and numbers where assay has none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from assay.metrics.base import Metric

_REDUCED_LATER = ("AUROC", "AveragePrecision", "LogAUC")
"""Metrics whose classes without data count as 0 in the mean."""

_ZERO = (*_REDUCED_LATER, "ConfusionMatrix", "JaccardIndex", "ROC")
"""Metrics that are 0 where there is no data."""


def reduced_later(metric: Metric) -> Metric:
    """The metric of each class, where TorchMetrics has another mean of them."""
    several = getattr(metric, "num_classes", None) or getattr(metric, "num_labels", None)
    if type(metric).__name__ in _REDUCED_LATER and several and metric.average == "macro":
        return replace(metric, average=None)
    return metric


def converted(
    value: Any, name: str, metric: Metric, average: object, dtype: torch.dtype, device: torch.device
) -> Any:
    """A value of a metric of assay as TorchMetrics gives it."""
    if name == "ROC":
        return _curves(_number(value, True, dtype, device))
    if name == "PrecisionRecallCurve":
        return _curves(_number(value, False, dtype, device))
    value = _number(value, name in _ZERO, dtype, device)
    return value.mean() if average == "macro" and name in _REDUCED_LATER and value.ndim else value


def _number(value: Any, zero: bool, dtype: torch.dtype, device: torch.device) -> Any:
    if isinstance(value, tuple):
        return tuple(_number(each, zero, dtype, device) for each in value)
    if isinstance(value, Tensor):
        value = value.nan_to_num(0, torch.inf, -torch.inf) if zero else value
        return value.to(device, dtype if value.is_floating_point() else value.dtype)
    return value


def _curves(value: Any) -> Any:
    """The curves of several classes are lists."""
    *rates, thresholds = value
    several = isinstance(thresholds, tuple)
    ends = [each.clamp(max=1) for each in (thresholds if several else [thresholds])]
    return (*(list(each) if several else each for each in rates), ends if several else ends[0])
