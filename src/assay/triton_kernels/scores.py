"""Counting scores into bins, and what is invalid among them, in one launch: the same as `tally.scores` counts."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from assay.triton_kernels.launch import blocks, launch, power_of_two

_TILE = 512
_WIDEST = 64


@dataclass(frozen=True)
class ScoreKind:
    """What scores are: how many `classes` a target can be, whether group `k` of the scores is positive for class `k`
    (`one_vs_rest`) or for class 1, and whether they are `logits`, which have any size."""

    classes: int
    one_vs_rest: bool
    logits: bool


def count_scores(
    kind: ScoreKind,
    scores: Tensor,
    place: Tensor,
    invalid: Tensor,
    histogram: Tensor,
    unclear: Tensor,
    layout: tuple[int, ...],
) -> bool:
    """Count scores in bins and what is invalid, in place; false if nothing was done.

    Args:
        kind: what the scores are.
        scores: float32 of shape `(rows, groups)`.
        place: int64 of shape `(rows, 1)` or `(rows, groups)`, as `ScoreRows` has it.
        invalid: int64, as `ScoreSpec.count_invalid` gives it.
        histogram: int64 of shape `(groups, 2, bins)`: negatives and positives.
        unclear: int64 of shape `(2,)`, as `ScoreBins.place` gives it.
        layout: the bins, as `ScoreBins.layout` and the shift say it.
    """
    return _launch(kind, scores, place, invalid, place, histogram, unclear, layout, keeps=False)


def known_classes(kind: ScoreKind, scores: Tensor, place: Tensor, invalid: Tensor, known: Tensor) -> bool:
    """Write the class of every target into `known`, -1 where it is ignored or none; the rest as for `count_scores`."""
    return _launch(kind, scores, place, invalid, known, invalid, invalid, (), keeps=True)


def _launch(
    kind: ScoreKind,
    scores: Tensor,
    place: Tensor,
    invalid: Tensor,
    known: Tensor,
    histogram: Tensor,
    unclear: Tensor,
    layout: tuple[int, ...],
    keeps: bool,
) -> bool:
    rows, groups = scores.shape
    block_groups = power_of_two(groups, _WIDEST)
    block_rows = _TILE // block_groups
    return launch(
        "scores.count_scores",
        (blocks(rows, block_rows),),
        scores.contiguous(),
        place.contiguous(),
        invalid,
        known,
        histogram,
        unclear,
        rows,
        GROUPS=groups,
        CLASSES=kind.classes,
        LABELS=place.shape[1],
        ONE_VS_REST=kind.one_vs_rest,
        LOGITS=kind.logits,
        LAYOUT=layout,
        KEEPS=keeps,
        BLOCK_ROWS=block_rows,
        BLOCK_GROUPS=block_groups,
    )
