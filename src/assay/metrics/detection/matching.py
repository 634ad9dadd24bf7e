"""Detections matched with truths as COCO does it: greedily from the highest score, in each image and class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from assay.encode.boxes import DETECTIONS, PAIRS, TRUTHS, IouType
from assay.metrics.detection.base import ImageBoxes
from assay.metrics.detection.federated import UNKNOWN
from assay.native.library import library
from assay.native.matching import match

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.uint8]

_ELEMENTS = 1 << 21  # of a block of groups that are matched together
AREAS: tuple[tuple[str, float, float], ...] = (
    ("", 0.0, 1e10),
    ("small", 0.0, 32.0**2),
    ("medium", 32.0**2, 96.0**2),
    ("large", 96.0**2, 1e10),
)
"""COCO's ranges of areas, in pixels; both ends belong to a range."""


class Overlaps(ABC):
    """Detections and truths, and how much of each other they cover; positions are integers of any shape."""

    areas: tuple[Array, Array]
    """The areas of detections and of truths."""

    @abstractmethod
    def both(self, detections: Indices, truths: Indices) -> Array:
        """The area that detections and truths at these positions have in common."""

    @abstractmethod
    def select(self, detections: Indices, truths: Indices) -> Overlaps:
        """Those at these positions."""

    def ratios(self, detections: Indices, truths: Indices, crowd: NDArray[np.bool_]) -> Array:
        """The IoU of detections and truths; of crowds, the share of the detection that is in them."""
        both, own, true = self.both(detections, truths), self.areas[0][detections], self.areas[1][truths]
        union = np.where(crowd, own, own + true - both)
        return np.divide(both, union, out=np.zeros(both.shape), where=(both > 0) & (union > 0))


@dataclass(frozen=True, eq=False)
class BoxOverlaps(Overlaps):
    """Boxes, as left, top, width and height."""

    boxes: tuple[Array, Array]

    @cached_property
    def areas(self) -> tuple[Array, Array]:  # type: ignore[override]
        detections, truths = (each[:, 2] * each[:, 3] for each in self.boxes)
        return detections, truths

    def both(self, detections: Indices, truths: Indices) -> Array:
        own, true = self.boxes[0][detections], self.boxes[1][truths]
        ends = np.minimum(own[..., :2] + own[..., 2:], true[..., :2] + true[..., 2:])
        sides = ends - np.maximum(own[..., :2], true[..., :2])
        return np.asarray(np.where((sides > 0).all(-1), sides[..., 0] * sides[..., 1], 0))

    def select(self, detections: Indices, truths: Indices) -> BoxOverlaps:
        return BoxOverlaps((self.boxes[0][detections], self.boxes[1][truths]))


@dataclass(frozen=True, eq=False)
class MaskOverlaps(Overlaps):
    """Masks, as areas and intersections in pixels: that of a detection and a truth is where their indices add up to."""

    areas: tuple[Array, Array]
    intersections: Indices
    index: tuple[Indices, Indices]

    def both(self, detections: Indices, truths: Indices) -> Array:
        found = self.intersections[self.index[0][detections] + self.index[1][truths]]
        return np.asarray(found, np.float64)

    def select(self, detections: Indices, truths: Indices) -> MaskOverlaps:
        areas = self.areas[0][detections], self.areas[1][truths]
        return MaskOverlaps(areas, self.intersections, (self.index[0][detections], self.index[1][truths]))


def overlaps_of(images: ImageBoxes, iou_type: IouType) -> Overlaps:
    """The boxes or the masks of images."""
    if iou_type == "bbox":
        return BoxOverlaps((images.boxes[DETECTIONS], images.boxes[TRUTHS]))
    own, true, pairs = (images.arrays.lengths[group] for group in (DETECTIONS, TRUTHS, PAIRS))
    first, row = np.cumsum(own) - own, np.arange(int(own.sum()))
    image = images.image(DETECTIONS)
    # Pairs go image by image, detection by detection.
    rows = (np.cumsum(pairs) - pairs)[image] + (row - first[image]) * true[image] - (np.cumsum(true) - true)[image]
    areas = [images.field(group, "mask_area").astype(np.float64) for group in (DETECTIONS, TRUTHS)]
    index = rows, np.arange(int(true.sum()))
    return MaskOverlaps((areas[0], areas[1]), images.field(PAIRS, "intersection"), index)


