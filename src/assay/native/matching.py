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
    places: np.ndarray,
    starts: np.ndarray,
    truths: tuple[np.ndarray, np.ndarray],
    crowd: np.ndarray,
    ignored: np.ndarray,
    thresholds: np.ndarray,
) -> None:
    """Write the flags of detections in groups that are matched; all arrays are contiguous.

    Args:
        flags: uint8 `(areas, thresholds, detections)`.
        boxes: float64 `(n, 4)` of detections and truths: left, top, width, height; None with intersections.
        areas: float64 `(n,)` of both.
        intersections: of masks, int64: numbers of pixels, and whose sum says where among them that of a detection and
            a truth is: one index for each detection and one for each truth. None with boxes.
        places: int64 `(detections,)`: where the flags of each are.
        starts: int64 `(groups + 1,)`: where the detections of each group begin.
        truths: int64 `(groups,)`: where the truths of each group begin and end.
        crowd: uint8 `(truths,)`.
        ignored: uint8 `(areas, truths)`.
        thresholds: float64.
    """
    rows, columns = np.diff(starts), truths[1] - truths[0]
    room = np.empty(int((rows * (columns + 1)).max(initial=0)))
    is_matched = np.empty(int(columns.max(initial=0)), np.uint8)
    overlaps = (*(boxes or (None, None)), *areas, *(intersections or (None, None, None)))
    groups = (places, starts, *truths, len(rows))
    _call(
        "match",
        flags,
        *overlaps,
        *groups,
        crowd,
        ignored,
        *ignored.shape[::-1],
        thresholds,
        len(thresholds),
        room,
        is_matched,
    )


def average_precision(
    precision: np.ndarray,
    hits: np.ndarray,
    flags: np.ndarray,
    last: np.ndarray,
    within: np.ndarray,
    starts: np.ndarray,
    positives: np.ndarray,
    recalls: np.ndarray,
) -> None:
    """Write the average precisions and numbers of hits, of detections sorted by class and falling score.

    Args:
        precision: float64 `(areas, thresholds, classes)`, NaN, which classes without truths keep.
        hits: int64 `(areas, limits, classes, thresholds)`, zeros.
        flags: uint8 `(areas, thresholds, detections)`.
        last: bool `(detections,)`: which are the last of their class with their score.
        within: bool `(limits, detections)`: which are among the first of their image.
        starts: int64 `(classes + 1,)`: where the detections of each class begin.
        positives: int64 `(areas, classes)`.
        recalls: float64, increasing.
    """
    largest = int(np.diff(starts).max(initial=0)) + 1
    steps, highest = np.empty((largest, 2), np.int64), np.empty(largest)
    curves = (starts, positives, *precision.shape, recalls, len(recalls), steps, highest)
    _call("average_precision", precision, hits, flags, last, within, len(within), *curves)


def _call(name: str, *arguments: object) -> None:
    call(name, *(_address(each) if isinstance(each, np.ndarray) else each for each in arguments))


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
