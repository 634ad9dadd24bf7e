"""The compiled form of `tally.curves.of_samples` for float32 scores without weights: the same counts.

Also how many samples of the other kind are below each sample, what groups of samples contribute to areas under ROC
curves, also of many parts of the samples at once, the areas of samples that are resampled by groups, the inversions
that Kendall's correlation counts, and what `numpy.lexsort` gives.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from assay.native.library import call, compiled_function

Array = np.ndarray[Any, Any]

MOST_ORDERED = 1 << 30
"""Rows, or groups of them, that `order_scores` takes fewer of."""

MOST_ROWS = 1 << 32
"""Rows that `order_rows` takes fewer of."""


_RANKED = struct.Struct("7q")
"""The scores of one class or label: `struct ranked` in C."""


def _ranked(scores: Tensor, classes: Tensor, groups: Tensor | None, positive: int) -> bytes:
    """See `area_sums`; without groups each row is one."""
    of_groups = 0 if groups is None else groups.data_ptr()
    lists = scores.data_ptr(), classes.data_ptr(), of_groups
    return _RANKED.pack(*lists, scores.shape[0], scores.stride(0), classes.stride(0), positive)


def order_scores(scores: Tensor, classes: Tensor, positive: int, groups: Tensor | None = None) -> Array:
    """The rows of a class or label from the highest score down, each in one number for what follows: uint32.

    Args:
        scores: float32 of shape `(rows,)`, without NaN; both zeros are one score.
        classes: int8 of the same shape; rows below 0 are left out.
        positive: the class of positives; all others are negatives.
        groups: what the rows are told by, contiguous int32 from 0; by default their numbers. Below `MOST_ORDERED`.
    """
    order = np.empty(scores.shape[0], np.uint32)
    described, room = _ranked(scores, classes, groups, positive), _room(scores)
    ranked = compiled_function("order_scores", 3)(described, room.data_ptr(), order.ctypes.data)
    return order[:ranked]


class Levels(NamedTuple):
    """The distinct scores of a ranking, from the highest down.

    Attributes:
        rows: the first row of each.
        positives: how many positives have it.
        negatives: how many negatives.
        hits: how many positives have it or a higher one.
        alarms: how many negatives.
        pairs: what `tally.scores.curves.pairs_of` gives.
        order: what `order_scores` gives.
    """

    rows: Array
    positives: Array
    negatives: Array
    hits: Array
    alarms: Array
    pairs: tuple[int, int, int]
    order: Array


def rank_scores(scores: Tensor, classes: Tensor, positive: int) -> Levels:
    """The distinct scores of what `order_scores` is given."""
    rows = scores.shape[0]
    order, numbers = np.empty(rows, np.uint32), np.empty(5 * rows + 4, np.int64)
    rank, described = compiled_function("rank_scores", 3), _ranked(scores, classes, None, positive)
    ranked = rank(described, order.ctypes.data, numbers.ctypes.data)
    distinct, above, below, right = numbers[-4:].tolist()
    first, positives, negatives, hits, alarms = numbers[:-4].reshape(5, rows)[:, :distinct]
    return Levels(first, positives, negatives, hits, alarms, (right, above, below), order[:ranked])


def twice_below(order: Array, rows: int) -> Array:
    """Twice how many negatives have a lower score than a positive, or positives than a negative; equal ones count once.

    Args:
        order: what `order_scores` gives.
        rows: how many scores it was given.

    Returns:
        int64 of shape `(rows,)`; 0 for rows that are left out.
    """
    twice = np.zeros(rows, np.int64)
    call("twice_below", len(order), order.ctypes.data, twice.ctypes.data)
    return twice


def area_sums(scores: Tensor, classes: Tensor, groups: Tensor, positive: int, count: int) -> Array:
    """What groups of samples contribute to the area under a ROC curve, see `Tally.area_sums`: int64 `(count, 4)`.

    Args:
        scores: see `order_scores`, but any number of them.
        classes: see there.
        groups: the group of each row, contiguous int32.
        positive: see there.
        count: how many groups there are.
    """
    ranked, sums = _ranked(scores, classes, groups, positive), np.zeros((count, 4), np.int64)
    call("area_sums", ranked, _room(scores), sums.ctypes.data)
    return sums


def area_sums_of_cells(order: Array, cells: Array, part_of: Array) -> Array:
    """`area_sums` of cells, each beside the samples of the part that it is in: int64 `(cells, 4)`.

    Args:
        order: what `order_scores` gives.
        cells: the cell of each row, or of each of the groups that it was given, contiguous int32.
        part_of: the part of each cell, from 0, contiguous int32.
    """
    sums, counts = np.zeros((len(part_of), 4), np.int64), np.zeros((int(part_of.max(initial=-1)) + 1, 4), np.int64)
    lists = order.ctypes.data, cells.ctypes.data, len(part_of), part_of.ctypes.data
    call("area_sums_of_cells", len(order), *lists, counts.ctypes.data, sums.ctypes.data)
    return sums


def join_cells(cells: Array, others: Array, count: int, other_count: int) -> tuple[Array, Array]:
    """Pairs of cells that rows are in, numbered in the order in which they come.

    Args:
        cells: a cell of each row, below `count`.
        others: another cell of each, below `other_count`.
        count: how many cells there are.
        other_count: how many others there are.

    Returns:
        The number of the pair of each row, int32 `(N,)`; and each pair as `cell * other_count + other`, int64.
    """
    cells, others = (np.ascontiguousarray(each, np.int32) for each in (cells, others))
    numbers, joint = np.full(count * other_count, -1, np.int32), np.empty_like(cells)
    lists = cells.ctypes.data, others.ctypes.data, other_count, numbers.ctypes.data, joint.ctypes.data
    call("join_cells", len(cells), *lists)
    present = np.flatnonzero(numbers >= 0)
    pairs = np.empty_like(present)
    pairs[numbers[present]] = present
    return joint, pairs


def pairs_of_draws(scores: Tensor, classes: Tensor, groups: Tensor, positive: int, draws: Array) -> Array:
    """Of each draw of groups what `Tally.pairs_of_draws` says, `(3, draws)`, for sums below 2 ** 53.

    Args:
        scores: see `area_sums`, as what follows.
        classes: see there.
        groups: see there.
        positive: see there.
        draws: how often each group counts in each draw, `(draws, groups)`.
    """
    ranked, count = _ranked(scores, classes, groups, positive), len(draws)
    times, pairs = np.ascontiguousarray(draws.T, np.float64), np.zeros((5, count))
    call("pairs_of_draws", ranked, _room(scores), times.ctypes.data, count, pairs.ctypes.data)
    return pairs[:3]


def count_inversions(ranks: Array) -> int:
    """How many pairs of ranks below 2 ** 31 stand in falling order, in `O(n log n)`."""
    numbers, inversions = np.array(ranks, np.int32), ctypes.c_int64()
    room = np.empty_like(numbers)
    call("count_inversions", len(numbers), numbers.ctypes.data, room.ctypes.data, ctypes.byref(inversions))
    return inversions.value


def rank_products(x: Array, y: Array) -> tuple[int, int, int]:
    """The sums of products of twice the centred ranks: of x with y, of x with itself, and of y with itself.

    Args:
        x: float32 of shape `(rows,)`, contiguous, without NaN, fewer than `MOST_ORDERED`; equal numbers share a rank.
        y: the same.
    """
    rows = len(x)
    room = np.empty(4 * rows + 6, np.int64)
    at = room.ctypes.data
    multiply = compiled_function("rank_products", 5)
    multiply(rows, x.ctypes.data, y.ctypes.data, at, at + 32 * rows)
    high, low, high_x, low_x, high_y, low_y = room[-6:].tolist()
    return (high << 32) + low, (high_x << 32) + low_x, (high_y << 32) + low_y


def _room(scores: Tensor) -> Tensor:
    """Room for two numbers a row, of NumPy, which has much of it in huge pages."""
    return torch.from_numpy(np.empty(2 * scores.shape[0], np.int64))


def order_rows(keys: Sequence[Array]) -> Array:
    """The rows sorted by the last key, those that are tied by the one before it, and so on: int64 `(N,)`.

    Args:
        keys: integers `(N,)`, of any size, fewer than `MOST_ROWS`; equal rows stay in their order.
    """
    rows, described = len(keys[0]), [number for key in keys for number in _described(key)]
    order, room = np.empty(rows, np.int64), np.empty(2 * rows, np.uint64)
    numbers = array("q", described)
    call("order_rows", rows, len(numbers) // 4, numbers.buffer_info()[0], room.ctypes.data, order.ctypes.data)
    return order


def _described(key: Array) -> list[int]:
    """A key as `struct sort_key` in C; one of 64 bits as two, the less significant half first."""
    size, (step,) = key.itemsize, key.strides
    flipped = 0 if key.dtype.kind == "u" else 1 << (8 * min(size, 4) - 1)
    if size < 8:
        return [key.ctypes.data, size, step, flipped]
    low, high = (0, 4) if sys.byteorder == "little" else (4, 0)
    return [key.ctypes.data + low, 4, step, 0, key.ctypes.data + high, 4, step, flipped]
