"""Mean average precision of detected boxes and masks, as COCO computes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.encode.boxes import DETECTIONS, TRUTHS, IouType, negative_sizes, other_formats
from assay.errors import ConfigError, InvalidValuesWarning, describe, warn
from assay.metrics.base import SHARE, Examples, GroupCounts
from assay.metrics.detection.base import BoxMetric, ImageBoxes
from assay.metrics.detection.curves import DetectionCurves, mean_of, means_of_rows
from assay.metrics.detection.federated import known_detections
from assay.metrics.detection.matching import Array, DetectionMatches, matches
from assay.tally.ragged import Ragged
from assay.tally.stores.ragged_store import RaggedArrays

_FREQUENCIES = ("rare", "common", "frequent")
_IOUS, _RECALLS = np.linspace(0.5, 0.95, 10), np.linspace(0, 1, 101)
_IOU_TYPES: tuple[tuple[IouType, ...], ...] = (("bbox",), ("segm",), ("bbox", "segm"))


@dataclass(frozen=True)
class MeanAveragePrecision(BoxMetric):
    """COCO's mean average precision and mean average recall of boxes, of masks, or of both.

        AP = mean over recall thresholds r of max_{r' >= r} precision(r')
        map = mean over IoU thresholds and classes of AP
        mar = mean over IoU thresholds and classes of the largest recall

    Detections of an image and class are matched from the highest score to the lowest, each with the truth of the
    largest IoU that is free and at least the threshold. The precision at each recall threshold is the highest at that
    recall or above; `map` is its mean over recall thresholds, IoU thresholds and classes that have truths.

    `preds` also have `scores (n,)`. `target` may have `iscrowd (n,)` (truths that several detections may match, and
    none must) and `area (n,)`, by default that of the mask where masks are read, or else of the box. With
    `iou_type="segm"` both have `masks` instead of boxes: a bool or integer tensor `(n, H, W)`, or a list of n of COCO's
    RLE dictionaries, whose `counts` are a string or a list; all of one size in an image. Where a value is undefined, as
    without truths of a size, it is NaN, for which pycocotools writes -1.

    With `federated`, as in LVIS, `target` may have `neg_category_ids (k,)`, classes that are not in the image, and
    `not_exhaustive_category_ids (k,)`, classes of which not all objects are among the truths. A detection counts only
    if its class is that of a truth or one of `neg_category_ids`. One that no truth matches is no error where its class
    is one of `not_exhaustive_category_ids`. `max_detection_thresholds` is then one number, 300 in LVIS: how many
    detections of an image count, of all classes together.

    Detections of different images with equal scores are one step of the curve, so the order of images changes nothing.
    In pycocotools they are as many steps in the order of the images. Equal scores in one image keep the order of its
    tensors, as there. A detection whose width or height is negative matches no truth, and has the area that is the
    product of both, so one with a negative area is in no range of areas and counts as nothing, as there; an
    `InvalidValuesWarning` has their number.

    Returns:
        A dictionary of float64: `map`, `map_50`, `map_75`, `map_small`, `map_medium`, `map_large`, `mar_k` for each k
        of `max_detection_thresholds`, and for the largest `mar_small`, `mar_medium` and `mar_large`. For the groups of
        classes that are given also `map_rare`, `map_common` and `map_frequent`. With `class_metrics` also
        `classes (C,)`, `map_per_class (C,)` and `mar_k_per_class (C,)` for the largest k. With two
        `iou_type`, all names but `classes` begin with `bbox_` and `segm_`.

    Example:
        >>> box, label = torch.tensor([[10.0, 10.0, 60.0, 60.0]]), torch.tensor([3])
        >>> shifted = {"boxes": box + 10, "scores": torch.tensor([0.9]), "labels": label}
        >>> values = MeanAveragePrecision()([shifted], [{"boxes": box, "labels": label}])
        >>> values["map_50"], values["map_75"]
        (tensor(0., dtype=torch.float64), tensor(0., dtype=torch.float64))
        >>> shifted["boxes"] = box + 5
        >>> round(float(MeanAveragePrecision()([shifted], [{"boxes": box, "labels": label}])["map"]), 6)
        0.4

    Source: T.-Y. Lin et al., Microsoft COCO: common objects in context, ECCV 2014; pycocotools. A. Gupta, P. Dollár,
    R. Girshick, LVIS: a dataset for large vocabulary instance segmentation, CVPR 2019; lvis.
    """

    value_range = SHARE

    scored: ClassVar[bool] = True
    biased_upwards: ClassVar[bool] = True
    higher_is_better: ClassVar[bool | None] = None
    defined_for: ClassVar[str] = ""
    examples: ClassVar[Examples] = (
        {},
        {"class_metrics": True, "box_format": "xywh", "max_detection_thresholds": (1, 2)},
        {"iou_thresholds": (0.5,), "rec_thresholds": (0.0, 0.5, 1.0), "average": "micro"},
        {"iou_type": ("bbox", "segm"), "max_detection_thresholds": (1, 2)},
        {"federated": True, "max_detection_thresholds": (2,), "rare_classes": (0,), "frequent_classes": (1, 2)},
    )

    iou_type: Annotated[
        IouType | tuple[IouType, ...], 'what is compared: boxes ("bbox"), masks ("segm") or ("bbox", "segm").'
    ] = "bbox"
    iou_thresholds: Annotated[
        tuple[float, ...] | None, "the IoU that a match has at least; None for 0.5, 0.55, ..., 0.95."
    ] = None
    rec_thresholds: Annotated[
        tuple[float, ...] | None, "the recalls at which precision is taken; None for 0, 0.01, ..., 1."
    ] = None
    max_detection_thresholds: Annotated[
        tuple[int, ...],
        "how many detections of an image and class count, in increasing order: recall is computed for each, all else "
        "for the largest.",
    ] = (1, 10, 100)
    class_metrics: Annotated[bool, "also return the values of each class."] = False
    average: Annotated[
        Literal["macro", "micro"], 'the mean over classes ("macro"), or all boxes as of one class ("micro").'
    ] = "macro"

    federated: Annotated[bool, "some classes only are annotated in each image, as in LVIS."] = False
    rare_classes: Annotated[tuple[int, ...], "classes whose mean is `map_rare`."] = ()
    common_classes: Annotated[tuple[int, ...], "classes whose mean is `map_common`."] = ()
    frequent_classes: Annotated[tuple[int, ...], "classes whose mean is `map_frequent`."] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        given: Any = self.iou_type
        types = (given,) if isinstance(given, str) else given
        if isinstance(given, list):
            types = tuple(given)
            object.__setattr__(self, "iou_type", types)
        if types not in _IOU_TYPES:
            expected = '"bbox", "segm" or ("bbox", "segm")'
            raise ConfigError(describe("iou_type", repr(self.iou_type), expected, 'Write iou_type="segm" for masks'))
        for name in ("iou_thresholds", "rec_thresholds", "max_detection_thresholds"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _increasing(name, value, int if name[0] == "m" else float))
        for name in _FREQUENCIES:
            object.__setattr__(self, f"{name}_classes", tuple(map(int, getattr(self, f"{name}_classes"))))
        if self.federated and len(self.max_detection_thresholds) > 1:
            do = "Write max_detection_thresholds=(300,)"
            got = repr(self.max_detection_thresholds)
            raise ConfigError(describe("max_detection_thresholds", got, "one number where federated=True", do))
        if self.average == "micro" and any(getattr(self, f"{name}_classes") for name in _FREQUENCIES):
            do = 'Write average="macro", or leave out rare_classes, common_classes and frequent_classes'
            raise ConfigError(describe("average", repr(self.average), '"macro" for groups of classes', do))

    @property
    def _federated(self) -> bool:
        return self.federated

    def images(self, counts: RaggedArrays) -> ImageBoxes:
        images = super().images(counts)
        self._warn_of_negative_sizes(counts)
        return known_detections(images, self.max_detection_thresholds[0]) if self.federated else images

    def _warn_of_negative_sizes(self, counts: RaggedArrays) -> None:
        """Warn of detections that can match nothing, as their width or height is negative."""
        boxes = counts.items[DETECTIONS].get("boxes", np.empty((0, 4)))
        if count := int(negative_sizes(torch.from_numpy(boxes), self.box_format).sum()):
            got = f"{count} of the {len(boxes)} detections, whose boxes have a negative width or height"
            do = f"Correct the boxes, or pass box_format={other_formats(self.box_format)}; they match no truth"
            warn(describe(type(self).__name__, got, f"boxes as {self.box_format}", do), InvalidValuesWarning)

    @property
    def _iou_types(self) -> tuple[IouType, ...]:
        return (self.iou_type,) if isinstance(self.iou_type, str) else self.iou_type

    def compute(self, counts: RaggedArrays) -> Mapping[str, Tensor]:
        images = self.images(counts)
        classes, index = _classes(images)
        groups = self._groups(classes)
        result = self._prefixed({each: self._values(images, each, index, groups) for each in self._iou_types})
        return result | {"classes": torch.from_numpy(classes)} if self.class_metrics else result

    def values_of_draws(self, groups: GroupCounts, draws: NDArray[np.int64]) -> Iterator[Mapping[str, Tensor]] | None:
        if groups.by_group is None:
            return None
        arrays, group = groups.by_group
        images = self.images(arrays)
        classes, labels = _classes(images)
        of, count = _as_one_class(labels) if self.average == "micro" else (labels, len(classes))
        found = {each: self._matches(images, each, of, count) for each in self._iou_types}
        items = [np.concatenate([of[each], images.image(each)]).reshape(2, -1) for each in (DETECTIONS, TRUTHS)]
        return (self._repeated(found, classes, np.hstack(items), row[group]) for row in draws)

    def _repeated(
        self, found: Mapping[IouType, DetectionMatches], classes: np.ndarray, items: np.ndarray, times: np.ndarray
    ) -> Mapping[str, Tensor]:
        """The means where each image counts as often as `times` says; `items` are rows of classes and of images."""
        count = next(iter(found.values())).positives.shape[1]
        there = np.bincount(items[0], times[items[1]], minlength=count) > 0  # of no other class there is a mean
        groups = self._groups(classes[there] if self.average == "macro" else classes[:0])
        return self._prefixed(
            {
                iou_type: self._summary(self._curves_of(each.repeated(times)).of_classes(there), groups)
                for iou_type, each in found.items()
            }
        )

    def _groups(self, classes: np.ndarray) -> dict[str, np.ndarray]:
        """Which of the classes are in each group."""
        return {name: np.isin(classes, getattr(self, f"{name}_classes")) for name in _FREQUENCIES}

    def _prefixed(self, values: Mapping[IouType, Mapping[str, Tensor]]) -> dict[str, Tensor]:
        """The values of each type of IoU, with its name where there are two."""
        prefixes = {each: f"{each}_" if len(self._iou_types) > 1 else "" for each in self._iou_types}
        return {f"{prefixes[each]}{name}": value for each, of in values.items() for name, value in of.items()}

    def sample_scores(self, columns: Mapping[str, Ragged]) -> tuple[str, np.ndarray]:
        """The average precision of each image at the lowest IoU threshold, the mean over the classes of its truths."""
        images = self.images(RaggedArrays.of(columns[self.encoder.column]))
        iou = (self.iou_thresholds or (0.5,))[0]
        classes, labels = _classes(images)
        count = len(classes) + 1
        keys = {group: images.image(group) * count + each * (self.average == "macro") for group, each in labels.items()}
        distinct, index = np.unique(np.concatenate(list(keys.values())), return_inverse=True)
        start = len(keys[DETECTIONS])
        of_images = {DETECTIONS: index[:start], TRUTHS: index[start:]}
        curves = self._curves(images, self._iou_types[0], of_images, len(distinct), np.array([iou]))
        values = means_of_rows(curves.precision[0].T)
        image, there = distinct // count, ~np.isnan(values)
        sums, counts = (np.bincount(image[there], each, len(images.arrays)) for each in (values[there], None))
        means = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
        return f"average precision at IoU {iou:g}", means

    def _values(
        self, images: ImageBoxes, iou_type: IouType, labels: dict[str, np.ndarray], groups: Mapping[str, np.ndarray]
    ) -> dict[str, Tensor]:
        classes = len(groups["rare"])
        most = self.max_detection_thresholds[-1]
        micro = self.average == "micro"
        curves = self._curves(images, iou_type, labels, classes) if self.class_metrics or not micro else None
        means = self._curves(images, iou_type, *_as_one_class(labels)) if curves is None or micro else curves
        values = self._summary(means, groups)
        if self.class_metrics and curves is not None:
            values["map_per_class"] = torch.from_numpy(means_of_rows(curves.precision[0].T))
            values[f"mar_{most}_per_class"] = torch.from_numpy(means_of_rows(curves.recall[0, -1]))
        return values

    def _summary(self, curves: DetectionCurves, groups: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
        """The means over all classes, and over those of each group."""
        values = curves.summary
        for name, members in groups.items():
            if getattr(self, f"{name}_classes"):
                values[f"map_{name}"] = mean_of(curves.precision[0][:, members])
        return values

    def _curves(
        self,
        images: ImageBoxes,
        iou_type: IouType,
        labels: dict[str, np.ndarray],
        classes: int,
        ious: Array | None = None,
    ) -> DetectionCurves:
        return self._curves_of(self._matches(images, iou_type, labels, classes, ious), ious)

    @property
    def _ious(self) -> Array:
        return _IOUS if self.iou_thresholds is None else np.array(self.iou_thresholds)

    def _matches(
        self,
        images: ImageBoxes,
        iou_type: IouType,
        labels: dict[str, np.ndarray],
        classes: int,
        ious: Array | None = None,
    ) -> DetectionMatches:
        ious = self._ious if ious is None else ious
        return matches(images, iou_type, labels, classes, self.max_detection_thresholds[-1], ious)

    def _curves_of(self, found: DetectionMatches, ious: Array | None = None) -> DetectionCurves:
        recalls = _RECALLS if self.rec_thresholds is None else np.array(self.rec_thresholds)
        return DetectionCurves.of(found, self._ious if ious is None else ious, self.max_detection_thresholds, recalls)


def _classes(images: ImageBoxes) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The labels that occur, and for each detection and truth the position of its label among them."""
    labels = [images.field(group, "labels").astype(np.int64, copy=False) for group in (DETECTIONS, TRUTHS)]
    classes, index = _distinct(np.concatenate(labels))
    return classes, {DETECTIONS: index[: len(labels[0])], TRUTHS: index[len(labels[0]) :]}


def _distinct(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct integers in increasing order, and the position of each among them."""
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    if high - low > 4 * len(numbers):  # too many to count
        return np.unique(numbers, return_inverse=True)
    there = np.bincount(numbers - low, minlength=1) > 0
    return np.flatnonzero(there) + low, (np.cumsum(there) - 1)[numbers - low]


def _as_one_class(labels: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], int]:
    return {group: np.zeros_like(each) for group, each in labels.items()}, 1


def _increasing(name: str, values: object, kind: type) -> tuple[float, ...]:
    """Thresholds as a tuple of numbers that increase."""
    try:
        numbers = tuple(kind(each) for each in values)  # type: ignore[attr-defined]
        same = numbers == tuple(values)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        numbers, same = (), False
    most = np.inf if kind is int else 1
    inside = all((kind(1) if kind is int else 0) <= each <= most for each in numbers)
    if not numbers or not same or not inside or list(numbers) != sorted(set(numbers)):
        expected = "integers of 1 or more, in increasing order" if kind is int else "numbers from 0 to 1, increasing"
        raise ConfigError(
            describe(name, repr(values), expected, f"Write {name}=({'1, 100' if kind is int else '0.5, 0.75'})")
        )
    return numbers
