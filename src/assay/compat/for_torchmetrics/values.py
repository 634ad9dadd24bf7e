"""Values as TorchMetrics gives them: their shapes, dtypes, and numbers where assay has none."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from assay.metrics.classification.ranking import ROC

_REDUCED_LATER = ("AUROC", "AveragePrecision", "LogAUC")
"""Metrics whose classes without data count as 0 in the mean."""

_ZERO = (*_REDUCED_LATER, "ConfusionMatrix", "JaccardIndex", "ROC")
"""Metrics that are 0 where there is no data."""

_EMPTY = {"Max": -torch.inf, "Min": torch.inf, "Sum": 0.0}
"""Values of no data."""

_FITS_ALL = 6e4
"""Smaller numbers are no overflow in any dtype, for which torch raises where it makes a tensor of a number."""

_NO_THRESHOLD = 1e6
"""The threshold where no point of a curve has the minimum."""

_OF_DATA = (
    *("BinaryCalibrationError", "BinaryHingeLoss", "ConcordanceCorrCoef", "ContinuousRankedProbabilityScore"),
    *("ExplainedVariance", "JensenShannonDivergence", "KLDivergence", "LogCoshError", "MeanAbsoluteError"),
    *("MeanAbsolutePercentageError", "MeanSquaredError", "MeanSquaredLogError", "MinkowskiDistance"),
    *("MulticlassHingeLoss", "NormalizedRootMeanSquaredError", "PearsonCorrCoef", "Perplexity", "R2Score"),
    *("RelativeSquaredError", "SymmetricMeanAbsolutePercentageError", "TweedieDevianceScore"),
    "WeightedMeanAbsolutePercentageError",
)
"""Classes whose functions compute in the dtype of the data; the others give the default one."""

_WIDENED = ("ExplainedVariance", "JensenShannonDivergence", "KLDivergence", "R2Score")
"""Classes whose states become float64 with a batch of float64."""

_AT_A_MINIMUM = ("PrecisionAtFixedRecall", "RecallAtFixedPrecision")


def reduced_later(metric: Any) -> Any:
    """The metric of each class, where TorchMetrics has another mean of them."""
    several = getattr(metric, "num_classes", None) or getattr(metric, "num_labels", None)
    if type(metric).__name__ in _REDUCED_LATER and several and metric.average == "macro":
        return replace(metric, average=None)
    return metric


def has_thresholds(metric: Any) -> bool:
    """Whether the last part of a value is scores of the data."""
    return type(metric).__name__ in ("ROC", "PrecisionRecallCurve", *_AT_A_MINIMUM) and metric.thresholds is None


def original_value(value: Any, metric: Any, average: object) -> Any:
    """A value of a metric of assay as the number, or numbers, that TorchMetrics gives.

    Args:
        value: the value of `metric`.
        metric: what `reduced_later` gave.
        average: the argument of this name.
    """
    name = type(metric).__name__
    if name in ("ROC", "PrecisionRecallCurve"):
        return _curves(value, metric)
    if name in _AT_A_MINIMUM:
        return value[0].nan_to_num(0.0), value[1].masked_fill(value[1].isinf(), torch.nan)
    if name == "EditDistance":
        return value.long() if metric.reduction == "sum" else value
    if name in _EMPTY and metric.nan_policy != "propagate":
        return value.nan_to_num(_EMPTY[name], torch.inf, -torch.inf)
    if name in _ZERO and not (_is_without_nan(value) or _absent_is_left_out(metric)):
        value = value.nan_to_num(_without_data(metric), torch.inf, -torch.inf)
    return value.nanmean() if name in _REDUCED_LATER and average == "macro" and value.ndim else value


def _is_without_nan(value: Any) -> bool:
    """Whether that is known at once: of counts, and of one number."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return isinstance(value, Tensor)
    return not value.ndim and math.isfinite(value.item())


def _without_data(metric: Any) -> float:
    """The value of a class without data."""
    ignores_class = metric.ignore_index in range(metric.num_classes or 0)
    return 0.0 if ignores_class else getattr(metric, "zero_division", 0.0)


