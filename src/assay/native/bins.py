"""The compiled forms of counting float32 scores and confidences into bins, as `tally` does it: the same counts."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from assay.native.labels import has_columns
from assay.native.library import call, compiled_function


class BinLayout(ctypes.Structure):
    """Where bins are fine: the fields of `ScoreBins` that C needs."""

    _fields_ = tuple(
        (name, ctypes.c_int32)
        for name in (
            "logits",
            "first",
            "above",
            "coarse_dropped",
            "fine_dropped",
            "lattice",
            "middle",
            "count",
            "shift",
        )
    )


def count_invalid_scores(invalid: Tensor, scores: Tensor, target: Tensor, classes: int, logits: bool) -> None:
    """Count rows with invalid scores in place, as `ScoreSpec.count_invalid` does, into `invalid`: at least 3 kinds.

    `scores` is float32 of shape `(rows, width)`, `target` int64, one a row, as `Labels.rows` gives it; with
    `logits`, scores of any size are valid.
    """
    target = target.contiguous()
    if has_columns(scores):
        described = (*scores.shape, classes, int(logits), scores.stride(1))
        call("count_invalid_score_columns", invalid, scores, target, *described)
    else:
        call("count_invalid_scores", invalid, scores.contiguous(), target, *scores.shape, classes, int(logits))


def copy_labelled_scores(
    invalid: Tensor, known: int, kept: int, scores: int, target: int, rows: int, logits: bool, ignore_index: int | None
) -> None:
    """Copy scores and the classes of their binary targets; what is invalid is counted in place.

    Args:
        invalid: int64, as for `count_invalid_scores`.
        known: the address of int8: the classes, -1 where a target is ignored or no class.
        kept: the address of float32: the copies of the scores; 0 for none.
        scores: the address of float32.
        target: the address of int64.
        rows: how many there are.
        logits: scores of any size are valid.
        ignore_index: the target whose rows are ignored.
    """
    copy = compiled_function("copy_labelled_scores", 9)
    ignores = ignore_index is not None
    copy(invalid.data_ptr(), known, kept, scores, target, rows, int(logits), int(ignores), ignore_index or 0)


def count_scores(
    histogram: Tensor, unclear: Tensor, scores: Tensor, target: Tensor, classes: int, layout: BinLayout
) -> None:
    """Count float32 scores, of shape `(rows, groups)`, in place.

    `target` is int64, as `Labels.rows` gives it for so many classes: `(rows, 1)` where groups are classes, else of the
    shape of the scores. `histogram` is of shape `(groups, 2, bins)`: negatives, positives; `unclear` of shape `(2,)`,
    as `ScoreBins.place` gives it.
    """
    rows, groups = scores.shape
    target = target.contiguous()
    multiclass = int(target.shape != scores.shape)
    described = (rows, groups, *scores.stride(), classes, multiclass)
    call("count_scores", histogram, unclear, scores, target, *described, ctypes.byref(layout))


def count_cell_scores(
    tables: Tensor,
    segments: tuple[Tensor, Tensor],
    scores: Tensor,
    target: Tensor,
    classes: int,
    layout: BinLayout,
) -> None:
    """Count float32 scores into the histograms of the cells of their rows, in place.

    Args:
        tables: int64 of shape `(cells, 2)`: the addresses of the histogram of a cell and of its `unclear`, or 0 where
            its rows are not counted.
        segments: what `order_cells` gives.
        scores: see `count_scores`, as all that follows.
        target: one class for each row, or for each score.
        classes: how many there are.
        layout: of the bins.
    """
    starts, order = segments
    target = target.contiguous()
    multiclass = int(target.shape != scores.shape)
    described = (scores.shape[1], *scores.stride(), classes, multiclass, ctypes.byref(layout))
    call("count_cell_scores", tables, len(tables), starts, order, scores, target, *described)


def place_scores(scores: Tensor, layout: BinLayout) -> tuple[Tensor, Tensor]:
    """The bin of each float32 score as int32, and what else `ScoreBins.place` returns."""
    scores = scores.contiguous()
    bins, unclear = (
        torch.empty(scores.shape, dtype=torch.int32, device="cpu"),
        torch.zeros(2, dtype=torch.int64, device="cpu"),
    )
    call("place_scores", bins, unclear, scores, scores.numel(), ctypes.byref(layout))
    return bins, unclear


def count_confidence(counts: Tensor, limbs: Tensor, origin: int, confidence: Tensor, outcome: Tensor) -> None:
    """Count confidences in bins of equal width, in place; those that are not finite are left out.

    Args:
        counts: int64 of shape `(bins, 2)`: all that count, and those that are right.
        limbs: int64 of shape `(bins, words)`: the exact sums of the confidences that count.
        origin: the first bit of the limbs weighs `2 ** origin`.
        confidence: float32 of shape `(rows,)`.
        outcome: int8 of shape `(rows,)`: 1 for right, 0 for wrong, and -1 for what does not count.
    """
    confidence, outcome = confidence.contiguous(), outcome.contiguous()
    shape = (limbs.shape[1], origin)
    call("count_confidence", counts, limbs, *shape, confidence, outcome, len(confidence), len(counts))


class ScoredRows:
    """Counts the rows of batches of one shape in bins of confidence, without those in between.

    Args:
        counts: see `count_confidence`.
        limbs: see there.
        origin: see there.
        rows: how many a batch has.
        classes: how many scores a row has; 1 for binary scores.
    """

    def __init__(self, counts: Tensor, limbs: Tensor, origin: int, rows: int, classes: int) -> None:
        confidence = torch.empty(rows, dtype=torch.float32, device="cpu")
        outcome = torch.empty(rows, dtype=torch.int8, device="cpu")
        self._owners = confidence, outcome, counts, limbs  # as long as their addresses
        addresses = (each.data_ptr() for each in self._owners)
        self._rest = rows, classes, *addresses, limbs.shape[1], origin, len(counts)
        self._count = compiled_function("count_scored_rows", 2 + len(self._rest))

    def add(self, scores: Tensor, target: Tensor) -> bool:
        """Count contiguous float32 scores with int64 targets; false where one is invalid, and then none was counted."""
        return not self._count(scores.data_ptr(), target.data_ptr(), *self._rest)
