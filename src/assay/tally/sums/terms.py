"""What exact sums are of: the arguments of an update, products of them, and numbers computed from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from assay.native.sums import Kind
from assay.tally.base import Batch
from assay.tally.sums import exact
from assay.tally.sums.fingerprints import reduced, residues, times
from assay.tally.sums.sum_columns import as_columns
from assay.tally.term_log import ROUNDING

Argument = Literal["preds", "target", "weights"]


class Computed(NamedTuple):
    """How compiled code computes a column from arguments; `exponent` is that of a power."""

    kind: Kind
    arguments: tuple[Argument, ...]
    exponent: int = 0


class Factor(ABC):
    """A frozen description of a column of floats that compiled code multiplies."""

    @property
    def computed(self) -> Computed | None:
        """How compiled code computes it from arguments; None where it is given, or computed by torch."""
        return None

    @abstractmethod
    def values(self, batch: Batch) -> Tensor:
        """The float of every row, of shape `(rows, outputs)`."""


class Term(ABC):
    """A frozen description of what is summed: one exact number per sample and output."""

    @property
    def order(self) -> int:
        """How many floats are multiplied in it."""
        return 1

    @property
    @abstractmethod
    def leaves(self) -> tuple[Leaf, ...]:
        """The floats that it is made of; it is finite where they are."""

    @abstractmethod
    def parts(self, batch: Batch) -> exact.Parts:
        """The term of every row, exactly, of shape `(rows, outputs)`."""

    def residues(self, batch: Batch) -> Tensor:
        """The term of every row modulo a prime, as `fingerprints.residues` has it."""
        return residues(self.parts(batch))

    def factor(self, batch: Batch) -> Tensor:
        """The same of a term of order 1 as a factor of a product, computed once for all products."""
        return batch.memoize(("factor", self), lambda b: reduced(self.residues(b)))

    @property
    @abstractmethod
    def addends(self) -> tuple[tuple[Factor, ...], ...]:
        """The same for compiled code: the term as a sum of products of at most three columns."""


class Leaf(Term, Factor):
    """A term that is one float, which may be infinite or NaN."""

    def parts(self, batch: Batch) -> exact.Parts:
        return batch.memoize(("parts", self), lambda b: exact.parts(self.values(b)))

    @property
    def addends(self) -> tuple[tuple[Factor, ...], ...]:
        return ((self,),)


@dataclass(frozen=True)
class ArgumentValue(Leaf):
    """The argument itself."""

    argument: Argument = "preds"

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return (self,)

    def values(self, batch: Batch) -> Tensor:
        return column(batch, self.argument)


PREDS, TARGET, WEIGHTS = ArgumentValue("preds"), ArgumentValue("target"), ArgumentValue("weights")


class FloatTerm(Leaf):
    """A term that is computed in floating point, sample by sample, and then summed exactly.

    It is computed in float32, or in float64 where an argument is float64. The rounding of each term is that of the
    device; the sum adds none.
    """

    needs: str = "preds and target for which it is defined"
    rounding: float = ROUNDING
    """How far apart two devices may compute it, as a part of the largest term or input; 0 for the same bits."""

    @abstractmethod
    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        """The term of every row, of the shape of `preds`, from floats of one dtype."""

    @property
    def is_of_pairs(self) -> bool:
        """Whether `values` are those of calling it with `preds` and `target` as floats of one dtype."""
        return type(self)._values is FloatTerm._values and type(self).values is FloatTerm.values

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return (self, PREDS, TARGET)

    def values(self, batch: Batch) -> Tensor:
        return batch.memoize(self, lambda b: b.rounded(self, [self._values(b)], self.rounding, is_of_inputs=True)[0])

    def _values(self, batch: Batch) -> Tensor:
        preds, target = column(batch, "preds"), column(batch, "target")
        dtype = torch.float64 if torch.float64 in (preds.dtype, target.dtype) else torch.float32
        return self(preds.to(dtype).contiguous(), target.to(dtype).contiguous())


@dataclass(frozen=True)
class Product(Term):
    """The product of two terms."""

    left: Term
    right: Term

    @property
    def order(self) -> int:
        return self.left.order + self.right.order

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return (*self.left.leaves, *self.right.leaves)

    def parts(self, batch: Batch) -> exact.Parts:
        product = batch.memoize(self, lambda b: exact.product(self.left.parts(b), self.right.parts(b)))
        return product

    @property
    def _factors(self) -> list[Term]:
        """The terms of order 1 whose product it is."""
        both = ([each] if not isinstance(each, Product) else each._factors for each in (self.left, self.right))
        return [factor for of_term in both for factor in of_term]

    def residues(self, batch: Batch) -> Tensor:
        return times(*(factor.factor(batch) for factor in self._factors))

    @property
    def addends(self) -> tuple[tuple[Factor, ...], ...]:
        return tuple(a + b for a in self.left.addends for b in self.right.addends)


@dataclass(frozen=True)
class AbsoluteValue(Term):
    """`|argument|`."""

    argument: Argument = "target"

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return (ArgumentValue(self.argument),)

    def parts(self, batch: Batch) -> exact.Parts:
        return batch.memoize(self, self._parts)

    def _parts(self, batch: Batch) -> exact.Parts:
        # The pieces of a large integer may differ in sign, so the sign is that of the value and not of each piece.
        sign = torch.sign(column(batch, self.argument)).to(torch.int64)
        return ArgumentValue(self.argument).parts(batch).times_sign(sign)

    @property
    def addends(self) -> tuple[tuple[Factor, ...], ...]:
        return ((Sign(self.argument), ArgumentValue(self.argument)),)


@dataclass(frozen=True)
class Sign(Factor):
    """-1, 0 or 1: the sign of an argument."""

    argument: Argument

    @property
    def computed(self) -> Computed:
        return Computed(Kind.SIGN, (self.argument,))

    def values(self, batch: Batch) -> Tensor:
        return torch.sign(column(batch, self.argument))


@dataclass(frozen=True)
class AbsoluteError(Term):
    """`|preds - target|`, exactly: the sign of the difference is a comparison, and sums of signed values are exact."""

    leaves = (PREDS, TARGET)

    def parts(self, batch: Batch) -> exact.Parts:
        return batch.memoize(self, self._parts)

    def _parts(self, batch: Batch) -> exact.Parts:
        sign = sign_of_difference(column(batch, "preds"), column(batch, "target"))
        return exact.both(PREDS.parts(batch).times_sign(sign), TARGET.parts(batch).times_sign(-sign))

    @property
    def addends(self) -> tuple[tuple[Factor, ...], ...]:
        return ((UnequalArgument(above=True),), (UnequalArgument(above=False),))


@dataclass(frozen=True)
class UnequalArgument(Factor):
    """The larger of preds and target, or the smaller one with the other sign, where they are unequal; elsewhere 0."""

    above: bool

    @property
    def computed(self) -> Computed:
        return Computed(Kind.LARGER if self.above else Kind.SMALLER, ("preds", "target"))

    def values(self, batch: Batch) -> Tensor:
        return batch.memoize("unequal arguments", _unequal)[0 if self.above else 1]


def _unequal(batch: Batch) -> tuple[Tensor, Tensor]:
    preds, target = column(batch, "preds"), column(batch, "target")
    dtype = torch.promote_types(preds.dtype, target.dtype)
    preds, target = preds.to(dtype).contiguous(), target.to(dtype).contiguous()
    above, below = preds > target, preds < target
    larger = torch.where(above, preds, torch.where(below, target, 0))
    return larger, -torch.where(above, target, torch.where(below, preds, 0))


def sign_of_difference(a: Tensor, b: Tensor) -> Tensor:
    """-1, 0 or 1 as int64, without rounding `a`, `b` or their difference."""
    if a.dtype.is_floating_point == b.dtype.is_floating_point:
        dtype = torch.promote_types(a.dtype, b.dtype)
        return _compared(a.to(dtype), b.to(dtype))
    if b.dtype.is_floating_point:
        return -sign_of_difference(b, a)
    # A float and an integer: an integer of 64 bits need not fit a float, but the whole part of a float fits an integer.
    if a.element_size() < 4:
        a = a.float()
    top = 2.0**63
    whole = a.floor()
    fits = whole.clamp(-top, top - top * torch.finfo(a.dtype).eps / 2)
    sign = _compared(fits.long(), b.long()).mul_(2) + torch.gt(a, whole)
    return sign.add_(torch.ge(a, top), alpha=4).sub_(torch.lt(a, -top).long(), alpha=4).clamp_(-1, 1)


def _compared(a: Tensor, b: Tensor) -> Tensor:
    if a.dtype == torch.bool:
        a, b = a.to(torch.int8), b.to(torch.int8)
    above, below = torch.gt(a, b, out=torch.empty_like(a)), torch.lt(a, b, out=torch.empty_like(a))
    if not a.dtype.is_signed:
        above, below = above.to(torch.int64), below.to(torch.int64)
    return above.sub_(below).to(torch.int64)


_ARGUMENTS = ("preds", "target", "weights")
_FLOATS = (torch.float32, torch.float64)

ColumnValues = Callable[[Tensor, Tensor | None, Tensor | None], list[Tensor | None]]
"""The columns of `preds`, `target` and `weights`, contiguous; None for those that compiled code computes."""


def columns_of_terms(factors: Sequence[Factor]) -> ColumnValues:
    """What gives the columns of factors, of batches of one output that are contiguous in host memory."""
    are_plain = all(
        isinstance(each, ArgumentValue) or each.computed or (isinstance(each, FloatTerm) and each.is_of_pairs)
        for each in factors
    )
    terms = [each if isinstance(each, FloatTerm) and not each.computed else None for each in factors]
    places = [_ARGUMENTS.index(each.argument) if isinstance(each, ArgumentValue) else None for each in factors]

    only = terms[0] if len(terms) == 1 and are_plain else None

    def values(preds: Tensor, target: Tensor | None, weights: Tensor | None) -> list[Tensor | None]:
        if only is not None and target is not None:
            return [only(*_as_one_float(preds, target)).contiguous()]
        if are_plain and target is not None:
            given, pair = (preds, target, weights), _as_one_float(preds, target)
            return [
                term(*pair).contiguous() if term is not None else None if place is None else given[place]
                for term, place in zip(terms, places, strict=True)
            ]
        columns = as_columns(preds, target, weights)
        return [None if each.computed else each.values(columns).contiguous() for each in factors]

    return values


def _as_one_float(preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Contiguous floats of one dtype, and of one shape."""
    if preds.dtype == target.dtype and preds.dtype in _FLOATS and preds.shape == target.shape:
        return preds, target
    dtype = torch.float64 if torch.float64 in (preds.dtype, target.dtype) else torch.float32
    return preds.to(dtype), target.to(dtype).view(preds.shape)


def column(batch: Batch, argument: Argument) -> Tensor:
    """An argument of a batch whose arguments are all of shape `(rows, outputs)`."""
    tensor: Tensor | None = getattr(batch, argument)
    assert tensor is not None, "the layout was checked"
    return tensor
