"""Metrics of Ignite of scores, of points of clusters and of boxes, all of which are kept."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

import assay.metrics
from assay.compat.for_ignite.metric import CompatibleIgniteMetric, check_classes, counts, pair, quietly
from assay.compat.for_ignite.pairs import column, zeros_and_ones
from assay.compat.for_ignite.values import OneMetric
from assay.compat.for_torchmetrics.batches import NO_LABEL, labels_of
from assay.errors import AssayWarning, describe
from assay.integrations.optional_packages import import_package
from assay.meter import Meter
from assay.metrics import ROC, MeanAveragePrecision
from assay.metrics.base import Metric

_metrics: Any = import_package("ignite.metrics", "metrics of its names")
_averages: Any = import_package("ignite.metrics.mean_average_precision", "metrics of its names")
_detection: Any = import_package(
    "ignite.metrics.vision.object_detection_average_precision_recall", "metrics of its names"
)


class _RocCurve(OneMetric):
    """The curve of scores of one class, without the points that lie between two others on a line."""

    def _metric(self, size: int) -> Metric:
        return ROC(logits=True)  # of any size

    def _batch(self, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        self._check_shape((preds, target))
        preds, target = column(preds, target)
        return preds if preds.is_floating_point() else preds.float(), zeros_and_ones(target)

    def _value(self, meter: Meter) -> Any:
        ranking = counts(meter)[0]
        sums, levels = [ranking.alarms, ranking.hits], ranking.thresholds
        if len(levels) > 2:
            inside = np.diff(sums[0], 2).astype(bool) | np.diff(sums[1], 2).astype(bool)
            corners = np.concatenate([[True], inside, [True]])
            sums, levels = [each[corners] for each in sums], levels[corners]
        rates = [np.concatenate([[0], each]) / (int(each[-1]) or np.nan) for each in sums]
        return tuple(torch.from_numpy(each) for each in (*rates, np.concatenate([[np.inf], levels])))


class _MeanAveragePrecision(CompatibleIgniteMetric):
    """The mean over classes, or labels, of the average precision of their scores; the flag says there is one class."""

    sized = True

    def _meter_of(self, size: int, flag: int) -> Meter:
        return Meter(value=ROC(num_labels=None if size == 1 else size, logits=True))

    def _count(self, output: Any) -> None:
        preds, target = pair(output)
        self._check_shape((preds, target))
        self._check_type((preds, target))
        several = self._type == "multiclass"
        if several:
            check_classes(target, preds.shape[1])
        target = _one_hot(target, preds.shape[1]) if several else zeros_and_ones(target)
        classes = 1 if self._type == "binary" or self.class_mean == "micro" else preds.shape[1]
        self._begin(classes, int(self._type == "binary"))
        if classes == 1:
            preds, target = preds.flatten(), target.flatten()
        self.meter.update(preds, target)

    def _value(self, meter: Meter) -> Any:
        rankings = counts(meter)
        averages = torch.stack([self._average(each) for each in rankings])
        if self._layout is not None and self._layout[1]:
            return float(averages[0])
        if self.class_mean is None:
            return averages
        if self.class_mean != "weighted":
            return averages.mean()
        positives = torch.tensor([float(each.num_positives) for each in rankings], device="cpu", dtype=torch.float64)
        return (positives * averages).sum() / positives.sum()

    def _average(self, ranking: Any) -> Tensor:
        hits, alarms = (torch.from_numpy(each.astype(np.float64)) for each in (ranking.hits, ranking.alarms))
        recall = hits / ranking.num_positives if ranking.num_positives else torch.ones_like(hits)
        average: Tensor = self._on_host(recall, hits / (hits + alarms))
        return average

    def _on_host(self, *curve: Tensor) -> Any:
        """The average precision of a curve by Ignite's own formula."""
        here = _averages._BaseAveragePrecision(self._arguments["rec_thresholds"], self.class_mean)
        return here._compute_average_precision(*curve)


def _one_hot(target: Tensor, classes: int) -> Tensor:
    """Labels `(N, ...)` as zeros and ones `(N, C, ...)`; a label of no class is invalid."""
    label = labels_of(target)[:, None]
    every = torch.arange(classes, device=label.device).reshape(1, -1, *[1] * (label.ndim - 2))
    return torch.where((label >= 0) & (label < classes), (label == every).long(), NO_LABEL)


