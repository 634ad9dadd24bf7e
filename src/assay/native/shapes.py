"""The compiled form of the distances in `encode.points`, where points have few dimensions."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from assay.native.library import call, library

MOST_DIMENSIONS = 16


def takes_points(dimensions: int) -> bool:
    """Whether there is compiled code for points of so many dimensions."""
    return library() is not None and dimensions <= MOST_DIMENSIONS


def disparities(preds: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """The Procrustes disparities of pairs of clouds `(N, M, D)`.

    -1 where all points of preds are the same, -2 where those of target are.
    """
    clouds, points, dimensions = preds.shape
    found, room = np.empty(clouds), np.empty(2 * points * dimensions)
    arrays = found, np.ascontiguousarray(preds), np.ascontiguousarray(target)
    addresses = [ctypes.c_void_p(each.ctypes.data) for each in (*arrays, room)]
    call("procrustes", *addresses[:3], clouds, points, dimensions, addresses[3])
    return found
