"""From scores to decisions: argmax, threshold and top-k, as the caller said, never guessed from values.

A decision turns `preds` into one label per row. Rows that cannot be decided, because a score is NaN or no probability
where one was said, get the label `num_classes`, which tallies count apart; nothing is read on the CPU. Half-precision
scores are compared as float32, which holds them exactly, so a decision does not depend on which of these carried them.

Ties go to the lowest class index, for the argmax and within the top k.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.native import labels as native
from assay.native.library import takes

_FEW_CLASSES = 32


class Rows:
    """What rows are decided from: float32 or float64 `scores (N, C)` or `(N,)`, and their int64 `target (N,)`.

    `compiled` says that compiled code may read them, because they are in host memory.
    """

    def __init__(self, scores: Tensor, target: Tensor, compiled: bool = False) -> None:
        self.scores, self.target = scores, target
        self.compiled = compiled and takes(scores)
        self._best: Tensor | None = None

    def best(self) -> Tensor:
        """The class with the highest score, as `first_largest` has it; found once."""
        if self._best is None:
            self._best = native.first_largest(self.scores) if self.compiled else first_largest(self.scores)
        return self._best

    def rank(self, target: Tensor) -> Tensor:
        """How many classes come before the given ones, as `target_rank` has it."""
        return native.target_rank(self.scores, target) if self.compiled else target_rank(self.scores, target)


class Decision(ABC):
    """A frozen rule that turns scores into labels."""

    @property
    def top_k(self) -> int:
        """How many of the highest scores of a row decide; 0 where a row is one score."""
        return 0

    @abstractmethod
    def __call__(self, rows: Rows) -> Tensor:
        """Labels, int64 of shape `(N,)`."""


@dataclass(frozen=True)
class Argmax(Decision):
    """The class with the highest score: `scores (N, C)` to labels in `0 ... C - 1`, or `C` where a score is NaN."""

    @property
    def top_k(self) -> int:
        return 1

    def __call__(self, rows: Rows) -> Tensor:
        return rows.best()


@dataclass(frozen=True)
class TopK(Decision):
    """The target where it is among the `k` highest scores, else the class with the highest score.

    A class is among the top `k` when fewer than `k` classes come before it: those with a higher score, and those with
    the same score and a lower index.
    """

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ConfigError(describe("top_k", self.k, "an integer of 1 or more", "Give the k of the top-k"))

    @property
    def top_k(self) -> int:
        return self.k

    def __call__(self, rows: Rows) -> Tensor:
        best = rows.best()
        if self.k == 1:
            return best
        num_classes = rows.scores.shape[1]
        wanted = rows.target.clamp(0, num_classes - 1)
        hits = torch.lt(rows.rank(wanted), self.k).logical_and_(torch.lt(best, num_classes))  # not where one is NaN
        return torch.where(hits, wanted, best)


@dataclass(frozen=True)
class Threshold(Decision):
    """1 where the score is above the threshold, else 0; 2 where it is NaN, or outside [0, 1] and no logit.

    Args:
        threshold: in [0, 1], a probability. It is rounded to the dtype of the comparison: float64 for float64 scores,
            float32 for all others.
        logits: the scores are logits; the threshold is then compared as a logit, so no sigmoid rounds the scores.
    """

    threshold: float = 0.5
    logits: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            do = "Give a probability; with logits=True, too"
            raise ConfigError(describe("threshold", self.threshold, "a probability in [0, 1]", do))

    @property
    def level(self) -> float:
        """What a score must be above: the threshold, as a logit where scores are."""
        return _logit(self.threshold) if self.logits else self.threshold

    def __call__(self, rows: Rows) -> Tensor:
        scores, level = rows.scores, self.level
        if rows.compiled:
            return native.above(scores, level, self.logits)
        above = torch.gt(scores, level, out=torch.empty_like(scores))
        possible = scores if self.logits else scores.clamp(0, 1)  # NaN is neither, and stays NaN
        impossible = torch.ne(scores, possible, out=torch.empty_like(scores))
        return above.add_(impossible, alpha=2).clamp_(max=2).to(torch.int64)


def _logit(p: float) -> float:
    if p in (0.0, 1.0):
        return math.inf if p else -math.inf
    return math.log(p / (1 - p))


def first_largest(scores: Tensor) -> Tensor:
    """The lowest index of the highest score in each row, int64 of shape `(N,)`; `C` where a score of the row is NaN.

    For many classes this takes three passes of vectorised arithmetic, which costs a third of `argmax`.
    """
    num_classes = scores.shape[1]
    if num_classes < _FEW_CLASSES:
        best = scores.max(1)
        # NaN is the largest value for `max`. Adding C and clamping sends such rows, and only them, to C.
        return torch.add(best.indices, torch.isnan(best.values), alpha=num_classes).clamp_(max=num_classes)
    is_best = torch.eq(scores, scores.amax(1, keepdim=True), out=torch.empty_like(scores))
    countdown = torch.arange(num_classes, 0, -1, dtype=scores.dtype, device=scores.device)
    return num_classes - is_best.mul_(countdown).amax(1).to(torch.int64)


def target_rank(scores: Tensor, target: Tensor) -> Tensor:
    """How many classes come before the target's in each row, int64 of shape `(N,)`."""
    own = scores.gather(1, target[:, None])
    before = torch.gt(scores, own, out=torch.empty_like(scores))
    classes = torch.arange(scores.shape[1], dtype=scores.dtype, device=scores.device)
    tied = torch.eq(scores, own, out=torch.empty_like(scores))
    lower = torch.lt(classes, target[:, None].to(scores.dtype), out=torch.empty_like(scores))
    return before.addcmul_(tied, lower).sum(1).to(torch.int64)