@dataclass(frozen=True, eq=False)
class Items:
    """Detections in groups of one image and class, from the highest score to the lowest, and the truths of each group.

    Args:
        overlaps: the boxes or masks of detections and of truths.
        places: where the flags of each detection are.
        starts: where the detections of each group begin, and where the last end.
        truths: where the truths of each group begin and end.
        crowd: which truths are crowds.
        ignored: of shape `(areas, truths)`: those that need not be found.
    """

    overlaps: Overlaps
    places: Indices
    starts: Indices
    truths: tuple[Indices, Indices]
    crowd: Flags
    ignored: Flags


@dataclass(frozen=True, eq=False)
class DetectionMatches:
    """What was matched: detections by class and from the highest score to the lowest, and the truths of each class.

    Args:
        labels: the class of each detection, an index.
        scores: its score.
        rank: how many detections of the same image and class come before it.
        images: its image.
        flags: `(areas, thresholds, detections)`: 0 wrong, 1 right, 2 neither.
        truth_labels: the class of each truth.
        truth_images: its image.
        ignored: `(areas, truths)`: those that need not be found.
        positives: `(areas, classes)`: how many truths are to be found.
    """

    labels: Indices
    scores: Array
    rank: Indices
    images: Indices
    flags: Flags
    truth_labels: Indices
    truth_images: Indices
    ignored: Flags
    positives: Indices

    def repeated(self, times: Indices) -> DetectionMatches:
        """What is matched where each image is there so many times: nothing is matched anew."""
        index, weights = np.repeat(np.arange(len(self.labels)), times[self.images]), times[self.truth_images]
        positives = np.zeros_like(self.positives)
        for counts, ignored in zip(positives, self.ignored, strict=True):
            np.add.at(counts, self.truth_labels, weights * (ignored == 0))
        return replace(
            self,
            labels=self.labels[index],
            scores=self.scores[index],
            rank=self.rank[index],
            images=self.images[index],
            flags=np.take(self.flags, index, 2),
            positives=positives,
        )


def matches(
    images: ImageBoxes, iou_type: IouType, labels: dict[str, Indices], classes: int, most: int, thresholds: Array
) -> DetectionMatches:
    """Match the `most` first detections of each image and class, for all areas and thresholds of IoU.

    Args:
        images: the images.
        iou_type: whether boxes or masks are compared.
        labels: the class of each detection and truth, an index.
        classes: how many classes there are.
        most: how many detections of an image and class count.
        thresholds: the IoU that a match has at least.
    """
    keys = {group: images.image(group) * classes + labels[group] for group in (DETECTIONS, TRUTHS)}
    size = len(images.arrays) * classes
    scores = images.field(DETECTIONS, "scores").astype(np.float64, copy=False)
    order = np.argsort(-scores, kind="stable")
    order = order[_sorted(labels[DETECTIONS][order], classes)]
    groups = DetectionGroups.of(keys[DETECTIONS][order], size)
    if len(first := groups.places[groups.rank < most]) < len(order):
        order = order[np.sort(first)]
        groups = DetectionGroups.of(keys[DETECTIONS][order], size)

    truths = _sorted(keys[TRUTHS], size)
    overlaps = overlaps_of(images, iou_type)
    items = _items(images, groups, overlaps.select(order[groups.places], truths), truths, keys[TRUTHS][truths])
    classes_of_truths = labels[TRUTHS][truths]
    positives = np.stack([np.bincount(classes_of_truths[each == 0], minlength=classes) for each in items.ignored])

    sizes = overlaps.areas[0][order]
    aside = np.stack([(sizes < low) | (sizes > high) for _, low, high in AREAS])
    if (unknown := images.arrays.items[DETECTIONS].get(UNKNOWN)) is not None:
        aside |= unknown[order]
    flags = np.repeat(2 * aside[:, None].astype(np.uint8), len(thresholds), 1)
    write_matches(flags, items, np.minimum(thresholds, 1 - 1e-10))
    rank = np.empty_like(order)
    rank[groups.places] = groups.rank
    return DetectionMatches(
        labels[DETECTIONS][order],
        scores[order],
        rank,
        images.image(DETECTIONS)[order],
        flags,
        classes_of_truths,
        images.image(TRUTHS)[truths],
        items.ignored,
        positives,
    )


@dataclass(frozen=True, eq=False)
class DetectionGroups:
    """Detections in groups of one image and class.

    Args:
        places: the positions of detections, group by group, in their order.
        keys: what the detections of each group have in common.
        starts: where each group begins among `places`, and where the last ends.
        rank: how many come before each in its group.
    """

    places: Indices
    keys: Indices
    starts: Indices
    rank: Indices

    @classmethod
    def of(cls, keys: Indices, size: int) -> DetectionGroups:
        """The groups of equal keys, which are below `size`."""
        places = _sorted(keys, size)
        ordered = keys[places]
        first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(keys)])
        starts = np.append(first, len(keys))
        return cls(places, ordered[first], starts, np.arange(len(keys)) - np.repeat(first, np.diff(starts)))


