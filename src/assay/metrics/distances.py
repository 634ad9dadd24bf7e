"""Distances between points; the temporary matrices are of bounded size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

CHUNK = 1 << 21
"""How many distances are in memory at a time: 16 MiB."""


def chunks(size: int, width: int) -> Iterator[slice]:
    """Slices of so many rows, each with at most `CHUNK` numbers where a row has `width`."""
    step = max(1, CHUNK // max(width, 1))
    return (slice(start, start + step) for start in range(0, size, step))


def squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The squared Euclidean distance of every row of `a` to every row of `b`, computed from their differences."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(a, b, "sqeuclidean"))
