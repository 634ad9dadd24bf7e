"""Exact sums on the CPU, as metrics read them: as fractions, or as quotients of polynomials in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from assay.native import quotients as native
from assay.native.library import library
from assay.tally.base import State
from assay.tally.sums import exact
from assay.tally.sums.exact import Number
from assay.tally.sums.polynomials import Program, QuotientOfSums, RowSum, SumInput, SumOf, program_of
from assay.tally.sums.terms import WEIGHTS, Leaf, Term


class SumPlace(NamedTuple):
    """Where the sum of a term is: its order, the row of `sums<order>`, and the rows of `special` that decide on it."""

    order: int
    row: int
    leaves: list[int]


@dataclass(frozen=True, eq=False)
class SumLayout:
    """Where the sums of terms are in a state of `Sums`; weighted, each is that of the products with the weights."""

    outputs: int
    places: Mapping[Term, SumPlace]
    _programs: dict[QuotientOfSums, Program] = field(default_factory=dict)

    def program(self, quotient: QuotientOfSums) -> Program:
        """How a quotient is computed from a state of this layout."""
        if quotient not in self._programs:
            self._programs[quotient] = program_of(quotient, self._input)
        return self._programs[quotient]

    def _input(self, total: SumOf) -> SumInput:
        term = WEIGHTS if total.term is None else total.term
        if total.term is None and term not in self.places:
            return SumInput("count", 0, 1, 0)
        assert isinstance(term, Term), "what rows give has other sums"
        place = self.places[term]
        words = exact.num_limbs(place.order)
        start = 8 * place.row * self.outputs * words
        return SumInput(f"sums{place.order}", start, words, exact.origin(place.order))


@dataclass(frozen=True, eq=False)
class Totals:
    """Exact sums on the CPU, for each output.

    `totals[term]` is a list with one `Fraction` per output, or a float (inf, -inf, NaN) where the data was not finite.
    `count` is the number of values and `weight` the sum of their weights, which without weights is the same.
    """

    state: State
    layout: SumLayout
    _integers: dict[int, tuple[list[int], int]] = field(default_factory=dict)
    _numbers: dict[Term, list[Number]] = field(default_factory=dict)

    @cached_property
    def count(self) -> list[int]:
        """The number of values of each output."""
        counts: list[int] = self.state["count"].tolist()
        return counts

    def __getitem__(self, term: Term) -> list[Number]:
        if term not in self._numbers:
            self._numbers[term] = self._read(term)
        return self._numbers[term]

    def _read(self, term: Term) -> list[Number]:
        order, row, leaves = self.layout.places[term]
        if order not in self._integers:
            self._integers[order] = exact.integers(self.state[f"sums{order}"], order)
        sums, unit = self._integers[order]
        outputs = self.layout.outputs
        values: list[Number] = [exact.fraction(value, unit) for value in sums[row * outputs : (row + 1) * outputs]]
        if self._has_special:
            special = self.state["special"][leaves].transpose(0, 1).tolist()
            values = [_number(term, v, s) for v, s in zip(values, special, strict=True)]
        return values

    @cached_property
    def _has_special(self) -> bool:
        return exact.has_nonzero(self.state["special"])

    @cached_property
    def weight(self) -> list[Number]:
        """The sum of the weights of the values of each output."""
        return self[WEIGHTS] if WEIGHTS in self.layout.places else [Fraction(n) for n in self.count]

    def sum_of(self, k: int) -> Callable[[SumOf], Number]:
        """What gives the sums of output `k`."""

        def sum_of(total: SumOf) -> Number:
            assert not isinstance(total.term, RowSum), "what rows give has other sums"
            return self.weight[k] if total.term is None else self[total.term][k]

        return sum_of

    def quotients(self, quotient: QuotientOfSums) -> native.Quotients | None:
        """The quotient of each output by compiled code; None without compiled code.

        Doubtful are those that fractions must decide: values half way between two floats, divisors of 0, numbers that
        are not finite.
        """
        inputs, steps = self.layout.program(quotient)
        if library() is None:
            return None
        addresses: list[int] = []
        for name, start, words in inputs:
            field = self.state[name]
            if not field.is_contiguous():
                return None
            addresses += (field.data_ptr() + start, words)
        result = native.quotients(self.layout.outputs, addresses, steps)
        if not self._has_special:
            return result
        special = self.state["special"].sum((0, 2)).nonzero()[:, 0].tolist()
        return result._replace(doubtful=sorted({*result.doubtful, *special}))


def _number(term: Term, value: Number, special: Sequence[Sequence[int]]) -> Number:
    """The sum: of floats, as IEEE 754 has it; of what is computed from floats that are not all finite, NaN."""
    if not any(map(any, special)):
        return value
    if not isinstance(term, Leaf):
        return math.nan
    return (math.inf, -math.inf, math.nan)[special[0].index(1)]
