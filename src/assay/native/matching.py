"""The compiled form of `metrics.detection.matching.matched`: the same flags."""

from __future__ import annotations

import ctypes

import numpy as np

from assay.native.library import call


def match_boxes(
    flags: np.ndarray,
    boxes: tuple[np.ndarray, np.ndarray],
    starts: tuple[np.ndarray, np.ndarray],
    crowd: np.ndarray,
    ignored: np.ndarray,
    thresholds: np.ndarray,
) -> None:
    """Write the flags `(areas, thresholds, detections)` of detections in groups; all arrays are contiguous.

    Args:
        flags: uint8, zeros.
        boxes: float64 `(n, 4)` of detections and truths: left, top, width, height.
        starts: int64 `(groups + 1,)`: where the detections and the truths of each group begin.
        crowd: uint8 `(truths,)`.
        ignored: uint8 `(areas, truths)`.
        thresholds: float64.
    """
    rows, columns = (np.diff(each) for each in starts)
    ious = np.empty(int((rows * columns).max(initial=0)))
    is_matched = np.empty(int(columns.max(initial=0)), np.uint8)
    groups, areas, count = len(rows), len(ignored), len(thresholds)
    arguments = (flags, *boxes, *starts, groups, crowd, ignored, areas, thresholds, count, ious, is_matched)
    call("match_boxes", *(each if isinstance(each, int) else ctypes.c_void_p(each.ctypes.data) for each in arguments))
