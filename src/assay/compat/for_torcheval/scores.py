"""Metrics of scores with TorchEval's definitions: areas, curves and points of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from assay.compat.for_torcheval.labels import check
from assay.compat.for_torcheval.metric import CompatibleTorchEval
from assay.compat.for_torchmetrics.batches import NO_LABEL, labels_of
from assay.meter import Meter
from assay.metrics import AUROC, ROC, AveragePrecision, PrecisionRecallCurve
from assay.metrics.base import Metric

_tensor_utils: Any = import_module("torcheval.metrics.functional.tensor_utils")
_recall: Any = import_module("torcheval.metrics.functional.classification.recall_at_fixed_precision")

FLAT = 0
"""The size of data of one dimension; that of others is how many tasks, classes or labels there are."""


class _Scores(CompatibleTorchEval):
    """Scores of tasks, classes or labels, each ranked by itself as they are, and whether each is the target's."""

    def _metric(self, groups: int) -> Metric:
        """What is counted of so many tasks, classes or labels."""
        raise NotImplementedError

    def _check(self, input: Tensor, target: Tensor) -> None:
        """Raise what TorchEval raises for these shapes."""
        raise NotImplementedError

    def _meters_of(self, size: int) -> dict[str, Meter]:
        return {"value": Meter(value=self._metric(size or 1))}

    def _count(self, input: Tensor, target: Tensor) -> None:
        self._check(input, target)
        scores, labels = _rows(self.original.__name__, input, target)
        self._begin(FLAT if input.ndim == 1 else scores.shape[1])
        self.meters["value"].update(self._scores(scores), labels)

    def _scores(self, scores: Tensor) -> Tensor:
        return scores if scores.is_floating_point() else scores.float()

    def _shaped(self, values: Tensor) -> Tensor:
        """A value of each task, class or label as TorchEval gives it."""
        if self.original.__name__.startswith("Binary"):
            return values[0] if self._size == FLAT else values
        return values.mean() if self.average == "macro" else values