class _Clusters(OneMetric):
    """A metric of points and the clusters that they are in; the size is that of a point."""

    sized = True

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An empty metric; that of Ignite itself, with a warning, where an argument has no counterpart."""
        if kwargs.get("silhouette_kwargs"):
            got, do = "silhouette_kwargs", "Use it unchanged, or leave silhouette_kwargs out"
            warnings.warn(describe(cls.__name__, got, "none; the metric of ignite itself", do), AssayWarning, 2)
            return cls.original(*args, **kwargs)
        return super().__new__(cls)

    def _metric(self, size: int) -> Metric:
        metric: Metric = getattr(assay.metrics, self.name)(num_features=size)
        return metric

    def _count(self, output: Any) -> None:
        features, labels = pair(output)
        self._check_shape((features, labels))
        self._begin(features.shape[1], 0)
        self.meter.update(features, labels_of(labels))

    def _value(self, meter: Meter) -> Any:
        clusters = len(np.unique(counts(meter).target))
        return float(quietly(meter)) if 2 <= clusters < meter.rows else float("nan")


class _Detections(CompatibleIgniteMetric):
    """The average precision and the recall of boxes, as COCO has them; torchvision is not needed."""

    def _construct(self, *args: Any, **kwargs: Any) -> None:
        given = self._arguments
        self._num_classes, self._area_range = given["num_classes"], given["area_range"]
        self._max_detections_per_image_per_class = given["max_detections_per_image_per_class"]
        levels = [[k / 100 for k in range(101)], [k / 20 for k in range(10, 20)]]
        recalls, overlaps = (
            each if (value := given[name]) is None else value
            for name, each in zip(("rec_thresholds", "iou_thresholds"), levels, strict=True)
        )
        _averages._BaseAveragePrecision.__init__(self, recalls, None, given["device"])
        self._iou_thresholds = self._setup_thresholds(overlaps, "iou_thresholds")
        _metrics.Metric.__init__(self, given["output_transform"], given["device"])

    def _forget(self) -> None:
        """Nothing: only the meter counts."""

    def _meter_of(self, size: int, flag: int) -> Meter:
        given = self._arguments
        recalls, overlaps = (_numbers(given[name]) for name in ("rec_thresholds", "iou_thresholds"))
        most = (given["max_detections_per_image_per_class"],)
        return Meter(value=MeanAveragePrecision("xyxy", "bbox", overlaps, recalls, most))

    def _count(self, output: Any) -> None:
        _detection.ObjectDetectionAvgPrecisionRecall._check_matching_input(self, output)
        preds, target = output
        self.meter.update([_renamed(each) for each in preds], [_renamed(each) for each in target])

    def _without_data(self) -> Any:
        return -1.0, -1.0

    def _value(self, meter: Meter) -> Any:
        values = _or_minus_1(quietly(meter))
        area = self._arguments["area_range"]
        if area in ("small", "medium", "large"):
            return values[f"map_{area}"], values[f"mar_{area}"]
        return values["map"], values[f"mar_{self._arguments['max_detections_per_image_per_class']}"]


_OF_COCO = {
    "AP@50..95": "map",
    "AR-100": "mar_100",
    "AP@50": "map_50",
    "AP@75": "map_75",
    "AP-S": "map_small",
    "AR-S": "mar_small",
    "AP-M": "map_medium",
    "AR-M": "mar_medium",
    "AP-L": "map_large",
    "AR-L": "mar_large",
    "AR-1": "mar_1",
    "AR-10": "mar_10",
}
"""The values of `CommonObjectDetectionMetrics`, and what assay's metric calls them."""


class _AllDetections(_Detections):
    """The values that COCO lists, which one metric counts."""

    def _construct(self, *args: Any, **kwargs: Any) -> None:
        _metrics.MetricGroup.__init__(self, {}, self._arguments["output_transform"])

    def _meter_of(self, size: int, flag: int) -> Meter:
        return Meter(value=MeanAveragePrecision())

    def _without_data(self) -> Any:
        return dict.fromkeys(_OF_COCO, -1.0)

    def _value(self, meter: Meter) -> Any:
        values = _or_minus_1(quietly(meter))
        return {name: values[ours] for name, ours in _OF_COCO.items()}


def _renamed(image: Mapping[str, Tensor]) -> dict[str, Tensor]:
    names = {"bbox": "boxes", "scores": "scores", "labels": "labels", "iscrowd": "iscrowd"}
    found = {ours: image[name] for name, ours in names.items() if name in image}
    if "iscrowd" in found:
        found["iscrowd"] = found["iscrowd"].bool()
    return {**found, "labels": labels_of(found["labels"])}  # a table of boxes has floats


def _or_minus_1(values: Mapping[str, Tensor]) -> dict[str, float]:
    return {name: -1.0 if value.isnan() else float(value) for name, value in values.items()}


def _numbers(given: Sequence[float] | Tensor | None) -> tuple[float, ...] | None:
    if given is None:
        return None
    return tuple(sorted(given.tolist() if isinstance(given, Tensor) else map(float, given)))


OF_SAMPLES: dict[str, type[CompatibleIgniteMetric]] = {
    **dict.fromkeys(("CalinskiHarabaszScore", "DaviesBouldinScore", "SilhouetteScore"), _Clusters),
    "CommonObjectDetectionMetrics": _AllDetections,
    "MeanAveragePrecision": _MeanAveragePrecision,
    "ObjectDetectionAvgPrecisionRecall": _Detections,
    "RocCurve": _RocCurve,
}
"""The class that counts each of these metrics."""