def _absent_is_left_out(metric: Any) -> bool:
    exact = getattr(metric, "thresholds", None) is None
    return type(metric).__name__ == "AveragePrecision" and exact and metric.num_classes is not None


def _curves(value: Any, metric: Any) -> Any:
    """The curves of several classes are lists."""
    if not isinstance(value[-1], tuple):
        return _curve(metric, *value)
    curves = [_curve(metric, *each) for each in zip(*value, strict=True)]
    return tuple(map(list, zip(*curves, strict=True)))


def _curve(metric: Any, first: Tensor, second: Tensor, thresholds: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rates without data are 0, and the largest threshold is 1; a recall ends at 0, and without data it is 1 or NaN."""
    if isinstance(metric, ROC):
        return first.nan_to_num(0.0), second.nan_to_num(0.0), thresholds.clamp(max=1)
    if second.ndim == 1 and second[-1].item() == 0:  # there are positives
        return first, second, thresholds
    alone = metric.thresholds is None and metric.num_classes is None
    recall = second.nan_to_num(1.0) if alone else second
    return first, torch.cat([recall[..., :-1], torch.zeros_like(recall[..., -1:])], -1), thresholds


def operating_points(fpr: Any, tpr: Any, thresholds: Any, minimum: float, sensitivity: bool) -> tuple[Tensor, Tensor]:
    """The point of each curve with the largest sensitivity, or specificity, where the other is at least a minimum."""
    if isinstance(fpr, Tensor) and fpr.ndim == 1:
        return _operating_point(fpr, tpr, thresholds, minimum, sensitivity)
    of_class = thresholds if isinstance(thresholds, list) else [thresholds] * len(fpr)
    points = [_operating_point(*each, minimum, sensitivity) for each in zip(fpr, tpr, of_class, strict=True)]
    values, at = zip(*points, strict=True)
    return torch.stack(values), torch.stack(at)


def _operating_point(
    fpr: Tensor, tpr: Tensor, thresholds: Tensor, minimum: float, sensitivity: bool
) -> tuple[Tensor, Tensor]:
    tnr = fpr.neg().add_(1)  # `1 - fpr` takes several times as long
    value, bound = (tpr, tnr) if sensitivity else (tnr, tpr)
    best = int(value.masked_fill(bound < minimum, -1).argmax())  # a tensor as an index takes several times as long
    if bound[best] < minimum:  # so is each
        return torch.zeros_like(value[0]), torch.full_like(thresholds[0], _NO_THRESHOLD)
    return value[best], thresholds[best]


def dtype_of_function(name: str, data: Iterable[Any]) -> torch.dtype:
    """The dtype of the value of these data by the function of a class of TorchMetrics."""
    found = [each.dtype for each in data if isinstance(each, Tensor) and each.is_floating_point()]
    is_of_data = name in _OF_DATA and found
    return functools.reduce(torch.promote_types, found) if is_of_data else torch.get_default_dtype()


def dtype_of_class(name: str, dtype: torch.dtype, has_float64: bool) -> torch.dtype:
    """The dtype of the value of a class whose dtype is this one."""
    return torch.float64 if has_float64 and name in _WIDENED else dtype


def number_in(value: float, dtype: torch.dtype) -> Tensor:
    """A number on the CPU, rounded to a dtype as a tensor of float64 is."""
    if abs(value) < _FITS_ALL:
        return torch.scalar_tensor(value, dtype=dtype, device="cpu")
    return torch.scalar_tensor(value, dtype=torch.float64, device="cpu").to(dtype)


def placed(value: Any, dtype: torch.dtype, device: torch.device) -> Any:
    """A value, or values, on a device, in a dtype where they are floats."""
    if isinstance(value, Tensor):
        return value.to(device, dtype if value.is_floating_point() else value.dtype)
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(placed(each, dtype, device) for each in value)
    if isinstance(value, dict):
        return {name: placed(each, dtype, device) for name, each in value.items()}
    return value
