"""Losses of scores and labels: what each row gives, to be summed exactly.

Losses are computed in float32, or in float64 for float64 inputs. The rounding of each is that of the device.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from assay.decide import first_largest
from assay.native.sums import Kind, checked_column
from assay.tally.base import Batch, BatchLayout
from assay.tally.labels.labels import scores
from assay.tally.scores.labelled_scores import ScoreRows, ScoreSpec, probabilities
from assay.tally.sums.row_sums import RowColumns, RowTerm, RowValues, SumShape, sum_each_row


@dataclass(frozen=True)
class ScoreTerm(RowTerm):
    """A number of each row of scores and labels; invalid ones are counted."""

    data: ScoreSpec

    @property
    def invalid(self) -> tuple[str, ...]:
        return self.data.invalid[:-1]  # without weights, which the tally counts

    def check(self, layout: BatchLayout) -> None:
        self.data.check(layout)

    def invalid_rows(self, rows: ScoreRows) -> list[Tensor]:
        """For each kind of `invalid` a tensor with a row for each, which is not 0 where something is."""
        return self.data.invalid_rows(replace(rows, weights=None))


@dataclass(frozen=True)
class Loss(ScoreTerm):
    """A loss of scores and labels: positive infinity is a value, and NaN comes from invalid scores."""

    def __call__(self, batch: Batch) -> RowValues:
        if (plain := self._of_valid(batch)) is not None:
            return plain
        rows = self.data.rows(batch)
        classes = self.data.known(rows)
        counted = classes[:, 0] >= 0
        values = self.values(rows.scores, classes.clamp(min=0))
        invalid = self.invalid_rows(rows)
        if self.data.logits:  # infinite logits may leave no value
            undefined = values[0].isnan().any(1) & ~rows.scores.isnan().any(1) & counted
            invalid[1] = torch.cat([invalid[1], undefined[:, None]], 1)
        return RowValues(*values, counted=counted, invalid=invalid)

    def _of_valid(self, batch: Batch) -> RowValues | None:
        """The same of a batch in host memory in which nothing is invalid; None of others."""
        if (valid := self.data.valid_classes(batch)) is not None:
            counted = None if self.data.labels.ignore_index is None else valid >= 0
            classes = (valid if counted is None else valid.clamp(min=0)).unsqueeze(1)
            found = RowValues(*self.values(scores(batch, False).unsqueeze(1), classes), counted=counted)
        elif (rows := self.data.valid_rows(batch)) is not None:
            found = RowValues(*self.values(*rows))
        else:
            return None
        has_none = self.data.logits and any(np.isnan(each.numpy()).any() for each in found.values)
        return None if has_none else found  # infinite logits may leave no value

    @abstractmethod
    def values(self, scores: Tensor, classes: Tensor) -> tuple[Tensor, ...]:
        """What is summed, floats of shape `(rows, columns)` for each of `sums`.

        Args:
            scores: float32 or float64 of shape `(rows, groups)`.
            classes: integers of shape `(rows, 1)`; any class where the row will be left out.
        """


@dataclass(frozen=True)
class NegativeLogLikelihood(Loss):
    """`-log` of the probability of the target."""

    def values(self, scores: Tensor, classes: Tensor) -> tuple[Tensor, ...]:
        if self.data.labels.multiclass:
            return (_cross_entropy(scores, classes) if self.data.logits else -scores.gather(1, classes).log(),)
        sign = 1 - 2 * classes.to(scores.dtype)  # -1 for positives
        if self.data.logits:
            wrong = scores * sign
            return (wrong.clamp(min=0) + torch.log1p(torch.exp(-wrong.abs())),)
        return (torch.where(classes == 1, -scores.log(), -torch.log1p(-scores)),)


@dataclass(frozen=True)
class KnownLogLoss(NegativeLogLikelihood):
    """The same from logits of classes, where `preds (N, ...)` are the losses themselves; NaN from invalid logits."""

    def __call__(self, batch: Batch) -> RowValues:
        values = batch.preds.reshape(-1, 1)
        rows = ScoreRows(values, self.data.labels.rows(batch).view(-1, 1), None)
        return RowValues(values, counted=self.data.known(rows)[:, 0] >= 0, invalid=self.invalid_rows(rows))


@dataclass(frozen=True)
class LogLossAndTarget(NegativeLogLikelihood):
    """The log loss of each row, and its target."""

    sums = (SumShape(), SumShape())

    def values(self, scores: Tensor, classes: Tensor) -> tuple[Tensor, ...]:
        return (*super().values(scores, classes), classes.to(torch.int64))


def _cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """`log(sum(exp(logits))) - logits[target]`, without a large sum that hides a small loss."""
    best = first_largest(logits).clamp_(max=logits.shape[1] - 1)[:, None]
    highest = logits.gather(1, best)
    others = sum_each_row((logits - highest).exp_().scatter_(1, best, 0))  # the best itself would add 1
    return (highest - logits.gather(1, target)) + torch.log1p(others)


@dataclass(frozen=True)
class SquaredProbabilities(Loss):
    """The squares of all probabilities, the probability of the target (binary: of 1, where that is the target), and 1
    for each row (binary: where the target is 1): what the Brier score is made of, without rounding."""

    sums = (SumShape(power=2), SumShape(), SumShape())

    def columns_of(self, batch: Batch) -> RowColumns | None:
        if self.data.logits or batch.terms is not None or not self.data.is_simple(batch):
            return None
        if self.data.labels.ignore_index is not None:
            return None
        scores, target = batch.preds.contiguous(), batch.needed_target.contiguous()
        batch.memoize(("columns", self), lambda _: (scores, target))  # as long as their addresses
        invalid = torch.zeros(1, dtype=torch.int64, device="cpu")
        columns = [*checked_column(scores, Kind.SCORES, invalid), *checked_column(target, Kind.TARGETS, invalid)]
        return RowColumns(scores.numel(), columns, ((0, 0), (0, 1), (1,)), invalid)

    def values(self, scores: Tensor, classes: Tensor) -> tuple[Tensor, ...]:
        multiclass = self.data.labels.multiclass
        if self.data.logits:
            scores = probabilities(scores, multiclass)
        if multiclass:
            own = scores.gather(1, classes)
            return scores, own, torch.ones_like(own)
        positive = classes.to(scores.dtype)
        return scores, scores * positive, positive


@dataclass(frozen=True)
class Hinge(Loss):
    """`max(0, 1 - margin)`, or its square."""

    squared: bool = False
    one_vs_all: bool = False

    @property
    def sums(self) -> tuple[SumShape, ...]:
        return (SumShape(self.data.groups if self.one_vs_all else 1),)

    def values(self, scores: Tensor, classes: Tensor) -> tuple[Tensor, ...]:
        loss = self._margin(scores, classes).neg_().add_(1).clamp_(min=0)
        return (loss.square() if self.squared else loss,)

    def _margin(self, scores: Tensor, classes: Tensor) -> Tensor:
        if not self.data.labels.multiclass:
            return scores * (2 * classes.to(scores.dtype) - 1)
        if self.one_vs_all:
            own = torch.eq(classes, torch.arange(self.data.groups, device=scores.device)).to(scores.dtype)
            return scores * (2 * own - 1)
        others = scores.scatter(1, classes, -math.inf).amax(1, keepdim=True)
        return scores.gather(1, classes) - others
