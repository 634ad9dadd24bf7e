"""How pairs of raters put samples into categories, where not every rater rated every sample."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement

import torch
from torch import Tensor

from assay.errors import DtypeError, ShapeError, describe
from assay.tally.base import Batch, BatchLayout, InvalidValues, Rule, State, Tally, shown
from assay.tally.conservation import HostCount, Laws, not_negative
from assay.tally.layout_checks import check_weights
from assay.tally.sums.exact import Number
from assay.tally.sums.fingerprints import Fingerprint, FingerprintSize
from assay.tally.sums.sums import Sums
from assay.tally.sums.terms import PREDS

MOST_RATERS = 40
"""Of one sample: shares of pairs have a common denominator then that an int64 holds."""
_WHOLE = math.lcm(*range(1, MOST_RATERS + 1))


@dataclass(frozen=True, eq=False)
class RatingPairSums:
    """Exact sums over samples, each times its weight, where `n_k` of its `m` ratings are of category `k`.

    Attributes:
        paired: of the samples with two ratings or more.
        agreement: of the share of their pairs of ratings that agree, `n_k (n_k - 1) / (m (m - 1))` over all `k`.
        coincidences: of `n_c (n_k - [c = k]) / (m - 1)` over the same samples, for `c <= k`.
        rated: of the samples with a rating.
        categories: of `n_k / m` over these.
    """

    paired: Number
    agreement: Number
    coincidences: Mapping[tuple[int, int], Number]
    rated: Number
    categories: Sequence[Number]


@dataclass(frozen=True)
class RatingPairs(Tally):
    """Sums over samples of what pairs of their ratings say.

    `preds (N, raters)` are integers from 0 to `num_classes - 1`, and `missing` where a rater did not rate the sample.

    State: that of `Sums` of one term with an output for each sum of `RatingPairSums`, each times the least common
    multiple of 1 to `MOST_RATERS`, so that shares are integers; and `invalid_ratings`, int64 of shape `(1,)`: how many
    ratings are of no category.
    """

    num_classes: int
    missing: int = -1
    weighted: bool = False
    uses_target = False

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations_with_replacement(range(self.num_classes), 2))

    @cached_property
    def _sums(self) -> Sums:
        outputs = len(self._pairs) + self.num_classes + 3
        return Sums(frozenset({PREDS}), outputs, self.weighted, ("preds",))

    @property
    def fields(self) -> Mapping[str, Rule]:
        return {**self._sums.fields, "invalid_ratings": "sum"}

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

    def zero(self, device: torch.device) -> State:
        return {**self._sums.zero(device), "invalid_ratings": torch.zeros(1, dtype=torch.int64, device=device)}

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
        """What is summed of each row, and how many ratings are of no category."""
        ratings = batch.preds.to(torch.int64)
        categories = torch.arange(self.num_classes, device=ratings.device)
        counts = torch.eq(ratings[:, :, None], categories).sum(1)
        given = torch.ne(ratings, self.missing).sum(1)
        raters = counts.sum(1, keepdim=True)
        of_rater = _WHOLE // raters.clamp(min=1)
        of_pair = (_WHOLE // (raters - 1).clamp(min=1)) * raters.gt(1)  # 0 for a sample with one rating
        coincidences = [counts[:, k : k + 1] * counts[:, k:] for k in range(self.num_classes)]
        for k, each in enumerate(coincidences):
            each[:, 0] -= counts[:, k]  # a rating is no pair with itself
        agreeing = (counts * (counts - 1)).sum(1, keepdim=True) * (of_pair // raters.clamp(min=1))
        whole = torch.full_like(raters, _WHOLE)
        rows = torch.cat(
            [
                whole * raters.gt(1),
                agreeing,
                torch.cat(coincidences, 1) * of_pair,
                whole * raters.gt(0),
                counts * of_rater,
            ],
            1,
        )
        of_rows = Batch(rows, None, batch.weights, batch.cache_elements, batch.compiled)
        return of_rows, (given - raters[:, 0]).sum()[None]

    def canonicalize(self, state: State, rows: int) -> State:
        return self._sums.canonicalize(state, rows)

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        what = f"ratings are neither from 0 to {self.num_classes - 1} nor {self.missing} (missing)"
        (invalid,) = state["invalid_ratings"].tolist()
        return [*self._sums.weight_problems(state), *([InvalidValues(what, invalid)] if invalid else [])]

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from not_negative(state, "invalid_ratings")
        outputs = self._sums.num_outputs or 1
        yield from self._sums.broken_laws(state, HostCount(given.rows, given.rows * outputs))

    def compute(self, state: State) -> RatingPairSums:
        totals = self._sums.compute(state)[PREDS]
        shares = [each if isinstance(each, float) else Fraction(each) / _WHOLE for each in totals]
        paired, agreement, *rest = shares
        of_pairs, (rated, *categories) = rest[: len(self._pairs)], rest[len(self._pairs) :]
        coincidences = dict(zip(self._pairs, of_pairs, strict=True))
        return RatingPairSums(paired, agreement, coincidences, rated, categories)
