"""How well the scores of each row rank its labels, for data in which a row has several labels."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from assay.tally.base import Batch, BatchLayout
from assay.tally.layout_checks import check_weights
from assay.tally.scores.losses import ScoreTerm
from assay.tally.sums.row_sums import RowValues, sum_each_row

Criterion = Literal["exact_match", "hamming", "overlap", "contain", "belong"]


@dataclass(frozen=True)
class LabelRows(ScoreTerm):
    """A number for each row of scores of all labels. Ignored labels leave their row; rows of no others are left out."""

    def check(self, layout: BatchLayout) -> None:
        super().check(layout)
        check_weights(layout.weights)

    def __call__(self, batch: Batch) -> RowValues:
        if (valid := self.data.valid_rows(batch)) is not None:
            largest = torch.finfo(valid[0].dtype).max
            return RowValues(self.values(valid[0].clamp(-largest, largest), valid[1] == 1, valid[1] != 1))
        rows = self.data.rows(batch)
        labels = self.data.known(rows)
        largest = torch.finfo(rows.scores.dtype).max
        scores = rows.scores.nan_to_num(0).clamp(-largest, largest)
        invalid = self.invalid_rows(rows)
        if self.data.labels.ignore_index is None:
            return RowValues(self.values(scores, labels == 1, labels != 1), invalid=invalid)
        scores = scores.masked_fill(labels < 0, -math.inf)
        return RowValues(self.values(scores, labels == 1, labels == 0), counted=(labels >= 0).any(1), invalid=invalid)

    @abstractmethod
    def values(self, scores: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The number of each row, from scores and booleans of shape `(rows, labels)`.

        Ignored labels are neither positive nor negative, and have the score -inf; all others are finite.
        """


def _at_least(scores: Tensor, among: Tensor | None = None) -> Tensor:
    """For every score how many, or how many of those `among`, are as high or higher: int64 of its shape."""
    rising = (scores if among is None else scores.masked_fill(~among, -math.inf)).sort(1).values
    return scores.shape[1] - torch.searchsorted(rising, scores.contiguous())


@dataclass(frozen=True)
class LabelCoverage(LabelRows):
    """How many labels have to be taken, by falling score, to have all that are right; 0 where none is."""

    def values(self, scores: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        last = torch.where(positive, scores, math.inf).amin(1, keepdim=True)  # of the right labels
        return torch.ge(scores, last).sum(1)


@dataclass(frozen=True)
class LabelPairsWrong(LabelRows):
    """The share of pairs of a right and a wrong label in which the right one has no higher score; 0 without pairs."""

    def values(self, scores: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        wrong = (_at_least(scores, negative) * positive).sum(1)
        pairs = positive.sum(1) * negative.sum(1)
        return wrong.to(scores.dtype) / pairs.clamp(min=1)


@dataclass(frozen=True)
class LabelPrecision(LabelRows):
    """The mean, over the right labels, of the share of right ones among those that score as high; 1 without pairs."""

    def values(self, scores: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        everything = _at_least(scores).clamp(min=1).to(scores.dtype)
        shares = (_at_least(scores, positive) / everything).masked_fill(~positive, 0)
        mean = sum_each_row(shares).view(-1) / positive.sum(1).clamp(min=1)
        trivial = ~(positive.any(1) & negative.any(1))
        return mean.masked_fill(trivial, 1)


@dataclass(frozen=True)
class TopLabels(LabelRows):
    """Whether the `k` labels with the highest scores meet a criterion; for "hamming", how many labels are right."""

    k: int
    criterion: Criterion

    def values(self, scores: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        best = scores.sort(dim=1, descending=True, stable=True).indices[:, : self.k]
        chosen = torch.zeros_like(positive).scatter(1, best, True)
        if self.criterion == "exact_match":
            return torch.eq(chosen, positive).all(1).to(torch.int64)
        if self.criterion == "hamming":
            return torch.eq(chosen, positive).sum(1)
        if self.criterion == "overlap":
            return (chosen & positive).any(1).to(torch.int64)
        missing = positive & ~chosen if self.criterion == "contain" else chosen & negative
        return (~missing.any(1)).to(torch.int64)
