"""The compiled form of `tally.points.cluster_sums` without weights, and means of clusters with distances to them."""

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


def sums_and_means(points: np.ndarray, cluster: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The sum of the points of each cluster, and their mean, each number rounded once.

    None without compiled code, or where a number is not finite or the numbers spread over too many bits.

    Args:
        points: float64 of shape `(rows, features)`, at least one row.
        cluster: int64 of shape `(rows,)`, of which each number up to the largest occurs.

    Returns:
        Two float64 arrays of shape `(clusters, features)`.
    """
    if library() is None:
        return None
    (rows, features), clusters, done = points.shape, int(cluster.max()) + 1, ctypes.c_int64()
    sums, means = np.empty((2, clusters, features))
    given = [np.ascontiguousarray(each) for each in (points, cluster)]
    places = [each.ctypes.data for each in (*given, sums, means)]
    call("cluster_means", rows, features, clusters, *places, ctypes.byref(done))
    return (sums, means) if done.value else None


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
