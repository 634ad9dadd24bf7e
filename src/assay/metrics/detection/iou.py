"""Intersection over union of detected boxes, and its relatives that also tell boxes apart that do not meet."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from torch import Tensor

from assay.encode.boxes import DETECTIONS, TRUTHS
from assay.errors import ConfigError, describe
from assay.metrics.base import CORRELATION, SHARE, Examples, number
from assay.metrics.detection.base import BoxMetric, ImageBoxes
from assay.tally.stores.ragged_store import RaggedArrays

_PAIRS = 1 << 18  # of boxes that are compared at once


@dataclass(frozen=True, eq=False)
class BoxPairs:
    """Pairs of boxes: the left top corners, the right bottom corners and the sizes `(N, 2)` of both."""

    starts: tuple[np.ndarray, np.ndarray]
    sizes: tuple[np.ndarray, np.ndarray]

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        return self.starts[0] + self.sizes[0], self.starts[1] + self.sizes[1]

    @property
    def intersection(self) -> np.ndarray:
        sides = np.minimum(*self.ends) - np.maximum(*self.starts)
        return np.asarray(sides.clip(min=0).prod(1))

    @property
    def union(self) -> np.ndarray:
        return np.asarray(self.sizes[0].prod(1) + self.sizes[1].prod(1) - self.intersection)

    @property
    def iou(self) -> np.ndarray:
        """The quotient; 0 for two boxes without area."""
        return _quotient(self.intersection, self.union)

    @property
    def enclosing(self) -> np.ndarray:
        """The sides of the smallest box around both."""
        return np.asarray(np.maximum(*self.ends) - np.minimum(*self.starts))

    @property
    def center_distance(self) -> np.ndarray:
        """The squared distance of the centers, by the squared diagonal of the smallest box around both."""
        first, second = (start + size / 2 for start, size in zip(self.starts, self.sizes, strict=True))
        return _quotient(((first - second) ** 2).sum(1), (self.enclosing**2).sum(1))


def _quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The quotient; 0 where it is 0 / 0."""
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=below > 0))


@dataclass(frozen=True)
class PairMetric(BoxMetric):
    """The mean of a number of each pair of a detection and a truth of one image.

    Returns:
        float64, shape `()`, NaN where there is no pair. With `class_metrics` a dictionary with that number and one of
        each class of the truths, named `iou/cl_3` for class 3.
    """

    title: ClassVar[str] = ""
    defined_for: ClassVar[str] = "at least one pair of a detection and a truth of the same image and label"
    examples: ClassVar[Examples] = ({}, {"class_metrics": True, "respect_labels": False, "box_format": "cxcywh"})

    iou_threshold: Annotated[float | None, "pairs with a value below it are left out."] = None
    class_metrics: Annotated[bool, "also return the mean of each class."] = False
    respect_labels: Annotated[bool, "pairs have equal labels; otherwise they are all pairs of an image."] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.iou_threshold is not None and not -1 <= self.iou_threshold <= 1:
            do = "Write iou_threshold=0.5, or leave it out for all pairs"
            raise ConfigError(describe("iou_threshold", self.iou_threshold, "a number from -1 to 1", do))

    @abstractmethod
    def pair_values(self, pairs: BoxPairs) -> np.ndarray:
        """The number of each pair."""

    def compute(self, counts: RaggedArrays) -> Tensor | Mapping[str, Tensor]:
        images = self.images(counts)
        of_class, values = self.pairs(images)
        mean = {self.title: _mean(values)}
        if not self.class_metrics:
            return mean[self.title]
        classes = np.unique(images.field(TRUTHS, "labels").astype(np.int64))
        return mean | {f"{self.title}/cl_{k}": _mean(values[of_class == k]) for k in classes}

    def pairs(self, images: ImageBoxes) -> tuple[np.ndarray, np.ndarray]:
        """The label of the truth and the number of each pair that counts."""
        labels = images.field(TRUTHS, "labels").astype(np.int64)
        blocks: list[tuple[np.ndarray, np.ndarray]] = []
        for detections, truths in _pairs(images, self.respect_labels):
            both = images.boxes[DETECTIONS][detections], images.boxes[TRUTHS][truths]
            values = self.pair_values(BoxPairs((both[0][:, :2], both[1][:, :2]), (both[0][:, 2:], both[1][:, 2:])))
            inside = np.ones(len(values), bool) if self.iou_threshold is None else values >= self.iou_threshold
            blocks.append((labels[truths[inside]], values[inside]))
        of_class, values = (np.concatenate(each) for each in zip(*blocks, strict=True)) if blocks else (labels[:0],) * 2
        return of_class, values


def _mean(values: np.ndarray) -> Tensor:
    """The mean; the sum is exact, so it has no order."""
    return number(math.fsum(values) / len(values) if len(values) else math.nan)


