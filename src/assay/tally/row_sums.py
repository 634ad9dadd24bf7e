"""Sums over rows of a number that a whole row gives: the cosine of two vectors, the log probability of a token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from assay.errors import DtypeError, ShapeError, describe
from assay.tally.base import Batch, BatchLayout, InvalidValues, Rule, State, Tally, shown
from assay.tally.sums import PREDS, Sums, Totals


@dataclass(frozen=True, eq=False)
class RowValues:
    """One number per row, float32 or float64 of shape `(rows,)`, and which rows are left out.

    Args:
        values: the numbers; any where a row is left out.
        left_out: bool of shape `(rows,)`; None when all rows count.
        invalid: how many of them are left out because their values cannot be; int64 of shape `()`.
    """

    values: Tensor
    left_out: Tensor | None = None
    invalid: Tensor | None = None


class RowTerm(ABC):
    """A frozen description of the number that a row gives, computed in floating point on the device.

    The rounding of each number is that of the device; the sum adds none.
    """

    not_finite: str
    """What a row is whose number is NaN or infinite, for messages."""
    invalid: str
    """What an invalid row is."""

    @abstractmethod
    def check(self, layout: BatchLayout) -> None:
        """Raise an `InputError` when a batch of this layout has no such rows."""

    @abstractmethod
    def __call__(self, batch: Batch) -> RowValues:
        """The number of every row, rows in the order of dimension 0."""


@dataclass(frozen=True)
class RowSum(Tally):
    """The exact sum, weighted or not, of the numbers that rows give.

    State: that of `Sums` of one term, and `invalid`, int64 of shape `(1,)`: how many rows were left out because their
    values cannot be. 0.6 KiB, weighted 1.7 KiB.
    """

    term: RowTerm
    weighted: bool = False

    @property
    def chunk_scale(self) -> int:
        return 16  # a softmax reads and writes its rows once, and the rest is small

    @cached_property
    def _sums(self) -> Sums:
        return Sums(frozenset({PREDS}), None, self.weighted, ("preds",))

    @property
    def fields(self) -> Mapping[str, Rule]:
        return {**self._sums.fields, "invalid": "sum"}

    def check(self, layout: BatchLayout) -> None:
        self.term.check(layout)

    def zero(self, device: torch.device) -> State:
        return {**self._sums.zero(device), "invalid": torch.zeros(1, dtype=torch.int64, device=device)}

    def add(self, state: State, batch: Batch) -> None:
        rows: RowValues = batch.memoize(self.term, self.term)
        values = rows.values
        weights = _row_weights(batch.weights, len(values)) if batch.weights is not None and self.weighted else None
        if rows.left_out is not None:
            values = values.masked_fill(rows.left_out, 0)
            weights = None if weights is None else weights.masked_fill(rows.left_out, 0)
            state["count"] -= rows.left_out.sum()
        if rows.invalid is not None:
            state["invalid"] += rows.invalid
        self._sums.add(state, Batch(values, None, weights, batch.cache_elements, batch.compiled))

    def canonicalize(self, state: State, rows: int) -> State:
        return self._sums.canonicalize(state, rows)

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        invalid, strange = int(state["invalid"]), int(state["strange"].sum())
        found = self._sums.weight_problems(state)
        if invalid:
            found.append(InvalidValues(self.term.invalid, invalid))
        return [*found, InvalidValues(self.term.not_finite, strange, fatal=False)] if strange else found

    def compute(self, state: State) -> Totals:
        """The sum under the term `PREDS`, and the weight."""
        return self._sums.compute(state)


def _row_weights(weights: Tensor, rows: int) -> Tensor:
    """One weight per row, from one each or one per sample of several rows."""
    flat = weights.reshape(-1)
    return flat if len(flat) == rows else flat.view(-1, 1).expand(-1, rows // len(flat)).reshape(-1)


def row_sums(x: Tensor) -> Tensor:
    """The sum of each row of a contiguous `(rows, columns)`, in floating point, of shape `(rows, 1)`.

    A single long row torch adds up in several threads, in another order than it has among other rows.
    """
    return x.expand(2, -1).sum(1, keepdim=True)[:1] if len(x) == 1 else x.sum(1, keepdim=True)


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


@dataclass(frozen=True)
class Cosine(RowTerm):
    """The cosine of the angle between `preds (N, D)` and `target (N, D)`, row by row."""

    not_finite = "rows have no direction (all zeros, or a value that is NaN or infinite)"
    invalid = "rows are invalid"

    def check(self, layout: BatchLayout) -> None:
        target = layout.target
        if target is None or target.tail != layout.preds.tail or len(target.tail) != 1 or 0 in target.tail:
            got = f"preds {shown(layout.preds.tail)} and target {'nothing' if target is None else shown(target.tail)}"
            raise ShapeError(describe("target", got, "both of shape (N, D)", "Give one vector per row"))
        for name, given in (("preds", layout.preds), ("target", target)):
            if given.dtype.is_complex:
                raise DtypeError(describe(name, given.dtype, "real numbers", "Pass the real part or the modulus"))
        if layout.weights is not None and layout.weights.tail:
            got = f"shape {shown(layout.weights.tail)}"
            raise ShapeError(describe("weights", got, "shape (N,)", "Give one weight per row"))

    def __call__(self, batch: Batch) -> RowValues:
        # Scaled to a largest component of 1, no square overflows or vanishes. A row of zeros gives NaN.
        x, y = (_wide(side) for side in (batch.preds, batch.needed_target))
        x, y = (side / side.abs().amax(1, keepdim=True) for side in (x.contiguous(), y.contiguous()))
        norms = row_sums(x * x).sqrt_() * row_sums(y * y).sqrt_()
        return RowValues(row_sums(x * y).div_(norms).clamp_(-1, 1).view(-1))


@dataclass(frozen=True)
class TokenLogLoss(RowTerm):
    """`-log softmax(preds)[target]` of every token: `preds (N, ..., V)` are logits, `target (N, ...)` indices."""

    ignore_index: int | None = None

    not_finite = "tokens have a log probability that is NaN or infinite"
    invalid = "targets are out of the range of the vocabulary"

    def check(self, layout: BatchLayout) -> None:
        preds, target, weights = layout.preds, layout.target, layout.weights
        if target is None or preds.tail[:-1] != target.tail or not preds.tail or not preds.tail[-1]:
            got = f"shape {shown(preds.tail)} with target {'nothing' if target is None else shown(target.tail)}"
            do = "Put the vocabulary last: logits.movedim(1, -1) if it is second"
            raise ShapeError(describe("preds", got, "shape (N, ..., V) with target of shape (N, ...)", do))
        if not preds.dtype.is_floating_point:
            raise DtypeError(describe("preds", preds.dtype, "floats: logits", "Pass the logits"))
        if target.dtype.is_floating_point or target.dtype.is_complex:
            raise DtypeError(describe("target", target.dtype, "an integer dtype", "Pass target.long()"))
        if weights is not None and weights.tail not in ((), target.tail):
            expected = f"shape (N,) or {shown(target.tail)}"
            do = "Give one weight per sample or per token"
            raise ShapeError(describe("weights", f"shape {shown(weights.tail)}", expected, do))

    def __call__(self, batch: Batch) -> RowValues:
        logits = batch.preds.reshape(-1, batch.preds.shape[-1])
        target = batch.needed_target.reshape(-1).to(torch.int64)
        wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
        inside = target.clamp(0, logits.shape[1] - 1)
        values = logits.log_softmax(1, dtype=wide).gather(1, inside[:, None]).view(-1).neg_()
        outside = torch.ne(target, inside)
        if self.ignore_index is None:
            return RowValues(values, outside, outside.sum())
        ignored = torch.eq(target, self.ignore_index)
        left_out = outside.logical_or(ignored)
        return RowValues(values, left_out, left_out.sum() - ignored.sum())
