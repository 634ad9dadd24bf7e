"""What rows of several numbers give: distances, symmetric divergences, entropies, and scores of ensembles."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.errors import ShapeError, describe
from assay.native import pair_terms
from assay.tally.base import Batch, BatchLayout, shown
from assay.tally.layout_checks import OUTSIDE, check_real, check_weights, shown_or_nothing
from assay.tally.rows.row_terms import Divergence, shares
from assay.tally.sums.float_terms import contiguous_float, difference, power
from assay.tally.sums.row_sums import RowTerm, RowValues, SumShape, sum_each_row


def check_rows(layout: BatchLayout, target: tuple[int, ...] | None, expected: str) -> None:
    """Raise unless there are real `preds (N, D)`, and a real target of this shape where one is expected."""
    preds, other = layout.preds, layout.target
    wrong = len(preds.tail) != 1 or 0 in preds.tail
    if wrong or (target is not None and (other is None or other.tail != target)):
        got = f"shape {shown(preds.tail)}" + (f" with target {shown_or_nothing(other)}" if target is not None else "")
        raise ShapeError(describe("preds", got, expected, "Give one row for each sample"))
    check_real("preds", preds)
    if target is not None and other is not None:
        check_real("target", other)
    check_weights(layout.weights)


@dataclass(frozen=True)
class PairwiseDistance(RowTerm):
    """`sum(|preds - target + eps| ** p) ** (1 / p)` of each row."""

    p: float
    eps: float

    not_finite = "rows have a distance that is NaN or infinite"

    def check(self, layout: BatchLayout) -> None:
        check_rows(layout, layout.preds.tail, "both of shape (N, D)")

    def __call__(self, batch: Batch) -> RowValues:
        errors = (difference(batch.preds, batch.needed_target).contiguous() + self.eps).abs_()
        largest = errors.amax(1, keepdim=True)
        if self.p == math.inf:
            return RowValues(largest.view(-1))
        scale = torch.where((largest > 0) & (largest < math.inf), largest, 1)  # then no power overflows or vanishes
        sums = sum_each_row(power(errors / scale, self.p))
        roots = sums if self.p == 1 else sums.sqrt() if self.p == 2 else (sums.log() / self.p).exp()
        return RowValues((scale * roots).view(-1))


@dataclass(frozen=True)
class EnsembleScore(RowTerm):
    """The continuous ranked probability score of `preds (N, members)` for `target (N,)`."""

    not_finite = "rows have a score that is NaN or infinite"

    def check(self, layout: BatchLayout) -> None:
        check_rows(layout, (), "shape (N, members) with target of shape (N,)")

    def __call__(self, batch: Batch) -> RowValues:
        members = batch.preds.shape[1]
        errors = difference(batch.preds, batch.needed_target[:, None]).contiguous().sort(1).values
        # With the errors in order, the sum of all |x_i - x_j| is twice that of (2 k - members + 1) x_k.
        places = torch.arange(1 - members, members, 2, device=errors.device)
        parts = errors.abs() / members - errors * places / members**2
        return RowValues(sum_each_row(parts).clamp(min=0).view(-1))


@dataclass(frozen=True)
class DivergenceOfMean(Divergence):
    """The Jensen-Shannon divergence of the distributions `preds (N, d)` and `target (N, d)`, in nats."""

    def _of_logarithms(self, p: Tensor, q: Tensor) -> Tensor:
        return self._of_masses(p.exp(), q.exp())

    def _of_probabilities(self, p: Tensor, q: Tensor) -> Tensor:
        return self._of_masses(shares(p)[0], shares(q)[0])

    def _of_normal_shares(self, p: Tensor, q: Tensor) -> Tensor | None:
        terms = pair_terms.mean_divergences(p, q, sum_each_row)
        return None if terms is None else sum_each_row(terms).clamp(min=0)

    def _of_shares(self, p: Tensor, q: Tensor) -> Tensor:
        total = p + q
        share = (p - q) / total
        terms = self._over_mean(p, share, total).add_(self._over_mean(q, -share, total))
        return sum_each_row(terms.mul_(0.5)).clamp(min=0)

    def _of_masses(self, p: Tensor, q: Tensor) -> Tensor:
        defined = ((p >= 0) & (q >= 0)).all(1, keepdim=True)
        return torch.where(defined, self._of_shares(p, q), math.nan)

    @staticmethod
    def _over_mean(p: Tensor, share: Tensor, total: Tensor) -> Tensor:
        """`p log(p / m)` with half of the total as m, from `(2 p - total) / total`; 0 where p is 0."""
        # log(p / m) = log1p of that share, which loses no digits where p is nearly m.
        far = (2 * p / total).clamp(min=torch.finfo(p.dtype).tiny).log()
        return torch.where(p > 0, p * torch.where(share > -0.5, share.log1p(), far), 0)


@dataclass(frozen=True)
class PredictedEntropy(RowTerm):
    """The entropy of each row of `preds (N, C)`, in nats; with `num_classes` also its probabilities.

    Args:
        logits: the rows go through a softmax first.
        num_classes: how many numbers a row has, where their probabilities are summed, too.
    """

    logits: bool = False
    num_classes: int | None = None

    uses_target = False
    not_finite = "rows have an entropy that is NaN or infinite"
    invalid = (f"rows have NaN, or scores {OUTSIDE}",)

    @property
    def sums(self) -> tuple[SumShape, ...]:
        return (SumShape(),) if self.num_classes is None else (SumShape(), SumShape(self.num_classes))

    def check(self, layout: BatchLayout) -> None:
        columns = "C" if self.num_classes is None else self.num_classes
        check_rows(layout, None, f"shape (N, {columns})")
        if self.num_classes not in (None, layout.preds.tail[0]):
            got = f"shape {shown(layout.preds.tail)}"
            raise ShapeError(describe("preds", got, f"shape (N, {columns})", "Check num_classes"))

    def __call__(self, batch: Batch) -> RowValues:
        scores = contiguous_float(batch.preds)
        if self.logits:
            logs = scores.log_softmax(1)
            shares = logs.exp()
            valid = ~shares.isnan().any(1)
        else:
            shares, logs = scores, scores.log()
            valid = ((scores >= 0) & (scores <= 1)).all(1)
        entropies = sum_each_row(torch.where(shares > 0, shares * logs, 0)).neg_()
        values = (entropies,) if self.num_classes is None else (entropies, shares)
        return RowValues(*values, counted=valid, invalid=[~valid])
