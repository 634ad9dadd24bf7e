"""What the ratings of single samples give, to be summed exactly: shares of raters, and of pairs of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from assay.errors import DtypeError, ShapeError, describe
from assay.tally.base import Batch, BatchLayout, shown
from assay.tally.layout_checks import check_weights
from assay.tally.sums.row_sums import RowTerm, RowValues, SumShape

MOST_RATERS = 40
"""Of one sample: shares of pairs have a common denominator then that an int64 holds."""
WHOLE = math.lcm(*range(1, MOST_RATERS + 1))
"""What stands for 1, so that every share is an integer."""


@dataclass(frozen=True)
class RatingShares(RowTerm):
    """Shares of the ratings of each sample, where `n_k` of its `m` ratings are of category `k`.

    `preds (N, raters)` are integers from 0 to `num_classes - 1`, and `missing` where a rater did not rate the sample.
    What is summed, each times `WHOLE`, as one row of numbers:

    - 1 for a sample with two ratings or more;
    - the share of its pairs of ratings that agree, `n_k (n_k - 1) / (m (m - 1))` over all `k`;
    - 1 for a sample with a rating;
    - `n_k / m` for each category;
    - `n_c (n_k - [c = k]) / (m - 1)` for `c <= k`, row by row of the upper triangle.
    """

    num_classes: int
    missing: int = -1

    uses_target = False
    rounding = 0.0

    @property
    def sums(self) -> tuple[SumShape, ...]:
        pairs = self.num_classes * (self.num_classes + 1) // 2
        return (SumShape(2 + pairs + 1 + self.num_classes),)

    @property
    def invalid(self) -> tuple[str, ...]:
        return (f"ratings are neither from 0 to {self.num_classes - 1} nor {self.missing} (missing)",)

    def check(self, layout: BatchLayout) -> None:
        preds = layout.preds
        if len(preds.tail) != 1 or not 1 <= preds.tail[0] <= MOST_RATERS:
            expected = f"shape (N, raters) with 1 to {MOST_RATERS} raters"
            do = f"Put raters in dimension 1, with {self.missing} where one did not rate a sample"
            raise ShapeError(describe("preds", f"shape {shown(preds.tail)}", expected, do))
        if preds.dtype.is_floating_point or preds.dtype.is_complex:
            do = f"Pass category numbers, and {self.missing} where a rater did not rate the sample"
            raise DtypeError(describe("preds", preds.dtype, "integers", do))
        check_weights(layout.weights)

    def __call__(self, batch: Batch) -> RowValues:
        ratings = batch.preds.to(torch.int64)
        is_of = torch.eq(ratings[:, :, None], torch.arange(self.num_classes, device=ratings.device))
        counts = is_of.sum(1)
        raters = counts.sum(1, keepdim=True)
        of_rater = WHOLE // raters.clamp(min=1)
        of_pair = (WHOLE // (raters - 1).clamp(min=1)) * raters.gt(1)  # 0 for a sample with one rating
        pairs = [counts[:, k : k + 1] * counts[:, k:] for k in range(self.num_classes)]
        for k, each in enumerate(pairs):
            each[:, 0] -= counts[:, k]  # a rating is no pair with itself
        agreeing = (counts * (counts - 1)).sum(1, keepdim=True) * (of_pair // raters.clamp(min=1))
        shares = [
            raters.gt(1) * WHOLE,
            agreeing,
            raters.gt(0) * WHOLE,
            counts * of_rater,
            torch.cat(pairs, 1) * of_pair,
        ]
        return RowValues(torch.cat(shares, 1), invalid=[torch.ne(ratings, self.missing) & ~is_of.any(2)])
