"""Losses, added up: each is computed in floating point, sample by sample, and the sum of the floats is exact.

Losses are computed in float32, or in float64 for float64 inputs. The rounding of each term is that of the device; the
sum adds none, and does not depend on how the samples were split.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from assay.decide import first_largest
from assay.errors import DtypeError, ShapeError, describe
from assay.native import sums as native
from assay.native.library import takes
from assay.tally import exact
from assay.tally.base import Batch, BatchLayout, InvalidValues, Rule, State, Tally, bad_weights, shown
from assay.tally.labelled_scores import KINDS, ScoreSpec, probabilities
from assay.tally.row_sums import row_sums
from assay.tally.sums import Number


@dataclass(frozen=True)
class SumShape:
    """The shape of a sum over the rows: of how many columns, and of the values (power 1) or their squares (power 2)."""

    columns: int = 1
    power: int = 1


class Loss(ABC):
    """A frozen description of what is summed over the rows."""

    @abstractmethod
    def sums(self, data: ScoreSpec) -> tuple[SumShape, ...]:
        """The shapes of the sums."""

    @abstractmethod
    def __call__(self, data: ScoreSpec, scores: Tensor, known: Tensor) -> tuple[Tensor, ...]:
        """What is summed, floats of shape `(rows, columns)`.

        Args:
            data: what the scores are.
            scores: float32 or float64 of shape `(rows, groups)`.
            known: the class, int64 of shape `(rows, 1)`; any class where the row will be left out.
        """


@dataclass(frozen=True)
class NegativeLogLikelihood(Loss):
    """`-log` of the probability of the target."""

    def sums(self, data: ScoreSpec) -> tuple[SumShape, ...]:
        return (SumShape(),)

    def __call__(self, data: ScoreSpec, scores: Tensor, known: Tensor) -> tuple[Tensor, ...]:
        if data.labels.multiclass:
            return (_cross_entropy(scores, known) if data.logits else -scores.gather(1, known).log(),)
        sign = 1 - 2 * known.to(scores.dtype)  # -1 for positives
        if data.logits:
            wrong = scores * sign
            return (wrong.clamp(min=0) + torch.log1p(torch.exp(-wrong.abs())),)
        return (torch.where(known == 1, -scores.log(), -torch.log1p(-scores)),)


def _cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """`log(sum(exp(logits))) - logits[target]`, without a large sum that hides a small loss."""
    best = first_largest(logits).clamp_(max=logits.shape[1] - 1)[:, None]
    highest = logits.gather(1, best)
    others = row_sums((logits - highest).exp_().scatter_(1, best, 0))  # the best itself would add 1
    return (highest - logits.gather(1, target)) + torch.log1p(others)


@dataclass(frozen=True)
class SquaredProbabilities(Loss):
    """The squares of all probabilities, the probability of the target (binary: of 1, where that is the target), and 1
    for each row (binary: where the target is 1): what the Brier score is made of, without rounding."""

    def sums(self, data: ScoreSpec) -> tuple[SumShape, ...]:
        return (SumShape(data.groups, 2), SumShape(), SumShape())

    def __call__(self, data: ScoreSpec, scores: Tensor, known: Tensor) -> tuple[Tensor, ...]:
        multiclass = data.labels.multiclass
        if data.logits:
            scores = probabilities(scores, multiclass)
        if multiclass:
            own = scores.gather(1, known)
            return scores, own, torch.ones_like(own)
        positive = known.to(scores.dtype)
        return scores, scores * positive, positive


@dataclass(frozen=True)
class Hinge(Loss):
    """`max(0, 1 - margin)`, or its square."""

    squared: bool = False
    one_vs_all: bool = False

    def sums(self, data: ScoreSpec) -> tuple[SumShape, ...]:
        return (SumShape(data.groups if self.one_vs_all else 1),)

    def __call__(self, data: ScoreSpec, scores: Tensor, known: Tensor) -> tuple[Tensor, ...]:
        loss = (1 - self._margin(data, scores, known)).clamp(min=0)
        return (loss.square() if self.squared else loss,)

    def _margin(self, data: ScoreSpec, scores: Tensor, known: Tensor) -> Tensor:
        if not data.labels.multiclass:
            return scores * (2 * known.to(scores.dtype) - 1)
        if self.one_vs_all:
            own = torch.eq(known, torch.arange(data.groups, device=scores.device)).to(scores.dtype)
            return scores * (2 * own - 1)
        others = scores.scatter(1, known, -math.inf).amax(1, keepdim=True)
        return scores.gather(1, known) - others


@dataclass(frozen=True)
class LossTotals:
    """How many rows there were, their weight (their number, without weights), and the exact sums, by column."""

    count: int
    weight: Fraction
    sums: tuple[list[Number], ...]


class LossTally(Tally):
    """Exact sums over rows. State, int64: `count`, `strange`, limbs `sum<k>` with `infinite<k>`, and `weight`."""

    weighted: bool

    @abstractmethod
    def shapes(self) -> tuple[SumShape, ...]:
        """The sums."""

    @property
    def fields(self) -> Mapping[str, Rule]:
        numbered = [f"{name}{k}" for k in range(len(self.shapes())) for name in ("sum", "infinite")]
        return dict.fromkeys(["count", "strange", *numbered, *(["weight"] if self.weighted else [])], "sum")

    def zero(self, device: torch.device) -> State:
        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.int64, device=device)

        state = {"count": zeros(1), "strange": zeros(len(KINDS))}
        for k, shape in enumerate(self.shapes()):
            state[f"sum{k}"] = zeros(1, shape.columns, exact.num_limbs(shape.power + self.weighted))
            state[f"infinite{k}"] = zeros(shape.columns)
        if self.weighted:
            state["weight"] = zeros(1, 1, exact.num_limbs(1))
        return state

    def add_values(
        self, state: State, batch: Batch, values: Sequence[Tensor], counted: Tensor, weights: Tensor | None
    ) -> None:
        """Add what is summed of the rows where `counted`, booleans of shape `(rows, 1)`."""
        state["count"] += counted.sum()
        if weights is not None:
            weights = torch.where(counted & ((weights - weights) == 0), weights, 0)
            _add_exactly(state["weight"], batch.compiled, weights)
        for k, (shape, value) in enumerate(zip(self.shapes(), values, strict=True)):
            weighs = counted if weights is None else weights != 0
            state[f"infinite{k}"] += ((value == math.inf) & weighs).sum(0)
            finite = torch.where(counted & ((value - value) == 0), value, 0)
            factors = [finite] * shape.power + ([] if weights is None else [weights.expand_as(finite)])
            _add_exactly(state[f"sum{k}"], batch.compiled, *factors)

    def canonicalize(self, state: State, rows: int) -> State:
        limbs = [name for name in state if name.startswith(("sum", "weight"))]
        return state | {name: exact.canonical(state[name]) for name in limbs}

    def compute(self, state: State) -> LossTotals:
        """The sums as exact numbers; a sum with an infinite term is infinite."""
        count = int(state["count"])
        weight = Fraction(count)
        if self.weighted:
            weight = exact.to_integers(state["weight"])[0, 0] * Fraction(2) ** exact.origin(1)
        return LossTotals(count, weight, tuple(self._sum(state, k) for k in range(len(self.shapes()))))

    def _sum(self, state: State, k: int) -> list[Number]:
        unit = Fraction(2) ** exact.origin(self.shapes()[k].power + self.weighted)
        whole, infinite = exact.to_integers(state[f"sum{k}"])[0], state[f"infinite{k}"].tolist()
        return [math.inf if some else unit * value for some, value in zip(infinite, whole, strict=True)]


def _add_exactly(limbs: Tensor, compiled: bool, *factors: Tensor) -> None:
    """Add the sums over the rows of the products of `factors`, each of shape `(rows, columns)`."""
    order = len(factors)
    if compiled and takes(*factors):
        native.add_products(limbs[0], factors, exact.origin(order))
        return
    product = exact.parts(factors[0])
    for factor in factors[1:]:
        product = exact.product(product, exact.parts(factor.contiguous()))
    exact.add_columns(limbs, [[product]])


@dataclass(frozen=True)
class Losses(LossTally):
    """The exact sums of a loss of scores and labels. Size: 0.6 to 1.6 KiB a column."""

    data: ScoreSpec
    loss: Loss
    weighted: bool = False

    def shapes(self) -> tuple[SumShape, ...]:
        return self.loss.sums(self.data)

    def check(self, layout: BatchLayout) -> None:
        self.data.check(layout)

    def add(self, state: State, batch: Batch) -> None:
        rows = self.data.rows(batch)
        state["strange"] += self.data.strange(rows)
        known = self.data.known(rows)
        values = self.loss(self.data, rows.scores, known.clamp(min=0))
        if self.data.logits:  # infinite logits may leave no value
            lost = values[0].isnan().any(1) & ~rows.scores.isnan().any(1) & (known[:, 0] >= 0)
            state["strange"][1] += lost.sum()
        self.add_values(state, batch, values, known >= 0, rows.weights)

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        return self.data.invalid_values(state["strange"])


def _shares(x: Tensor) -> tuple[Tensor, Tensor]:
    """The share of each element in the sum of its row, and its logarithm also where the share is too small for a float.

    A row whose sum could overflow is multiplied by a power of two first.
    """
    half = round(math.log2(torch.finfo(x.dtype).max)) // 2
    largest = x.amax(1, keepdim=True)
    scale = torch.ones_like(largest).masked_fill_(largest > 2.0**half, 2.0**-half)
    total = row_sums(x * scale)
    return (x * scale) / total, x.log() - (total.log() - scale.log())


@dataclass(frozen=True)
class DivergenceTally(LossTally):
    """The exact sum of the terms of the Kullback-Leibler divergences of rows `(N, d)`; and the weight of the rows."""

    log_prob: bool = False
    weighted: bool = False

    def shapes(self) -> tuple[SumShape, ...]:
        return (SumShape(), SumShape())

    def check(self, layout: BatchLayout) -> None:
        preds, target, weights = layout.preds, layout.target, layout.weights
        if target is None or target.tail != preds.tail or len(preds.tail) != 1:
            got = f"shape {shown(preds.tail)} with " + (
                "no target" if target is None else f"target {shown(target.tail)}"
            )
            raise ShapeError(describe("preds", got, "both of shape (N, d)", "Give one distribution per row"))
        for name, column in (("preds", preds), ("target", target)):
            if not column.dtype.is_floating_point:
                raise DtypeError(describe(name, column.dtype, "probabilities as floats", f"Pass {name}.float()"))
        if weights is not None and weights.tail:
            raise ShapeError(describe("weights", f"shape {shown(weights.tail)}", "shape (N,)", "Give one per row"))

    def add(self, state: State, batch: Batch) -> None:
        p, q = self._sides(batch)
        terms = self._terms(p, q)
        bad = torch.zeros_like(terms, dtype=torch.bool) if self.log_prob else torch.minimum(p, q) < 0
        negative = bad.any(1)
        kinds = [terms.isnan().any(1) & ~negative, negative]
        state["strange"][1:3] += torch.stack([kind.sum() for kind in kinds])
        weights = batch.weights
        if weights is not None:
            state["strange"][3] += bad_weights(weights).sum()
            weights = weights[:, None].expand_as(terms).reshape(-1, 1)
        flat = terms.reshape(-1, 1)
        first = torch.zeros_like(terms)
        first[:, :1] = 1  # one element of each row stands for it
        counted = torch.ones_like(flat, dtype=torch.bool)
        self.add_values(state, batch, (flat, first.reshape(-1, 1)), counted, weights)

    def terms(self, batch: Batch) -> Tensor:
        """The terms of every row, of shape `(N, d)`."""
        return self._terms(*self._sides(batch))

    def _sides(self, batch: Batch) -> tuple[Tensor, Tensor]:
        dtype = torch.float64 if torch.float64 in (batch.preds.dtype, batch.needed_target.dtype) else torch.float32
        return batch.preds.to(dtype).contiguous(), batch.needed_target.to(dtype).contiguous()  # as sums have an order

    def _terms(self, p: Tensor, q: Tensor) -> Tensor:
        if self.log_prob:
            return torch.where(p == -math.inf, 0, p.exp() * (p - q))
        share, log_p = _shares(p)
        other, log_q = _shares(q)
        ratio = share / other
        tiny = torch.finfo(p.dtype).tiny
        plain = torch.minimum(share, other) >= tiny  # else digits, or all of the share, may be lost
        logs = torch.where(plain & (ratio < math.inf), ratio.log(), log_p - log_q)
        none = torch.where(other.isnan(), other, 0)
        return torch.where((p == 0) & (share == 0), none, share.clamp(min=tiny) * logs)

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        texts = ("", "rows have NaN, a sum of 0, or one beyond float64", "rows have negative probabilities", KINDS[3])
        return [InvalidValues(what, n) for what, n in zip(texts, state["strange"].tolist(), strict=True) if n]