def _pairs(images: ImageBoxes, same_label: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of a detection and a truth of one image, as their positions, in blocks."""
    rows, columns = (images.arrays.lengths[group] for group in (DETECTIONS, TRUTHS))
    first_truth = np.repeat(np.cumsum(columns) - columns, rows)  # of the image of each detection
    partners = np.repeat(columns, rows)
    ends = np.cumsum(partners)
    labels = [images.field(group, "labels") for group in (DETECTIONS, TRUTHS)]
    start = 0
    while start < len(partners):
        before = int(ends[start] - partners[start])
        stop = max(start + 1, int(np.searchsorted(ends, before + _PAIRS, "right")))
        count = partners[start:stop]
        detections = np.repeat(np.arange(start, stop), count)
        offsets = np.arange(len(detections)) - np.repeat(ends[start:stop] - count - before, count)
        truths = first_truth[detections] + offsets
        if same_label:
            same = labels[0][detections] == labels[1][truths]
            detections, truths = detections[same], truths[same]
        yield detections, truths
        start = stop


@dataclass(frozen=True)
class IntersectionOverUnion(PairMetric):
    """The mean intersection over union of the pairs of a detection and a truth of one image and label.

        iou(A, B) = |A ∩ B| / |A ∪ B|

    Two boxes without area have 0.

    Example:
        >>> import torch
        >>> preds = [{"boxes": torch.tensor([[0.0, 0.0, 2.0, 2.0]]), "labels": torch.tensor([1])}]
        >>> target = [{"boxes": torch.tensor([[1.0, 0.0, 3.0, 2.0]]), "labels": torch.tensor([1])}]
        >>> IntersectionOverUnion()(preds, target)
        tensor(0.3333, dtype=torch.float64)

    Source: P. Jaccard, 1901.
    """

    value_range = SHARE

    title: ClassVar[str] = "iou"

    def pair_values(self, pairs: BoxPairs) -> np.ndarray:
        return pairs.iou


@dataclass(frozen=True)
class GeneralizedIntersectionOverUnion(PairMetric):
    """The mean generalized IoU of the pairs of a detection and a truth of one image and label; from -1 to 1.

        giou(A, B) = iou(A, B) - |C minus A ∪ B| / |C|, where C is the smallest box around both

    Example:
        >>> import torch
        >>> preds = [{"boxes": torch.tensor([[0.0, 0.0, 2.0, 2.0]]), "labels": torch.tensor([1])}]
        >>> target = [{"boxes": torch.tensor([[6.0, 0.0, 8.0, 2.0]]), "labels": torch.tensor([1])}]
        >>> GeneralizedIntersectionOverUnion()(preds, target)
        tensor(-0.5000, dtype=torch.float64)

    Source: H. Rezatofighi et al., Generalized intersection over union, CVPR 2019.
    """

    value_range = CORRELATION

    title: ClassVar[str] = "giou"

    def pair_values(self, pairs: BoxPairs) -> np.ndarray:
        area = pairs.enclosing.prod(1)
        return np.asarray(pairs.iou - _quotient(area - pairs.union, area))


@dataclass(frozen=True)
class DistanceIntersectionOverUnion(PairMetric):
    """The mean distance IoU of the pairs of a detection and a truth of one image and label; from -1 to 1.

        diou(A, B) = iou(A, B) - d² / c²

    d is the distance of the centers, and c the diagonal of the smallest box around both.

    Example:
        >>> import torch
        >>> preds = [{"boxes": torch.tensor([[0.0, 0.0, 3.0, 4.0]]), "labels": torch.tensor([1])}]
        >>> target = [{"boxes": torch.tensor([[3.0, 4.0, 6.0, 8.0]]), "labels": torch.tensor([1])}]
        >>> DistanceIntersectionOverUnion()(preds, target)
        tensor(-0.2500, dtype=torch.float64)

    Source: Z. Zheng et al., Distance-IoU loss, AAAI 2020.
    """

    title: ClassVar[str] = "diou"

    def pair_values(self, pairs: BoxPairs) -> np.ndarray:
        return np.asarray(pairs.iou - pairs.center_distance)


@dataclass(frozen=True)
class CompleteIntersectionOverUnion(PairMetric):
    """The mean complete IoU of the pairs of a detection and a truth of one image and label.

        ciou(A, B) = diou(A, B) - v² / (1 - iou(A, B) + v), v = 4 / π² (atan(w_A / h_A) - atan(w_B / h_B))²

    Example:
        >>> import torch
        >>> preds = [{"boxes": torch.tensor([[0.0, 0.0, 3.0, 4.0]]), "labels": torch.tensor([1])}]
        >>> target = [{"boxes": torch.tensor([[3.0, 4.0, 6.0, 8.0]]), "labels": torch.tensor([1])}]
        >>> CompleteIntersectionOverUnion()(preds, target)
        tensor(-0.2500, dtype=torch.float64)

    Source: Z. Zheng et al., Distance-IoU loss, AAAI 2020.
    """

    title: ClassVar[str] = "ciou"

    def pair_values(self, pairs: BoxPairs) -> np.ndarray:
        first, second = (np.arctan2(sizes[:, 0], sizes[:, 1]) for sizes in pairs.sizes)
        v = 4 / math.pi**2 * (first - second) ** 2
        return np.asarray(pairs.iou - pairs.center_distance - _quotient(v**2, 1 - pairs.iou + v))
