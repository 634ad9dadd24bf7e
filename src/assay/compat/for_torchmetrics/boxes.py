"""Metrics of detected boxes as TorchMetrics gives them: dictionaries with 0 or -1 where a value is not defined."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.compat.for_torchmetrics.families import Arguments, Family, without_counterpart
from assay.encode.base import Encoder
from assay.encode.boxes import DETECTIONS, TRUTHS
from assay.integrations.optional_packages import import_package
from assay.metrics import (
    CompleteIntersectionOverUnion,
    DistanceIntersectionOverUnion,
    GeneralizedIntersectionOverUnion,
    IntersectionOverUnion,
    MeanAveragePrecision,
)
from assay.metrics.base import Metric, number
from assay.metrics.detection.base import ImageBoxes
from assay.tally.base import Tally
from assay.tally.stores.ragged_store import RaggedArrays

_helpers: Any = import_package("torchmetrics.detection.helpers", "metrics of its names")
_warning_on_too_many_detections: Any = _helpers._warning_on_too_many_detections


@dataclass(frozen=True, kw_only=True)
class PairsAndMisses(Metric):
    """The mean of a number of pairs of a detection and a truth, to which images with boxes on one side add zeros.

    An image adds as many zeros as it has boxes; their square where labels do not matter. Without a pair it is 0.

    Args:
        metric: gives the number of a pair.
    """

    metric: Metric

    @property
    def inputs(self) -> str:  # type: ignore[override]
        """The samples that it takes."""
        return self.metric.inputs

    @property
    def encoder(self) -> Encoder | None:
        return self.metric.encoder

    def tally(self, weighted: bool) -> Tally:
        return self.metric.tally(weighted)

    def batch_tally(self, weighted: bool) -> Tally:
        return self.metric.batch_tally(weighted)

    def compute(self, counts: RaggedArrays) -> dict[str, Tensor]:
        metric: Any = self.metric
        images = metric.images(counts)
        labels, values = metric.pairs(images)
        detections, truths = (images.arrays.lengths[group] for group in (DETECTIONS, TRUTHS))
        own, true = (images.field(group, "labels").astype(np.int64) for group in (DETECTIONS, TRUTHS))
        alone = [
            (own, np.repeat(np.where(truths == 0, detections, 0), detections)),
            (true, np.repeat(np.where(detections == 0, truths, 0), truths)),
        ]
        zeros = [np.repeat(each, times if not metric.respect_labels else np.minimum(times, 1)) for each, times in alone]
        labels = np.concatenate([labels, *zeros])
        values = np.concatenate([values, np.zeros(sum(map(len, zeros)))])
        found = {metric.title: _mean_or_0(values)}
        if metric.class_metrics:
            for label in np.unique(np.concatenate([own, true])):
                found[f"{metric.title}/cl_{label}"] = _mean_or_0(values[labels == label])
        return found


def _mean_or_0(values: np.ndarray) -> Tensor:
    return number(math.fsum(values) / len(values) if len(values) else 0.0)


def _pairs(kind: Any) -> Family:
    names = ("box_format", "iou_threshold", "class_metrics", "respect_labels")
    return Family(kind.__name__, lambda all: PairsAndMisses(metric=kind(**{name: all[name] for name in names})))


def _average_precision(arguments: Arguments) -> Metric:
    if arguments["extended_summary"]:
        raise without_counterpart("extended_summary", True, "False")
    types: Any = arguments["iou_type"]
    types = types if isinstance(types, str) else types[0] if len(types) == 1 else tuple(types)
    lists = {name: arguments[name] for name in ("iou_thresholds", "rec_thresholds", "max_detection_thresholds")}
    lists = {name: tuple(sorted(values)) for name, values in lists.items() if values is not None}
    same = {name: arguments[name] for name in ("box_format", "average")}
    return MeanAveragePrecision(iou_type=types, class_metrics=True, **lists, **same)


def _with_minus_1(value: Mapping[str, Tensor], arguments: Arguments) -> dict[str, Tensor]:
    found = {}
    for name, each in value.items():
        if name == "classes":
            found[name] = each.int().squeeze() if len(each) == 1 else each.int()
        elif name.endswith("_per_class"):
            known = each.nan_to_num(-1.0) if arguments["class_metrics"] else torch.tensor(-1.0, device="cpu")
            found[name] = known.squeeze() if known.numel() == 1 else known
        else:
            found[name] = each.nan_to_num(-1.0)
    return found


def _warn_of_many(metric: Any, preds: Any, target: Any) -> None:
    """Warn as TorchMetrics does, once a batch, if an image has more detections than count."""
    most = metric.max_detection_thresholds[-1]
    images = preds if isinstance(preds, Sequence) and metric.warn_on_many_detections else ()
    scores = (each.get("scores") for each in images if isinstance(each, Mapping))
    if any(isinstance(each, Tensor) and each.numel() > most for each in scores):
        _warning_on_too_many_detections(most)


def _of_images(group: str, field: str) -> Callable[[RaggedArrays, Any], list[Tensor]]:
    """What gives a field of each image, as TorchMetrics keeps it: boxes as left, top, width and height."""

    def state(counts: RaggedArrays, metric: Any) -> list[Tensor]:
        if field not in counts.items[group]:
            return []  # of masks alone, there are no boxes
        values = ImageBoxes(counts, metric.box_format).boxes[group] if field == "boxes" else counts.items[group][field]
        known = np.where(np.isnan(values), 0, values)  # areas that are not given
        return [torch.from_numpy(each) for each in np.split(known, counts.lengths[group].cumsum()[:-1])]

    return state


def _no_masks(counts: RaggedArrays, metric: Any) -> list[Tensor] | None:
    """Nothing where no masks are counted, of which only areas and overlaps are kept."""
    return None if "mask_area" in counts.items[TRUTHS] else []


_IMAGES: Mapping[str, Callable[[RaggedArrays, Any], Any]] = {
    "detection_box": _of_images(DETECTIONS, "boxes"),
    "detection_labels": _of_images(DETECTIONS, "labels"),
    "detection_mask": _no_masks,
    "detection_scores": _of_images(DETECTIONS, "scores"),
    "groundtruth_area": _of_images(TRUTHS, "area"),
    "groundtruth_box": _of_images(TRUTHS, "boxes"),
    "groundtruth_crowds": _of_images(TRUTHS, "iscrowd"),
    "groundtruth_labels": _of_images(TRUTHS, "labels"),
    "groundtruth_mask": _no_masks,
}
"""The states of `MeanAveragePrecision`, which `tm_to_coco` reads."""


OF_BOXES: Mapping[str, Family] = {
    **{
        kind.__name__: _pairs(kind)
        for kind in (
            CompleteIntersectionOverUnion,
            DistanceIntersectionOverUnion,
            GeneralizedIntersectionOverUnion,
            IntersectionOverUnion,
        )
    },
    "MeanAveragePrecision": Family(
        "MeanAveragePrecision", _average_precision, value=_with_minus_1, check=_warn_of_many, states=_IMAGES
    ),
}
