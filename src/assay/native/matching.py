"""The compiled forms of the loops in `metrics.detection`: the same flags, and the same precisions."""

from __future__ import annotations

import ctypes

import numpy as np

from assay.native.library import call


def match(
    flags: np.ndarray,
    boxes: tuple[np.ndarray, np.ndarray] | None,
    areas: tuple[np.ndarray, np.ndarray],
    intersections: tuple[np.ndarray, np.ndarray, np.ndarray] | None,
    starts: tuple[np.ndarray, np.ndarray],
    crowd: np.ndarray,
    ignored: np.ndarray,
    thresholds: np.ndarray,
) -> None:
    """Write the flags `(areas, thresholds, detections)` of detections in groups; all arrays are contiguous.

    Args:
        flags: uint8, zeros.
        boxes: float64 `(n, 4)` of detections and truths: left, top, width, height; None with intersections.
        areas: float64 `(n,)` of both.
        intersections: of masks, int64: numbers of pixels, and whose sum says where among them that of a detection and
            a truth is: one index for each detection and one for each truth. None with boxes.
        starts: int64 `(groups + 1,)`: where the detections and the truths of each group begin.
        crowd: uint8 `(truths,)`.
        ignored: uint8 `(areas, truths)`.
        thresholds: float64.
    """
    rows, columns = (np.diff(each) for each in starts)
    ious = np.empty(int((rows * columns).max(initial=0)))
    is_matched = np.empty(int(columns.max(initial=0)), np.uint8)
    groups, ranges, count = len(rows), len(ignored), len(thresholds)
    overlaps = (*(boxes or (None, None)), *areas, *(intersections or (None, None, None)))
    arguments = (flags, *overlaps, *starts, groups, crowd, ignored, ranges, thresholds, count, ious, is_matched)
    _call("match", *arguments)


def precision(
    values: np.ndarray,
    hits: np.ndarray,
    misses: np.ndarray,
    last: np.ndarray,
    starts: np.ndarray,
    positives: np.ndarray,
    recalls: np.ndarray,
) -> None:
    """Write the precisions `(areas, thresholds, classes, recalls)` of detections sorted by class and falling score.

    Args:
        values: float64, NaN, which classes without truths keep.
        hits: bool `(areas, thresholds, detections)`.
        misses: likewise.
        last: bool `(detections,)`: which are the last of their class with their score.
        starts: int64 `(classes + 1,)`: where the detections of each class begin.
        positives: int64 `(areas, classes)`.
        recalls: float64, increasing.
    """
    areas, thresholds, classes, count = values.shape
    room = np.empty(2 * int(np.diff(starts).max(initial=0)))
    _call("precision", values, hits, misses, last, starts, positives, areas, thresholds, classes, recalls, count, room)


def _call(name: str, *arguments: object) -> None:
    call(name, *(_address(each) if isinstance(each, np.ndarray) else each for each in arguments))


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
