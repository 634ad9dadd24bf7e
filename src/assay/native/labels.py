"""The compiled forms of `decide.first_largest` and `decide.target_rank` for float32: the same labels and ranks.

Also predicted labels counted by true ones, as `tally.labels.confusion` counts them.
"""

from __future__ import annotations

import struct

import torch
from torch import Tensor

from assay.native.library import call


def first_largest(scores: Tensor) -> Tensor:
    """The lowest index of the highest score in each row of `(N, C)`, int64; `C` where a score of the row is NaN."""
    rows, classes = scores.shape
    labels = torch.empty(rows, dtype=torch.int64, device="cpu")
    if has_columns(scores):
        call("first_largest_column", labels, scores, rows, classes, scores.stride(1))
    else:
        call("first_largest", labels, scores.contiguous(), rows, classes)
    return labels


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


def count_labels(table: Tensor, predicted: Tensor, target: Tensor, num_classes: int, ignore_index: int | None) -> None:
    """Count rows into the table of `tally.labels.confusion.Confusion`, which has one group of labels.

    Args:
        table: int64, contiguous.
        predicted: int64 of shape `(rows,)`, any numbers.
        target: int64 of shape `(rows,)`.
        num_classes: how many classes there are.
        ignore_index: the target whose rows are ignored.
    """
    ignored = (0, 0) if ignore_index is None else (1, ignore_index)
    call("count_labels", table, predicted.contiguous(), target.contiguous(), len(target), num_classes, *ignored)


def count_scores_above(
    table: Tensor, scores: Tensor, threshold: float, logits: bool, target: Tensor, ignore_index: int | None
) -> None:
    """Count rows of two classes into that table, by whether their score is above a threshold, as `Threshold` decides.

    Args:
        table: see `count_labels`.
        scores: float32 of shape `(rows,)`.
        threshold: what they are compared with; it is rounded to float32.
        logits: scores of any size are valid.
        target: see `count_labels`.
        ignore_index: see there.
    """
    ignored = (0, 0) if ignore_index is None else (1, ignore_index)
    (bits,) = struct.unpack("I", struct.pack("f", threshold))
    call(
        "count_scores_above", table, scores.contiguous(), bits, int(logits), target.contiguous(), len(target), *ignored
    )
