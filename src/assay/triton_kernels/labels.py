"""Labels from scores and their counts by true label, in one launch: the same as `decide` and `tally.confusion` have."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.triton_kernels.launch import blocks, launch, power_of_two

SCORES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
TARGETS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_ROWS = 256  # of labels
_TILE = 2048  # scores
_WIDEST = 256


def count_labels(
    counts: Tensor,
    target: Tensor,
    classes: int,
    ignore_index: int | None,
    predicted: Tensor | None = None,
    scores: Tensor | None = None,
    top_k: int = 0,
) -> Tensor | None:
    """Count predicted by true labels, in place; return the predicted ones, or None if nothing was done.

    Args:
        counts: the int64 table of `Confusion`, `(1, classes + 3, classes + 2)`, or `ClassCounts`, `(3, classes + 3)`.
        target: integers, of the shape of the samples without the dimension of the classes.
        classes: how many there are.
        ignore_index: the target that is left out.
        predicted: labels as int64 `(rows,)`: -1 below the range, `classes` above it.
        scores: instead of these, floats of shape `(N, classes, ...)`.
        top_k: for scores, as `decide.TopK` has it; 1 is the class of the highest score.
    """
    rows, inner, block_classes = target.numel(), 1, 1
    if predicted is None:
        assert scores is not None, "labels or scores"
        predicted, scores = torch.empty(rows, dtype=torch.int64, device=target.device), scores.contiguous()
        inner = scores[0, 0].numel() if len(scores) else 1
        block_classes = power_of_two(classes, _WIDEST)
    block_rows = min(_ROWS, _TILE // block_classes)
    done = launch(
        "labels.count_labels",
        (blocks(rows, block_rows),),
        predicted if scores is None else scores,
        predicted,
        target.contiguous(),
        counts,
        rows,
        inner,
        0 if ignore_index is None else ignore_index,
        CLASSES=classes,
        TOP=top_k,
        IGNORES=ignore_index is not None,
        MATRIX=counts.ndim == 3,
        BLOCK_ROWS=block_rows,
        BLOCK_CLASSES=block_classes,
    )
    return predicted if done else None
