"""Exact sums of terms over samples: the state of every metric that is read from sums."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from assay.errors import DtypeError, ShapeError, describe
from assay.tally import exact
from assay.tally.base import Batch, Layout, Problem, Rule, State, Tally, shown

Argument = Literal["preds", "target", "weights"]
Number = Fraction | float


class Term(ABC):
    """A frozen description of what is summed: one exact number per sample and output."""

    @property
    def order(self) -> int:
        """How many floats are multiplied in it."""
        return 1

    @abstractmethod
    def parts(self, batch: Batch) -> exact.Parts:
        """The term of every row, exactly, of shape `(rows, outputs)`."""

    @abstractmethod
    def scaled(self, batch: Batch) -> Tensor:
        """The term as floats, scaled so that only infinities and NaN among the inputs make it not finite."""


@dataclass(frozen=True)
class Value(Term):
    """The argument itself."""

    argument: Argument = "preds"

    def parts(self, batch: Batch) -> exact.Parts:
        return batch.once(("parts", self.argument), lambda b: exact.parts(column(b, self.argument)))

    def scaled(self, batch: Batch) -> Tensor:
        return batch.once(("scaled", self.argument), lambda b: _scaled_down(column(b, self.argument)))


PREDS, TARGET, WEIGHTS = Value("preds"), Value("target"), Value("weights")


@dataclass(frozen=True)
class Product(Term):
    """The product of two terms."""

    left: Term
    right: Term

    @property
    def order(self) -> int:
        return self.left.order + self.right.order

    def parts(self, batch: Batch) -> exact.Parts:
        return batch.once(self, lambda b: exact.product(self.left.parts(b), self.right.parts(b)))

    def scaled(self, batch: Batch) -> Tensor:
        return self.left.scaled(batch) * self.right.scaled(batch)


@dataclass(frozen=True)
class AbsoluteError(Term):
    """`|preds - target|`, exactly: the sign of the difference is a comparison, and the sum of signed values is exact."""

    def parts(self, batch: Batch) -> exact.Parts:
        return batch.once(self, self._parts)

    def _parts(self, batch: Batch) -> exact.Parts:
        preds, target = column(batch, "preds"), column(batch, "target")
        sign = torch.gt(preds, target).to(torch.int64).sub_(torch.lt(preds, target))
        return exact.both(PREDS.parts(batch).times_sign(sign), TARGET.parts(batch).times_sign(-sign))

    def scaled(self, batch: Batch) -> Tensor:
        return (PREDS.scaled(batch) - TARGET.scaled(batch)).abs_()


class FloatTerm(Term):
    """A term that is computed in floating point, sample by sample, and then summed exactly.

    It is computed in float32, or in float64 where an argument is float64. The rounding of each term is that of the
    device; the sum adds none.
    """

    @abstractmethod
    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        """The term of every row, of the shape of `preds`, from floats of one dtype."""

    def _values(self, batch: Batch) -> Tensor:
        preds, target = column(batch, "preds"), column(batch, "target")
        dtype = torch.float64 if torch.float64 in (preds.dtype, target.dtype) else torch.float32
        return self(preds.to(dtype), target.to(dtype))

    def parts(self, batch: Batch) -> exact.Parts:
        return batch.once(self, lambda b: exact.parts(batch.once((self, "values"), self._values)))

    def scaled(self, batch: Batch) -> Tensor:
        return _scaled_down(batch.once((self, "values"), self._values))


def column(batch: Batch, argument: Argument) -> Tensor:
    """An argument of a batch whose arguments are all of shape `(rows, outputs)`."""
    tensor: Tensor | None = getattr(batch, argument)
    assert tensor is not None, "the layout was checked"
    return tensor


def _scaled_down(x: Tensor) -> Tensor:
    if not x.dtype.is_floating_point:
        return torch.zeros(x.shape, device=x.device)
    if x.dtype == torch.float64:
        return x * 2.0**-700
    return x.float().mul(2.0**-80)


@dataclass(frozen=True)
class Totals:
    """Exact sums on the host, for each output.

    `totals[term]` is a list with one `Fraction` per output, or a float (inf, -inf, NaN) where the data was not finite.
    """

    count: int
    weight: list[Number]
    sums: Mapping[Term, list[Number]]

    def __getitem__(self, term: Term) -> list[Number]:
        return self.sums[term]


@dataclass(frozen=True)
class Sums(Tally):
    """Exact sums of terms over all samples, for each of `num_outputs` outputs.

    State, all int64: `count` (how many values each output has), `strange` (how many of them were not finite), and for
    each order of terms `sums<order>` of shape `(terms, outputs, num_limbs(order))` with `special<order>` of shape
    `(terms, outputs, 3)`, which is positive where a sum met +inf, -inf or NaN. Size: 0.6, 1.1 or 1.6 KiB per term and
    output for orders 1, 2 and 3. Weighted, each term is multiplied by the weight of its sample.

    With `num_outputs`, arguments are `(N, num_outputs)`; without, every element of `(N, ...)` is a sample of one output.
    """

    terms: frozenset[Term]
    num_outputs: int | None = None
    weighted: bool = False
    arguments: tuple[Argument, ...] = ("preds", "target")

    @property
    def _outputs(self) -> int:
        return self.num_outputs or 1

    @cached_property
    def _by_order(self) -> dict[int, list[Term]]:
        terms = sorted(self.terms, key=repr)
        counted = [Product(term, WEIGHTS) for term in terms] + [WEIGHTS] if self.weighted else terms
        orders = sorted({term.order for term in counted})
        return {order: [term for term in counted if term.order == order] for order in orders}

    @property
    def fields(self) -> Mapping[str, Rule]:
        names = ["count", "strange"]
        for order in self._by_order:
            names += [f"sums{order}", f"special{order}"]
        return dict.fromkeys(names, "sum")

    def check(self, layout: Layout) -> None:
        preds, target, weights = layout.preds, layout.target, layout.weights
        columns = {"preds": preds, "target": target}
        for name in self.arguments:
            given = columns[name]
            if given is None:
                raise ShapeError(describe(name, "nothing", "a tensor of the shape of preds", f"Pass {name}"))
            if given.dtype.is_complex:
                raise DtypeError(describe(name, given.dtype, "real numbers", "Pass the real part or the modulus"))
            if given.tail != preds.tail:
                raise ShapeError(
                    describe(
                        name,
                        f"shape {shown(given.tail)} with preds of shape {shown(preds.tail)}",
                        "the shape of preds",
                        f"Reshape {name}, for example with squeeze(-1) or unsqueeze(-1)",
                    )
                )
        if self.num_outputs is not None and (preds.tail or (1,)) != (self.num_outputs,):
            raise ShapeError(
                describe("preds", f"shape {shown(preds.tail)}", f"shape (N, {self.num_outputs})", "Check num_outputs")
            )
        if weights is not None and weights.tail not in ((), preds.tail):
            raise ShapeError(
                describe("weights", f"shape {shown(weights.tail)}", "shape (N,) or that of preds", "Give one weight each")
            )

    def zero(self, device: torch.device) -> State:
        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.int64, device=device)

        state: State = {"count": zeros(1), "strange": zeros(self._outputs)}
        for order, terms in self._by_order.items():
            state[f"sums{order}"] = zeros(len(terms), self._outputs, exact.num_limbs(order))
            state[f"special{order}"] = zeros(len(terms), self._outputs, 3)
        return state

    def add(self, state: State, batch: Batch) -> None:
        columns = batch.once(("columns", self.num_outputs is None, self.arguments), self._columns)
        state["count"] += columns.preds.shape[0]
        pieces = batch.once(("pieces", self.num_outputs is None, self.arguments), lambda b: _split(columns, b.cached))
        given = [getattr(columns, name) for name in (*self.arguments, "weights") if getattr(columns, name) is not None]
        mixed = len({exact.base(tensor.dtype) for tensor in given}) > 1
        for piece in pieces:
            strange = sum(Value(name).scaled(piece) for name in self._given)
            state["strange"] += torch.count_nonzero(strange - strange, 0)
        for order, terms in self._by_order.items():
            limbs, special = state[f"sums{order}"], state[f"special{order}"]
            for group in [[k] for k in range(len(terms))] if mixed else [list(range(len(terms)))]:
                chosen = slice(group[0], group[-1] + 1)
                exact.add_columns(limbs[chosen], ([t.parts(piece) for t in terms[chosen]] for piece in pieces))
            for piece in pieces:
                values = torch.stack([term.scaled(piece).sum(0) for term in terms])
                special += torch.stack([values == math.inf, values == -math.inf, values.isnan()], -1)

    @property
    def _given(self) -> tuple[Argument, ...]:
        return (*self.arguments, "weights") if self.weighted else self.arguments

    def _columns(self, batch: Batch) -> Batch:
        """The batch with every argument of shape `(rows, outputs)`."""
        shape = batch.preds.shape
        outputs = 1 if self.num_outputs is None else self._outputs

        def arranged(tensor: Tensor) -> Tensor:
            if tensor.shape != shape:  # weights of shape (N,)
                tensor = tensor.view(-1, *(1,) * (len(shape) - 1)).expand(shape)
            return tensor.reshape(-1, outputs)

        target = batch.target if "target" in self.arguments else None
        return Batch(
            arranged(batch.preds),
            None if target is None else arranged(target),
            None if batch.weights is None else arranged(batch.weights),
            batch.cached,
        )

    def settle(self, state: State, rows: int) -> State:
        done = dict(state)
        for order in self._by_order:
            done[f"sums{order}"] = exact.settled(state[f"sums{order}"])
            done[f"special{order}"] = _settled_special(state[f"special{order}"])
        return done

    def problems(self, state: State) -> Sequence[Problem]:
        strange = int(state["strange"].sum())
        return [Problem("values are NaN or infinite", strange, fatal=False)] if strange else []

    def join(self, other: Tally) -> Tally | None:
        if not isinstance(other, Sums) or replace(other, terms=self.terms) != self:
            return None
        return replace(self, terms=self.terms | other.terms)

    def part(self, state: State, wanted: Tally) -> State:
        assert isinstance(wanted, Sums)
        chosen: State = {"count": state["count"], "strange": state["strange"]}
        for order, terms in wanted._by_order.items():
            index = torch.tensor([self._by_order[order].index(term) for term in terms])
            for name in (f"sums{order}", f"special{order}"):
                chosen[name] = state[name].index_select(0, index)
        return chosen

    def read(self, state: State) -> Totals:
        """The sums of the terms as exact numbers."""
        sums: dict[Term, list[Number]] = {}
        for order, terms in self._by_order.items():
            values = exact.to_integers(state[f"sums{order}"])
            for term, integers, special in zip(terms, values, state[f"special{order}"].tolist(), strict=True):
                name = term.left if isinstance(term, Product) and term.right == WEIGHTS else term
                sums[name] = [_number(v, s, exact.origin(order)) for v, s in zip(integers, special, strict=True)]
        count = int(state["count"])
        return Totals(count, sums.pop(WEIGHTS) if self.weighted else [Fraction(count)] * self._outputs, sums)


def _split(batch: Batch, elements: int) -> list[Batch]:
    """Chunks of rows whose temporaries stay in the cache."""
    rows, outputs = batch.preds.shape
    if rows * outputs <= elements:
        return [batch]
    size = max(1, elements // outputs)
    parts = [x.split(size) if x is not None else None for x in (batch.preds, batch.target, batch.weights)]
    return [Batch(*(p[k] if p else None for p in parts), batch.cached) for k in range(-(-rows // size))]


def _settled_special(special: Tensor) -> Tensor:
    """One of none, +inf, -inf and NaN; infinities of both signs make NaN."""
    plus, minus, nan = special.clamp(max=1).unbind(-1)
    nan = torch.maximum(nan, plus * minus)
    return torch.stack([plus * (1 - nan), minus * (1 - nan), nan], -1)


def _number(value: int, special: Sequence[int], unit: int) -> Number:
    for flag, number in zip(special, (math.inf, -math.inf, math.nan), strict=True):
        if flag:
            return number
    return Fraction(value, 1 << -unit)
