"""How several raters put samples into categories: the sums that their agreement is computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from assay.decide import first_largest
from assay.errors import DtypeError, ShapeError, describe
from assay.tally.base import Batch, BatchLayout, InvalidValues, Rule, State, Tally, shown
from assay.tally.conservation import HostCount, Laws, equal, not_negative
from assay.tally.layout_checks import check_weights
from assay.tally.sums import exact
from assay.tally.sums.exact import Number
from assay.tally.sums.fingerprints import Fingerprint, FingerprintSize
from assay.tally.sums.sums import Sums
from assay.tally.sums.terms import PREDS

RatingMode = Literal["counts", "probs"]
MOST_RATINGS = 3_037_000_499
"""Of one sample: the largest number whose square is an int64."""
INVALID = "ratings are negative or NaN", f"samples have more than {MOST_RATINGS} ratings"


@dataclass(frozen=True, eq=False)
class RatingSums:
    """Exact sums over samples, each times its weight.

    Attributes:
        weight: of 1.
        categories: of the number of ratings in each category.
        squares: of the squares of these numbers, over all categories.
        raters: of the number of ratings.
        raters_squared: of its square.
    """

    weight: Number
    categories: Sequence[Number]
    squares: Number
    raters: Number
    raters_squared: Number


@dataclass(frozen=True)
class Ratings(Tally):
    """Sums of the numbers of ratings in each of `num_classes` categories, and of their squares.

    State: that of `Sums` of one term with `num_classes + 3` outputs, and `invalid_ratings`, int64 of shape `(2,)`: how
    many ratings are negative or NaN, and how many samples have more than `MOST_RATINGS`.

    With `mode="counts"`, `preds (N, num_classes)` are integers: how many raters chose the category. With "probs",
    `preds (N, num_classes, raters)` are scores, and each rater chose the category with the highest.
    """

    num_classes: int
    mode: RatingMode = "counts"
    weighted: bool = False
    uses_target = False

    @cached_property
    def _sums(self) -> Sums:
        return Sums(frozenset({PREDS}), self.num_classes + 3, self.weighted, ("preds",))

    @property
    def fields(self) -> Mapping[str, Rule]:
        return {**self._sums.fields, "invalid_ratings": "sum"}

    def check(self, layout: BatchLayout) -> None:
        preds = layout.preds
        dimensions, scores = (2, True) if self.mode == "probs" else (1, False)
        if len(preds.tail) != dimensions or preds.tail[0] != self.num_classes or 0 in preds.tail:
            expected = f"shape (N, {self.num_classes}{', raters' * scores}) for mode={self.mode!r}"
            raise ShapeError(describe("preds", f"shape {shown(preds.tail)}", expected, "Put categories in dimension 1"))
        if preds.dtype.is_complex or preds.dtype.is_floating_point != scores:
            expected = "floats: a score of each category" if scores else "integers: numbers of ratings"
            do = 'Pass mode="counts" for numbers of ratings, mode="probs" for scores'
            raise DtypeError(describe("preds", preds.dtype, expected, do))
        check_weights(layout.weights)

    def zero(self, device: torch.device) -> State:
        return {**self._sums.zero(device), "invalid_ratings": torch.zeros(2, dtype=torch.int64, device=device)}

    def add(self, state: State, batch: Batch) -> None:
        rows, invalid = batch.memoize(self, self._rows)
        state["invalid_ratings"] += invalid
        self._sums.add(state, rows)

    @property
    def fingerprint_size(self) -> FingerprintSize | None:
        return self._sums.fingerprint_size

    def fingerprint(self, batch: Batch) -> Fingerprint:
        return self._sums.fingerprint(batch.memoize(self, self._rows)[0])

    def fingerprint_of(self, state: State) -> Fingerprint:
        return self._sums.fingerprint_of(state)

    def _rows(self, batch: Batch) -> tuple[Batch, Tensor]:
        """What is summed of each row, and how many ratings are invalid, of two kinds."""
        counts, invalid = self._counts(batch.preds)
        raters = counts.sum(1, keepdim=True)
        too_many = raters > MOST_RATINGS
        counts, raters = counts.masked_fill(too_many, 0), raters.masked_fill(too_many, 0)
        rows = torch.cat([counts, (counts * counts).sum(1, keepdim=True), raters, raters * raters], 1)
        of_rows = Batch(rows, None, batch.weights, batch.cache_elements, batch.compiled)
        return of_rows, torch.stack([invalid, too_many.sum()])

    def _counts(self, preds: Tensor) -> tuple[Tensor, Tensor]:
        """How many ratings each category has in each row, and how many of all are invalid."""
        if self.mode == "counts":
            counts = preds.to(torch.int64)
            return counts.clamp(0, MOST_RATINGS + 1), torch.lt(counts, 0).sum()
        scores = preds if preds.dtype == torch.float64 else preds.float()
        choice = first_largest(scores.movedim(1, -1).reshape(-1, self.num_classes)).view(len(preds), preds.shape[2])
        counts = torch.zeros(len(preds), self.num_classes + 1, dtype=torch.int64, device=preds.device)
        counts.scatter_add_(1, choice, torch.ones_like(choice))
        return counts[:, :-1], counts[:, -1].sum()

    def canonicalize(self, state: State, rows: int) -> State:
        return self._sums.canonicalize(state, rows)

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        problems = map(InvalidValues, INVALID, state["invalid_ratings"].tolist())
        return [*self._sums.weight_problems(state), *(problem for problem in problems if problem.count)]

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from not_negative(state, "invalid_ratings")
        yield from self._sums.broken_laws(state, HostCount(given.rows, given.rows * (self.num_classes + 3)))
        *categories, _, raters, _ = exact.to_integers(state[f"sums{1 + self.weighted}"][0]).tolist()
        yield from equal("the ratings of all categories add up to the ratings", raters, sum(categories))

    def compute(self, state: State) -> RatingSums:
        totals = self._sums.compute(state)
        *categories, squares, raters, raters_squared = totals[PREDS]
        return RatingSums(totals.weight[0], categories, squares, raters, raters_squared)
