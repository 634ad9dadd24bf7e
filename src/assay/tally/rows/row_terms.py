"""What single rows of vectors, distributions and tokens give, to be summed exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from assay.errors import DtypeError, ShapeError, describe
from assay.native import pair_terms
from assay.tally.base import Batch, BatchLayout, TensorLayout, shown
from assay.tally.layout_checks import AS_INTEGERS, check_as_preds, check_real, check_weights, shown_or_nothing
from assay.tally.sums.float_terms import contiguous_float, difference
from assay.tally.sums.row_sums import RowTerm, RowValues, SumShape, sum_each_row


def check_vectors(layout: BatchLayout) -> None:
    """Raise where preds and target are not both `(N, D)`, or the weights not `(N,)`."""
    target = layout.target
    if target is None or target.tail != layout.preds.tail or len(target.tail) != 1 or 0 in target.tail:
        got = f"preds {shown(layout.preds.tail)} and target {shown_or_nothing(target)}"
        raise ShapeError(describe("target", got, "both of shape (N, D)", "Give one vector per row"))
    check_weights(layout.weights)


def _sides(layout: BatchLayout) -> tuple[tuple[str, TensorLayout], ...]:
    assert layout.target is not None, "the layout was checked"
    return ("preds", layout.preds), ("target", layout.target)


@dataclass(frozen=True)
class RowNumbers(RowTerm):
    """The `width` numbers of each row of `preds (N, width)` themselves, as encoders and other programs compute them."""

    width: int = 1

    uses_target = False
    rounding = 0.0
    not_finite = "numbers are NaN or infinite"

    @cached_property
    def sums(self) -> tuple[SumShape, ...]:
        return (SumShape(self.width),)

    def check(self, layout: BatchLayout) -> None:
        preds = layout.preds
        if preds.tail != (self.width,):
            do = "Give one row of numbers per sample"
            raise ShapeError(describe("preds", f"shape {shown(preds.tail)}", f"shape (N, {self.width})", do))
        check_real("preds", preds)
        check_weights(layout.weights)

    def __call__(self, batch: Batch) -> RowValues:
        return RowValues(batch.preds)


@dataclass(frozen=True)
class FunctionNumbers(RowNumbers):
    """The numbers that a function of the caller gave for each sample: NaN is invalid, infinity a value."""

    not_finite = ""
    invalid = ("samples for which the function gave NaN",)

    def __call__(self, batch: Batch) -> RowValues:
        undefined = batch.preds.isnan().any(1)
        return RowValues(batch.preds, counted=~undefined, invalid=[undefined])


@dataclass(frozen=True)
class Cosine(RowTerm):
    """The cosine of the angle between `preds (N, D)` and `target (N, D)`, row by row."""

    not_finite = "rows have no direction (all zeros, or a value that is NaN or infinite)"

    def check(self, layout: BatchLayout) -> None:
        check_vectors(layout)
        for name, column in _sides(layout):
            check_real(name, column)

    def __call__(self, batch: Batch) -> RowValues:
        # Scaled to a largest component of 1, no square overflows or vanishes. A row of zeros gives NaN.
        x, y = contiguous_float(batch.preds), contiguous_float(batch.needed_target)
        if _takes_rows(batch, x, y):
            return RowValues(pair_terms.cosines(x, y, sum_each_row))
        x, y = (side / side.abs().amax(1, keepdim=True) for side in (x, y))
        norms = sum_each_row(x * x).sqrt_() * sum_each_row(y * y).sqrt_()
        return RowValues(sum_each_row(x * y).div_(norms).clamp_(-1, 1))


@dataclass(frozen=True)
class Divergence(RowTerm):
    """The terms of the Kullback-Leibler divergence of each row of `target (N, D)` from that of `preds (N, D)`."""

    log_prob: bool = False
    invalid = ("rows have NaN, or a sum that is 0 or infinite", "rows have negative probabilities")

    def check(self, layout: BatchLayout) -> None:
        check_vectors(layout)
        for name, column in _sides(layout):
            if not column.dtype.is_floating_point:
                raise DtypeError(describe(name, column.dtype, "probabilities as floats", f"Pass {name}.float()"))

    def __call__(self, batch: Batch) -> RowValues:
        dtype = torch.float64 if torch.float64 in (batch.preds.dtype, batch.needed_target.dtype) else torch.float32
        p, q = (side.to(dtype).contiguous() for side in (batch.preds, batch.needed_target))  # as sums have an order
        plain = self._of_normal_shares(p, q) if not self.log_prob and _takes_rows(batch, p, q) else None
        if plain is not None:
            return RowValues(plain)
        terms = self._of_logarithms(p, q) if self.log_prob else self._of_probabilities(p, q)
        undefined = terms.isnan().any(1)
        if self.log_prob:
            for masses in (p.exp(), q.exp()):
                undefined |= ~((masses > 0).any(1) & (masses < math.inf).all(1))
        negative = torch.zeros_like(undefined) if self.log_prob else (torch.minimum(p, q) < 0).any(1)
        return RowValues(terms, invalid=[undefined & ~negative, negative])

    def _of_normal_shares(self, p: Tensor, q: Tensor) -> Tensor | None:
        """The terms by compiled code, where it finds that all shares are normal numbers: the bits of the others."""
        return pair_terms.divergences(p, q, sum_each_row)

    def _of_logarithms(self, p: Tensor, q: Tensor) -> Tensor:
        return torch.where(p == -math.inf, 0, p.exp() * (p - q))

    def _of_probabilities(self, p: Tensor, q: Tensor) -> Tensor:
        share, log_p = shares(p)
        other, log_q = shares(q)
        ratio = share / other
        tiny = torch.finfo(p.dtype).tiny
        plain = torch.minimum(share, other) >= tiny  # else digits, or all of the share, may be lost
        logs = torch.where(plain & (ratio < math.inf), ratio.log(), log_p - log_q)
        none = torch.where(other.isnan(), other, 0)
        return torch.where((p == 0) & (share == 0), none, share.clamp(min=tiny) * logs)


def _takes_rows(batch: Batch, x: Tensor, y: Tensor) -> bool:
    """Whether compiled code computes the terms of contiguous rows of a batch, which no one records."""
    return batch.compiled and batch.terms is None and pair_terms.takes_rows(x, y)


def _half(dtype: torch.dtype) -> int:
    """Half the exponent of the largest number."""
    return round(math.log2(torch.finfo(dtype).max)) // 2


def shares(x: Tensor) -> tuple[Tensor, Tensor]:
    """The share of each element in the sum of its row, and its logarithm also where the share is too small for a float.

    A row whose sum could overflow is multiplied by a power of two first.
    """
    half = _half(x.dtype)
    largest = x.amax(1, keepdim=True)
    scale = torch.ones_like(largest).masked_fill_(largest > 2.0**half, 2.0**-half)
    total = sum_each_row(x * scale)
    return (x * scale) / total, x.log() - (total.log() - scale.log())


@dataclass(frozen=True)
class TokenLogLoss(RowTerm):
    """`-log softmax(preds)[target]` of every token: `preds (N, ..., V)` are logits, `target (N, ...)` indices."""

    ignore_index: int | None = None

    not_finite = "tokens have a log probability that is NaN or infinite"
    invalid = ("targets are out of the range of the vocabulary",)

    def check(self, layout: BatchLayout) -> None:
        preds, target = layout.preds, layout.target
        if target is None or preds.tail[:-1] != target.tail or not preds.tail or not preds.tail[-1]:
            got = f"shape {shown(preds.tail)} with target {shown_or_nothing(target)}"
            do = "Put the vocabulary last: logits.movedim(1, -1) if it is second"
            raise ShapeError(describe("preds", got, "shape (N, ..., V) with target of shape (N, ...)", do))
        if not preds.dtype.is_floating_point:
            raise DtypeError(describe("preds", preds.dtype, "floats: logits", "Pass the logits"))
        if target.dtype.is_floating_point or target.dtype.is_complex:
            raise DtypeError(describe("target", target.dtype, "an integer dtype", AS_INTEGERS))
        check_weights(layout.weights, target.tail)

    def __call__(self, batch: Batch) -> RowValues:
        logits = batch.preds.reshape(-1, batch.preds.shape[-1])
        target = batch.needed_target.reshape(-1).to(torch.int64)
        wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
        inside = target.clamp(0, logits.shape[1] - 1)
        values = logits.log_softmax(1, dtype=wide).gather(1, inside[:, None]).neg_()
        return self._rows(values, target, torch.eq(target, inside))

    def _rows(self, values: Tensor, target: Tensor, valid: Tensor) -> RowValues:
        if self.ignore_index is None:
            return RowValues(values, counted=valid, invalid=[~valid])
        not_ignored = torch.ne(target, self.ignore_index)
        return RowValues(values, counted=valid & not_ignored, invalid=[not_ignored & ~valid])


@dataclass(frozen=True)
class KnownTokenLogLoss(TokenLogLoss):
    """The same, where `preds (N, ...)` are the losses themselves, of a vocabulary of so many words."""

    vocabulary: int = 0

    def __call__(self, batch: Batch) -> RowValues:
        target = batch.needed_target.reshape(-1).to(torch.int64)
        valid = torch.ge(target, 0) & torch.lt(target, self.vocabulary)
        return self._rows(batch.preds.reshape(-1, 1), target, valid)


@dataclass(frozen=True)
class LargestVertexError(RowTerm):
    """The largest squared distance between corresponding vertices of `preds (N, V, D)` and `target (N, V, D)`.

    Args:
        vertices: the vertices that count, as ranges `(start, stop)`.
    """

    vertices: tuple[tuple[int, int], ...]
    invalid = ("frames have vertices that are NaN or infinite, or too far apart",)

    def check(self, layout: BatchLayout) -> None:
        preds = layout.preds
        check_real("preds", preds)
        if len(preds.tail) != 2 or 0 in preds.tail:
            do = "Give one mesh per frame: the last dimension has the coordinates of a vertex"
            raise ShapeError(describe("preds", f"shape {shown(preds.tail)}", "shape (N, V, D)", do))
        check_as_preds("target", layout.target, preds)
        needed = self.vertices[-1][1]
        if preds.tail[0] < needed:
            do = "Check the indices of the vertices"
            raise ShapeError(describe("preds", f"{preds.tail[0]} vertices", f"at least {needed}", do))
        check_weights(layout.weights)

    def __call__(self, batch: Batch) -> RowValues:
        values = self.errors(batch)
        undefined = values.isnan()
        return RowValues(values, counted=~undefined, invalid=[undefined])

    def errors(self, batch: Batch) -> Tensor:
        """The number of each frame, `(N,)`; NaN where it is not finite."""
        sides = (batch.preds, batch.needed_target)
        own, true = (torch.cat([side[:, start:stop] for start, stop in self.vertices], 1) for side in sides)
        first, *others = difference(own, true).square_().unbind(2)
        for each in others:  # in this order on every device
            first = first + each
        largest = first.amax(1)
        return torch.where((largest - largest) == 0, largest, math.nan)
