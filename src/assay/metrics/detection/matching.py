"""Detections matched with truths as COCO does it: greedily from the highest score, in each image and class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
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
        return np.divide(both, union, out=np.zeros(both.shape), where=both > 0)


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
    """Detections and truths in groups of one image and class, whose detections go from the highest score to the lowest.

    Args:
        overlaps: the boxes or masks of detections and of truths.
        starts: where the detections and the truths of each group begin, and where the last end.
        crowd: which truths are crowds.
        ignored: of shape `(areas, truths)`: those that need not be found.
    """

    overlaps: Overlaps
    starts: tuple[Indices, Indices]
    crowd: Flags
    ignored: Flags


@dataclass(frozen=True, eq=False)
class DetectionMatches:
    """What was matched: detections, and for each range of areas and class the number of truths that are to be found.

    Args:
        labels: the class of each detection, an index.
        scores: its score.
        rank: how many detections of the same image and class come before it.
        hits: `(areas, thresholds, detections)`: matched with a truth that counts.
        misses: the same: matched with none.
        positives: `(areas, classes)`.
    """

    labels: Indices
    scores: Array
    rank: Indices
    hits: NDArray[np.bool_]
    misses: NDArray[np.bool_]
    positives: Indices


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
    scores = images.field(DETECTIONS, "scores").astype(np.float64)
    order, truths = np.lexsort((-scores, keys[DETECTIONS])), np.argsort(keys[TRUTHS], kind="stable")
    rank = np.arange(len(order)) - np.searchsorted(keys[DETECTIONS][order], keys[DETECTIONS][order])
    order, rank = order[rank < most], rank[rank < most]

    sorted_keys = keys[DETECTIONS][order], keys[TRUTHS][truths]
    groups = _common(*sorted_keys)
    places = [_positions(each, groups) for each in sorted_keys]
    overlaps = overlaps_of(images, iou_type).select(order, truths)
    crowd, areas = images.field(TRUTHS, "iscrowd")[truths] != 0, images.truth_areas[truths]
    ignored = np.stack([crowd | (areas < low) | (areas > high) for _, low, high in AREAS])

    inside, starts = zip(*places, strict=True)
    items = Items(
        overlaps.select(*inside),
        starts,
        np.ascontiguousarray(crowd[inside[1]], np.uint8),
        np.ascontiguousarray(ignored[:, inside[1]], np.uint8),
    )
    flags = np.zeros((len(AREAS), len(thresholds), len(order)), np.uint8)
    flags[:, :, inside[0]] = matched(items, np.minimum(thresholds, 1 - 1e-10))
    sizes = overlaps.areas[0]
    within = np.stack([(sizes >= low) & (sizes <= high) for _, low, high in AREAS])
    positives = np.stack([np.bincount(labels[TRUTHS][truths][~each], minlength=classes) for each in ignored])
    misses = (flags == 0) & within[:, None]
    if (unknown := images.arrays.items[DETECTIONS].get(UNKNOWN)) is not None:
        misses &= ~unknown[order]
    return DetectionMatches(labels[DETECTIONS][order], scores[order], rank, flags == 1, misses, positives)


def _common(first: Indices, second: Indices) -> Indices:
    """The distinct numbers that are in both of two sorted arrays."""
    one, other = (each[np.append(True, each[1:] != each[:-1])[: len(each)]] for each in (first, second))
    place = np.searchsorted(other, one)
    return np.asarray(one[np.append(other, -1)[place] == one])


def _positions(keys: Indices, groups: Indices) -> tuple[Indices, Indices]:
    """Where the items of groups are among sorted keys, and where each group begins among those."""
    first, last = np.searchsorted(keys, groups), np.searchsorted(keys, groups, "right")
    starts = np.append(0, np.cumsum(last - first))
    inside = np.repeat(first - starts[:-1], last - first) + np.arange(int(starts[-1]))
    return inside, starts


def matched(items: Items, thresholds: Array) -> Flags:
    """Flags `(areas, thresholds, detections)`: 1 matched, 2 matched with a truth that is ignored, 0 neither."""
    overlaps = items.overlaps
    flags = np.zeros((len(items.ignored), len(thresholds), len(overlaps.areas[0])), np.uint8)
    if library() is None:
        match_in_blocks(flags, items, thresholds)
        return flags
    boxes = _contiguous(*overlaps.boxes) if isinstance(overlaps, BoxOverlaps) else None
    masks = (overlaps.intersections, *overlaps.index) if isinstance(overlaps, MaskOverlaps) else None
    areas = _contiguous(*overlaps.areas)
    match(flags, boxes, areas, masks, items.starts, items.crowd, items.ignored, thresholds)
    return flags


def _contiguous(detections: Array, truths: Array) -> tuple[Array, Array]:
    return np.ascontiguousarray(detections), np.ascontiguousarray(truths)


def match_in_blocks(flags: Flags, items: Items, thresholds: Array) -> None:
    """The same without compiled code: many groups at once, detection by detection."""
    rows, columns = (np.diff(each) for each in items.starts)
    by_size = np.argsort(columns, kind="stable")
    cells = columns[by_size] * flags.shape[0] * flags.shape[1]
    start = 0
    while start < len(by_size):
        widest = np.maximum.accumulate(cells[start:]) * np.arange(1, len(cells) - start + 1)
        stop = start + max(1, int(np.searchsorted(widest, _ELEMENTS)))
        block = by_size[start:stop]
        _match_block(flags, items, thresholds, block[np.argsort(-rows[block], kind="stable")])
        start = stop


def _match_block(flags: Flags, items: Items, thresholds: Array, groups: Indices) -> None:
    rows, columns = (np.diff(each)[groups] for each in items.starts)
    width = int(columns.max())
    absent = np.arange(width) >= columns[:, None]
    truths = np.where(absent, 0, items.starts[1][groups][:, None] + np.arange(width))
    crowd = items.crowd[truths].astype(bool)
    ignored = items.ignored[:, truths].astype(bool)[:, None]  # (areas, 1, groups, width)
    taken = np.zeros((len(items.ignored), len(thresholds), len(groups), width), bool)
    for rank in range(int(rows.max())):
        count = int((rows > rank).sum())  # the groups with most detections come first
        detections = items.starts[0][groups[:count]] + rank
        ious = items.overlaps.ratios(detections[:, None], truths[:count], crowd[:count])
        free = (~taken[:, :, :count] | crowd[:count]) & ~absent[:count] & (ious >= thresholds[:, None, None])
        counted = free & ~ignored[:, :, :count]
        candidates = np.where(counted.any(-1, keepdims=True), counted, free)
        best = width - 1 - np.argmax(np.where(candidates, ious, -1)[..., ::-1], -1)  # of equals the last
        found = candidates.any(-1)
        chosen = (np.arange(width) == best[..., None]) & found[..., None]
        taken[:, :, :count] |= chosen
        flags[:, :, detections] = found + (chosen & ignored[:, :, :count]).any(-1).astype(np.uint8)
