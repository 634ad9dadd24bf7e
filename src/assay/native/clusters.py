"""The compiled form of `tally.points.cluster_sums` without weights, and of the distances of points to centroids."""

from __future__ import annotations

import ctypes

import numpy as np
import torch
from torch import Tensor

from assay.native.library import call, library, takes


def add_points(limbs: Tensor, counts: Tensor, points: Tensor, cluster: Tensor, origin: int) -> bool:
    """Add points to the sums of their clusters; false where that is not possible, and then nothing was counted.

    It is not where a number is not finite, or a cluster out of range.

    Args:
        limbs: int64 of shape `(clusters, features, words)`, contiguous.
        counts: int64 of shape `(clusters,)`, the numbers of points.
        points: of shape `(rows, features)`, in host memory.
        cluster: of shape `(rows,)`, in host memory.
        origin: the first bit of the limbs weighs `2 ** origin`.
    """
    if not takes(points, dtypes=(torch.float32, torch.float64)) or not takes(cluster, dtypes=(torch.int64,)):
        return False
    points, cluster = points.contiguous(), cluster.contiguous()
    (rows, features), (clusters, _, words) = points.shape, limbs.shape
    name, done = "float" if points.dtype == torch.float32 else "double", ctypes.c_int64()
    places = words, origin, limbs, counts, ctypes.byref(done)
    call(f"sum_clusters_of_{name}", rows, features, clusters, points, cluster, *places)
    return bool(done.value)


def radii(points: np.ndarray, cluster: np.ndarray, centroids: np.ndarray) -> np.ndarray | None:
    """The Euclidean distance of each point to the centroid of its cluster, as NumPy computes it; None without code.

    Args:
        points: float64 of shape `(rows, features)`.
        cluster: int64 of shape `(rows,)`, valid places of centroids.
        centroids: float64 of shape `(clusters, features)`.
    """
    if library() is None:
        return None
    found = np.empty(len(points))
    given = [np.ascontiguousarray(each) for each in (points, cluster, centroids)]
    call("radii", *points.shape, *(each.ctypes.data for each in (*given, found)))
    return found
