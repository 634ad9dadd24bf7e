"""Distances between kept points and exact sums of them; the temporary matrices are of bounded size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from assay.errors import InvalidValuesError, describe

CHUNK = 1 << 21
"""Distances that are there at a time: 16 MiB."""


def chunks(size: int, width: int) -> Iterator[slice]:
    """Slices of so many rows, each with at most `CHUNK` numbers where a row has `width`."""
    step = max(1, CHUNK // max(width, 1))
    return (slice(start, start + step) for start in range(0, size, step))


def squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The squared Euclidean distance of every row of `a` to every row of `b`, computed from their differences."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(a, b, "sqeuclidean"))


def whole_weights(metric: str, weights: np.ndarray | None, size: int) -> np.ndarray:
    """How often each of the points occurs, in float64.

    Raises:
        InvalidValuesError: a weight is no integer.
    """
    if weights is None:
        return np.ones(size)
    if weights.dtype.kind == "f" and (weights != np.rint(weights)).any():
        do = "Scale them to numbers of points"
        got = f"fractions for {metric}"
        raise InvalidValuesError(describe("weights", got, "integers, as pairs of points are counted", do))
    return weights.astype(np.float64)