def _rows(name: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Scores and labels of the shape `(N, groups)`."""
    if name.startswith("Multiclass"):
        groups = torch.arange(input.shape[1], device=target.device)
        known = (target >= 0) & (target < input.shape[1])
        return input, torch.where(known[:, None], (target[:, None] == groups).long(), NO_LABEL)
    if name.startswith("Multilabel"):
        return input, labels_of(target)
    return (input[:, None], labels_of(target)[:, None]) if input.ndim == 1 else (input.T, labels_of(target).T)


class _AUPRC(_Scores):
    def _metric(self, groups: int) -> Metric:
        return AveragePrecision(num_labels=groups, average=None, logits=True)

    def _check(self, input: Tensor, target: Tensor) -> None:
        name = self.original.__name__.removesuffix("AUPRC").lower()
        sizes = {"binary": "num_tasks", "multiclass": "num_classes", "multilabel": "num_labels"}
        check("auprc", f"{name}_auprc")(input, target, getattr(self, sizes[name]))

    def _value(self) -> Any:
        return self._shaped(self._read().nan_to_num(0.0))


class _MulticlassAUROC(_Scores):
    def _metric(self, groups: int) -> Metric:
        return AUROC(num_labels=groups, average=None, logits=True)

    def _check(self, input: Tensor, target: Tensor) -> None:
        check("auroc", "multiclass_auroc")(input, target, self.num_classes)

    def _value(self) -> Any:
        return self._shaped(self._read().nan_to_num(0.5))


class _BinaryAUROC(CompatibleTorchEval):
    """The area of each task, whose scores have weights of their own."""

    dtype = torch.float64

    def _meters_of(self, size: int) -> dict[str, Meter]:
        return {f"value{task}": Meter(weighted=True, value=AUROC(logits=True)) for task in range(size)}

    def _count(self, input: Tensor, target: Tensor, weight: Tensor | None = None) -> None:
        check("auroc", "binary_auroc")(input, target, self.num_tasks, weight)
        scores, labels = _rows("Binary", input if input.is_floating_point() else input.float(), target)
        weights = torch.ones_like(scores) if weight is None else weight.reshape(input.shape)
        self._begin(self.num_tasks)
        for task, meter in enumerate(self.meters.values()):
            of_task = weights[:, task] if weight is None else weights if weights.ndim == 1 else weights[task]
            meter.update(scores[:, task], labels[:, task], weights=of_task)

    def _value(self) -> Any:
        areas = torch.stack([self._read(name) for name in self.meters]).nan_to_num(0.5)
        return areas[0] if self.num_tasks == 1 else areas


class _Curve(_Scores):
    """The points of the precision-recall curve of each."""

    def _metric(self, groups: int) -> Metric:
        return PrecisionRecallCurve(num_labels=groups, logits=True)

    def _check(self, input: Tensor, target: Tensor) -> None:
        name = self.original.__name__
        if name.startswith("Binary"):
            check("precision_recall_curve", "binary_precision_recall_curve")(input, target)
        elif name.startswith("Multiclass"):
            check("precision_recall_curve", "multiclass_precision_recall_curve")(input, target, self.num_classes)
        else:
            check("precision_recall_curve", "multilabel_precision_recall_curve")(input, target, self.num_labels)

    def _curves(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        return [
            (
                precision.float(),
                torch.cat([recall[:-1].nan_to_num(1.0), recall.new_zeros(1)]).float(),
                thresholds.float(),
            )
            for precision, recall, thresholds in zip(*self._read(), strict=True)
        ]

    def _value(self) -> Any:
        curves = self._curves()
        return curves[0] if self._size == FLAT else tuple(map(list, zip(*curves, strict=True)))


class _RecallAtPrecision(_Curve):
    """The largest recall with a minimum precision, and the largest threshold with it."""

    def _check(self, input: Tensor, target: Tensor) -> None:
        super()._check(input, target)
        if not isinstance(self.min_precision, float) or not 0 <= self.min_precision <= 1:
            raise ValueError(f"Expected min_precision to be a float in the [0, 1] range but got {self.min_precision}.")

    def _value(self) -> Any:
        points = [_recall._recall_at_precision(*each, self.min_precision) for each in self._curves()]
        return points[0] if self._size == FLAT else tuple(map(list, zip(*points, strict=True)))


class _Binned(_Scores):
    """Scores of which only counts at each threshold: how many thresholds they reach is the score that is counted."""

    def _steps(self) -> Tensor:
        """A score for each number of thresholds that are reached."""
        count = len(self.threshold)
        return torch.arange(count + 1, dtype=torch.float32, device="cpu") / count

    def _scores(self, scores: Tensor) -> Tensor:
        scores = super()._scores(scores)
        thresholds = self.threshold.to(scores.device, scores.dtype)
        reached = torch.searchsorted(thresholds, scores.contiguous(), right=True)
        return self._steps().to(scores.device)[reached].masked_fill(scores.isnan(), torch.nan)

    def _thresholds(self) -> tuple[float, ...]:
        return tuple(self._steps()[1:].tolist())

    def _metric(self, groups: int) -> Metric:
        return PrecisionRecallCurve(num_labels=groups, thresholds=self._thresholds())

    def _check(self, input: Tensor, target: Tensor) -> None:
        name = self.original.__name__
        if name == "BinaryBinnedAUPRC":
            check("binned_auprc", "binary_binned_auprc")(input, target, self.num_tasks, self.threshold)
        elif name.startswith("Binary"):
            check("precision_recall_curve", "binary_precision_recall_curve")(input, target)
        elif name.startswith("Multiclass"):
            check("precision_recall_curve", "multiclass_precision_recall_curve")(input, target, self.num_classes)
        else:
            check("precision_recall_curve", "multilabel_precision_recall_curve")(input, target, self.num_labels)

    def _points(self) -> tuple[Tensor, Tensor]:
        """Precision and recall of each; a precision of nothing is 1, and the last recall 0."""
        precision, recall, _ = self._read()
        return precision.nan_to_num(1.0), torch.cat([recall[:, :-1], torch.zeros_like(recall[:, -1:])], 1)

    def _value(self) -> Any:
        precision, recall = self._points()
        if self._size == FLAT:
            return precision[0], recall[0], self.threshold
        return list(precision), list(recall), self.threshold


class _BinnedAUPRC(_Binned):
    def _value(self) -> Any:
        precision, recall = self._points()
        areas = [_tensor_utils._riemann_integral(*each) for each in zip(recall, precision, strict=True)]
        values = torch.stack(areas).nan_to_num(0.0)
        if self.original.__name__.startswith("Binary"):
            return values[0] if self.num_tasks == 1 else values
        return self._shaped(values)


class _BinnedAUROC(_Binned):
    """The area under the points at the thresholds and (0, 0), as a share of that of the rates at the first one."""

    def _metric(self, groups: int) -> Metric:
        return ROC(num_labels=groups, thresholds=self._thresholds())

    def _check(self, input: Tensor, target: Tensor) -> None:
        if self.original.__name__.startswith("Binary"):
            check("binned_auroc", "binary_binned_auroc")(input, target, self.num_tasks, self.threshold)
        else:
            check("binned_auroc", "multiclass_binned_auroc")(input, target, self.num_classes)

    def _value_dtype(self) -> torch.dtype:
        return torch.float64 if self.original.__name__.startswith("Binary") else torch.float32

    def _value(self) -> Any:
        fpr, tpr, _ = self._read()
        fpr, tpr = (torch.nn.functional.pad(each.nan_to_num(0.0), (1, 0)) for each in (fpr, tpr))
        most = fpr[:, -1] * tpr[:, -1]
        areas = torch.where(most == 0, 0.5, torch.trapezoid(tpr, fpr) / most)
        one = self.original.__name__.startswith("Multiclass") and self.average == "macro"
        return areas.mean() if one else areas, self.threshold

    def compute(self) -> Any:
        value = super().compute()
        return (value[0], self.threshold) if self._has_data() else value  # which is no value, and keeps its dtype


OF_SCORES: dict[str, type[CompatibleTorchEval]] = {
    "BinaryAUROC": _BinaryAUROC,
    "MulticlassAUROC": _MulticlassAUROC,
    **dict.fromkeys(("BinaryAUPRC", "MulticlassAUPRC", "MultilabelAUPRC"), _AUPRC),
    **{f"{task}PrecisionRecallCurve": _Curve for task in ("Binary", "Multiclass", "Multilabel")},
    **{f"{task}RecallAtFixedPrecision": _RecallAtPrecision for task in ("Binary", "Multilabel")},
    **{f"{task}BinnedPrecisionRecallCurve": _Binned for task in ("Binary", "Multiclass", "Multilabel")},
    **{f"{task}BinnedAUPRC": _BinnedAUPRC for task in ("Binary", "Multiclass", "Multilabel")},
    **{f"{task}BinnedAUROC": _BinnedAUROC for task in ("Binary", "Multiclass")},
}
"""The class that counts each metric of scores."""
