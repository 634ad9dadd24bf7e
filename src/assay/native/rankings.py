"""The compiled form of `tally.curves.of_samples` for float32 scores without weights: the same counts.

Also how many samples of the other kind are below each sample, what groups of samples contribute to areas under ROC
curves, also of many parts of the samples at once, the areas of samples that are resampled by groups, and the inversions
that Kendall's correlation counts.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from assay.native.library import call

Array = np.ndarray[Any, Any]

MOST_ORDERED = 1 << 30
"""Rows that `order_scores` takes fewer of."""


class _Ranked(ctypes.Structure):
    """The scores of one class or label, as `struct ranked` in C has them."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("scores", "classes", "groups")),
        *((name, ctypes.c_int64) for name in ("rows", "score_step", "class_step", "positive")),
    )

    @classmethod
    def of(cls, scores: Tensor, classes: Tensor, groups: Tensor | None, positive: int) -> _Ranked:
        """See `area_sums`; without groups each row is one."""
        lists = (None if each is None else each.data_ptr() for each in (scores, classes, groups))
        return cls(*lists, len(scores), scores.stride(0), classes.stride(0), positive)


def order_scores(scores: Tensor, classes: Tensor, positive: int) -> Array:
    """The rows of a class or label from the highest score down, each in one number for what follows: uint32.

    Args:
        scores: float32 of shape `(rows,)`, without NaN, fewer than `MOST_ORDERED`; both zeros are one score.
        classes: int8 of the same shape; rows below 0 are left out.
        positive: the class of positives; all others are negatives.
    """
    order, ranked = np.empty(len(scores), np.uint32), ctypes.c_int64()
    described = _Ranked.of(scores, classes, None, positive)
    call("order_scores", ctypes.byref(described), _room(scores), order.ctypes.data, ctypes.byref(ranked))
    return order[: ranked.value]


class Levels(NamedTuple):
    """The distinct scores of a ranking, from the highest down.

    Attributes:
        rows: the first row of each.
        positives: how many positives have it.
        negatives: how many negatives.
        pairs: what `tally.scores.curves.pairs_of` gives.
    """

    rows: Array
    positives: Array
    negatives: Array
    pairs: tuple[int, int, int]


def count_levels(order: Array) -> Levels:
    """The distinct scores of what `order_scores` gives."""
    counts, totals = np.empty((3, len(order)), np.int64), np.empty(4, np.int64)
    call("count_levels", len(order), order.ctypes.data, *(each.ctypes.data for each in counts), totals.ctypes.data)
    distinct, above, below, right = totals.tolist()
    rows, positives, negatives = counts[:, :distinct]
    return Levels(rows, positives, negatives, (right, above, below))


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
    ranked, sums = _Ranked.of(scores, classes, groups, positive), np.zeros((count, 4), np.int64)
    call("area_sums", ctypes.byref(ranked), _room(scores), sums.ctypes.data)
    return sums


def area_sums_of_cells(order: Array, cells: Array, part_of: Array) -> Array:
    """`area_sums` of cells, each beside the samples of the part that it is in: int64 `(cells, 4)`.

    Args:
        order: what `order_scores` gives.
        cells: the cell of each row, contiguous int32.
        part_of: the part of each cell, from 0, contiguous int32.
    """
    sums, counts = np.zeros((len(part_of), 4), np.int64), np.zeros((int(part_of.max(initial=-1)) + 1, 4), np.int64)
    lists = order.ctypes.data, cells.ctypes.data, len(part_of), part_of.ctypes.data
    call("area_sums_of_cells", len(order), *lists, counts.ctypes.data, sums.ctypes.data)
    return sums


def pairs_of_draws(scores: Tensor, classes: Tensor, groups: Tensor, positive: int, draws: Array) -> Array:
    """Of each draw of groups what `Tally.pairs_of_draws` says, `(3, draws)`, for sums below 2 ** 53.

    Args:
        scores: see `area_sums`, as what follows.
        classes: see there.
        groups: see there.
        positive: see there.
        draws: how often each group counts in each draw, `(draws, groups)`.
    """
    ranked, count = _Ranked.of(scores, classes, groups, positive), len(draws)
    times, pairs = np.ascontiguousarray(draws.T, np.float64), np.zeros((5, count))
    call("pairs_of_draws", ctypes.byref(ranked), _room(scores), times.ctypes.data, count, pairs.ctypes.data)
    return pairs[:3]


def count_inversions(ranks: Array) -> int:
    """How many pairs of ranks below 2 ** 31 stand in falling order, in `O(n log n)`."""
    numbers, inversions = np.array(ranks, np.int32), ctypes.c_int64()
    room = np.empty_like(numbers)
    call("count_inversions", len(numbers), numbers.ctypes.data, room.ctypes.data, ctypes.byref(inversions))
    return inversions.value


def _room(scores: Tensor) -> Tensor:
    """Room for two numbers a row."""
    return torch.empty(2 * len(scores), dtype=torch.int64, device="cpu")
