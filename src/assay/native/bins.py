"""The compiled form of counting binary float32 scores into the bins of `tally.score_bins`: the same counts."""

from __future__ import annotations

import ctypes

from torch import Tensor

from assay.native.library import address, loaded


class Layout(ctypes.Structure):
    """Where bins are fine: the fields of `ScoreBins` that C needs."""

    _fields_ = tuple(
        (name, ctypes.c_int32)
        for name in ("logits", "first", "above", "coarse_dropped", "fine_dropped", "lattice", "middle", "count")
    )


def count_scores(
    histogram: Tensor, unclear: Tensor, strange: Tensor, scores: Tensor, target: Tensor, layout: Layout
) -> None:
    """Count scores of one group, in place.

    Args:
        histogram: int64 of shape `(2, bins)`: negatives, positives.
        unclear: int64 of shape `(2,)`, as `ScoreBins.place` gives it.
        strange: int64 of at least 3 kinds, as `Scored.strange` gives it.
        scores: float32 of shape `(rows,)`.
        target: int64 of shape `(rows,)`, as `Labels.rows` gives it for two classes.
        layout: of the bins.
    """
    scores, target = scores.contiguous(), target.contiguous()
    loaded().assay_count_scores(
        address(histogram),
        address(unclear),
        address(strange),
        address(scores),
        address(target),
        ctypes.c_int64(len(scores)),
        ctypes.byref(layout),
    )