def _items(images: ImageBoxes, groups: DetectionGroups, overlaps: Overlaps, truths: Indices, keys: Indices) -> Items:
    """Groups with their truths, which go by increasing keys."""
    crowd, areas = images.field(TRUTHS, "iscrowd")[truths] != 0, images.truth_areas[truths]
    ignored = np.stack([crowd | (areas < low) | (areas > high) for _, low, high in AREAS])
    first, stop = np.searchsorted(keys, groups.keys), np.searchsorted(keys, groups.keys, "right")
    return Items(
        overlaps, groups.places, groups.starts, (first, stop), crowd.astype(np.uint8), ignored.astype(np.uint8)
    )


def _sorted(keys: Indices, size: int) -> Indices:
    """The stable order of integers from 0 to below `size`, by digits of 16 bits, which NumPy sorts in one pass."""
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    for shift in range(16, (size - 1).bit_length(), 16):
        order = order[np.argsort((keys[order] >> shift).astype(np.uint16), kind="stable")]
    return order


def write_matches(flags: Flags, items: Items, thresholds: Array) -> None:
    """Write the flags `(areas, thresholds, detections)` that are matched: 1, or 2 with a truth that is ignored."""
    if library() is None:
        match_in_blocks(flags, items, thresholds)
        return
    overlaps = items.overlaps
    boxes = _contiguous(*overlaps.boxes) if isinstance(overlaps, BoxOverlaps) else None
    masks = (overlaps.intersections, *overlaps.index) if isinstance(overlaps, MaskOverlaps) else None
    areas = _contiguous(*overlaps.areas)
    groups = (items.places, items.starts, items.truths)
    match(flags, boxes, areas, masks, *groups, items.crowd, items.ignored, thresholds)


def _contiguous(detections: Array, truths: Array) -> tuple[Array, Array]:
    return np.ascontiguousarray(detections), np.ascontiguousarray(truths)


def match_in_blocks(flags: Flags, items: Items, thresholds: Array) -> None:
    """The same without compiled code: many groups at once, detection by detection."""
    rows, columns = np.diff(items.starts), items.truths[1] - items.truths[0]
    by_size = np.argsort(columns, kind="stable")
    by_size = by_size[columns[by_size] > 0]
    cells = columns[by_size] * flags.shape[0] * flags.shape[1]
    start = 0
    while start < len(by_size):
        widest = np.maximum.accumulate(cells[start:]) * np.arange(1, len(cells) - start + 1)
        stop = start + max(1, int(np.searchsorted(widest, _ELEMENTS)))
        block = by_size[start:stop]
        _match_block(flags, items, thresholds, block[np.argsort(-rows[block], kind="stable")])
        start = stop


def _match_block(flags: Flags, items: Items, thresholds: Array, groups: Indices) -> None:
    rows, first = np.diff(items.starts)[groups], items.truths[0][groups]
    columns = items.truths[1][groups] - first
    width = int(columns.max())
    absent = np.arange(width) >= columns[:, None]
    truths = np.where(absent, 0, first[:, None] + np.arange(width))
    crowd = items.crowd[truths].astype(bool)
    ignored = items.ignored[:, truths].astype(bool)[:, None]  # (areas, 1, groups, width)
    taken = np.zeros((len(items.ignored), len(thresholds), len(groups), width), bool)
    for rank in range(int(rows.max())):
        count = int((rows > rank).sum())  # the groups with most detections come first
        detections = items.starts[groups[:count]] + rank
        ious = items.overlaps.ratios(detections[:, None], truths[:count], crowd[:count])
        free = (~taken[:, :, :count] | crowd[:count]) & ~absent[:count] & (ious >= thresholds[:, None, None])
        counted = free & ~ignored[:, :, :count]
        candidates = np.where(counted.any(-1, keepdims=True), counted, free)
        best = width - 1 - np.argmax(np.where(candidates, ious, -1)[..., ::-1], -1)  # of equals the last
        found = candidates.any(-1)
        chosen = (np.arange(width) == best[..., None]) & found[..., None]
        taken[:, :, :count] |= chosen
        others = flags[:, :, items.places[detections]]
        right = found + (chosen & ignored[:, :, :count]).any(-1).astype(np.uint8)
        flags[:, :, items.places[detections]] = np.where(found, right, others)
