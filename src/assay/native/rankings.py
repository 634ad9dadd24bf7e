"""The compiled form of `tally.curves.of_samples` for float32 scores without weights: the same counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.native.library import call

Array = np.ndarray[Any, Any]


def rank_scores(scores: Tensor, classes: Tensor, positive: int) -> tuple[Array, Array, Array]:
    """The distinct scores from the highest to the lowest as float64, and how many positives and negatives have each.

    Args:
        scores: float32 of shape `(rows,)`, without NaN; both zeros are one score.
        classes: int8 of the same shape; rows below 0 are left out.
        positive: the class of positives; all others are negatives.
    """
    rows = len(scores)
    keys, ranked = (
        torch.empty(2 * rows, dtype=torch.int64, device="cpu"),
        torch.empty(3 * rows + 1, dtype=torch.int64, device="cpu"),
    )
    first = ranked.data_ptr()
    lists = (first + 8 * k * rows for k in range(4))
    call("rank_scores", rows, scores.contiguous(), classes.contiguous(), positive, keys, *lists)
    numbers = ranked.numpy()
    distinct = int(numbers[-1])
    thresholds, positives, negatives = (numbers[k * rows : k * rows + distinct] for k in range(3))
    return thresholds.view(np.float64), positives, negatives
