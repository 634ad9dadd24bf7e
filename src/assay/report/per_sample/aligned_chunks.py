"""Values of the same samples in two reports, some thousand at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from assay.report.per_sample.packed_array import CHUNK_ROWS, Array, PackedArray


def are_in_order(position: Array) -> bool:
    """Whether positions are 0, 1, 2, ...: two reports have the same samples in the same order."""
    starts = range(0, len(position), CHUNK_ROWS)
    return all(
        np.array_equal(position[start : start + CHUNK_ROWS], np.arange(start, min(start + CHUNK_ROWS, len(position))))
        for start in starts
    )


def reordered(values: Array, position: Array) -> Array:
    """Values at some positions; the values themselves where these are 0, 1, 2, ..."""
    return values if are_in_order(position) else values[position]


def aligned_chunks(first: PackedArray, second: PackedArray, position: Array) -> Iterator[tuple[Array, Array]]:
    """The values of the same samples, `CHUNK_ROWS` at a time.

    Args:
        first: of one report.
        second: of the other.
        position: for each sample of the first report its position in the second.

    Example:
        >>> [(a, b)] = aligned_chunks(PackedArray.of([1, 2]), PackedArray.of([5, 9]), np.array([1, 0]))
        >>> a, b
        (array([1, 2]), array([9, 5]))
    """
    if are_in_order(position):
        yield from zip(first.chunks(), second.chunks(), strict=True)
        return
    values, start = second.values, 0
    for chunk in first.chunks():
        yield chunk, values[position[start : start + len(chunk)]]
        start += len(chunk)
