"""The compiled forms of how `decide` decides, for float32: the same labels and ranks.

Also predicted labels counted by true ones, as `tally.labels.confusion` counts them.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.native.library import call, compiled_function


def first_largest(scores: Tensor) -> Tensor:
    """The lowest index of the highest score in each row of `(N, C)`, int64; `C` where a score of the row is NaN."""
    rows, classes = scores.shape
    labels = torch.empty(rows, dtype=torch.int64, device="cpu")
    if has_columns(scores):
        call("first_largest_column", labels, scores, rows, classes, scores.stride(1))
    else:
        call("first_largest", labels, scores.contiguous(), rows, classes)
    return labels


def above(scores: Tensor, level: float, logits: bool) -> Tensor:
    """1 for each score above the level, else 0, int64; 2 where it is NaN, or outside [0, 1] and no logit."""
    labels = torch.empty(scores.shape, dtype=torch.int64, device="cpu")
    call("above", labels, scores.contiguous(), scores.numel(), ctypes.byref(ctypes.c_float(level)), logits)
    return labels


def decision_of(like: Tensor, level: float | None = None, logits: bool = False) -> Callable[[Tensor], int]:
    """Where the labels of contiguous scores of this shape are, which the next call writes over.

    Args:
        like: scores of this shape.
        level: the scores above it have label 1, as `above` has it; None for the class with the highest score.
        logits: whether scores outside [0, 1] are possible.
    """
    labels = np.empty(like.numel() if level is not None else len(like), dtype=np.int64)
    least = ctypes.c_float(0.0 if level is None else level)
    rest = (*like.shape,) if level is None else (like.numel(), ctypes.addressof(least), int(logits))
    decide, into = compiled_function("first_largest" if level is None else "above", 2 + len(rest)), labels.ctypes.data

    def decided(scores: Tensor, owners: object = (labels, least)) -> int:
        decide(into, scores.data_ptr(), *rest)
        return into

    return decided


def labels_at(address: int, count: int) -> np.ndarray:
    """So many labels that lie at an address, int64 `(count,)`; as long as they lie there."""
    numbers: Any = (ctypes.c_int64 * count).from_address(address)
    return np.frombuffer(numbers, dtype=np.int64)


def has_columns(rows: Tensor) -> bool:
    """Whether each column of `(N, C)` lies one number after the other, as those of a table do."""
    return rows.ndim == 2 and rows.stride(0) == 1 and rows.stride(1) >= len(rows) > 1


def target_rank(scores: Tensor, target: Tensor) -> Tensor:
    """How many classes come before the target's in each row of `(N, C)`, int64; targets in `0 ... C - 1`."""
    scores, target = scores.contiguous(), target.contiguous()
    rows, classes = scores.shape
    rank = torch.empty(rows, dtype=torch.int64, device="cpu")
    call("target_rank", rank, scores, target, rows, classes)
    return rank


class LabelCounts:
    """Counts rows into the table of `tally.labels.confusion.Confusion`, by their predicted and their true classes.

    Args:
        table: int64, contiguous.
        shape: how many samples there are, labels of each, and positions of each label.
        num_classes: how many classes there are.
        ignore_index: the target whose rows are ignored.
    """

    def __init__(self, table: Tensor, shape: Sequence[int], num_classes: int, ignore_index: int | None) -> None:
        self._table = table  # as long as its address
        ignored = (0, 0) if ignore_index is None else (1, ignore_index)
        has_one_label = shape[1] == 1
        self._arguments = (math.prod(shape),) if has_one_label else tuple(shape)
        self._arguments += num_classes, *ignored
        name = "count_labels" if has_one_label else "count_grouped_labels"
        self._count = compiled_function(name, 3 + len(self._arguments))

    def add(self, predicted: int, target: int) -> None:
        """Count the int64 labels at these addresses, any numbers, of that shape and contiguous."""
        self._count(self._table.data_ptr(), predicted, target, *self._arguments)


def count_labels_of_cells(
    table: Tensor, predicted: Tensor, target: Tensor, cells: Tensor, num_classes: int, ignore_index: int | None
) -> None:
    """Count rows into such tables, of which each cell of rows has one.

    Args:
        table: int64, contiguous, of shape `(cells, ...)`.
        predicted: int64 of shape `(rows,)`, contiguous, as what follows; any numbers.
        target: the same.
        cells: the cell of each row, from 0.
        num_classes: how many classes there are.
        ignore_index: the target whose rows are ignored.
    """
    ignored = (0, 0) if ignore_index is None else (1, ignore_index)
    call("count_labels_of_cells", table, predicted, target, cells, len(cells), num_classes, *ignored)


def count_scores_above(
    table: Tensor, scores: Tensor, threshold: float, logits: bool, target: Tensor, ignore_index: int | None
) -> None:
    """Count rows of two classes into that table, by whether their score is above a threshold, as `Threshold` decides.

    Args:
        table: see `LabelCounts`.
        scores: float32 of shape `(rows,)`.
        threshold: what they are compared with; it is rounded to float32.
        logits: scores of any size are valid.
        target: int64 of shape `(rows,)`.
        ignore_index: see there.
    """
    ignored = (0, 0) if ignore_index is None else (1, ignore_index)
    (bits,) = struct.unpack("I", struct.pack("f", threshold))
    call(
        "count_scores_above", table, scores.contiguous(), bits, int(logits), target.contiguous(), len(target), *ignored
    )
