"""The compiled forms of `decide.first_largest` and `decide.target_rank` for float32: the same labels and ranks."""

from __future__ import annotations

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
