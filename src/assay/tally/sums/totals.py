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
from assay.tally.sums.polynomials import QuotientOfSums, Steps, SumOf
from assay.tally.sums.terms import WEIGHTS, Leaf, Term


class SumPlace(NamedTuple):
    """Where the sum of a term is: its order, the row of `sums<order>`, and the rows of `special` that decide on it."""

    order: int
    row: int
    leaves: list[int]


class _Program(NamedTuple):
    """How a quotient is computed: for each sum its field, at which byte it starts, and how many limbs an output has."""

    inputs: list[tuple[str, int, int]]
    steps: native.QuotientSteps


@dataclass(frozen=True, eq=False)
class SumLayout:
    """Where the sums of terms are in a state of `Sums`; weighted, each is that of the products with the weights."""

    outputs: int
    places: Mapping[Term, SumPlace]
    _programs: dict[QuotientOfSums, _Program] = field(default_factory=dict)

    def program(self, quotient: QuotientOfSums) -> _Program:
        """How a quotient is computed from a state of this layout."""
        if quotient not in self._programs:
            self._programs[quotient] = self._compiled(quotient)
        return self._programs[quotient]

    def _compiled(self, quotient: QuotientOfSums) -> _Program:
        steps = Steps(self._unit)
        above, below = steps.place(quotient.above), steps.place(quotient.below)
        units = steps.units[above], steps.units[below]
        unit = units[0] - (units[1] // 2 if quotient.root == "of the divisor" else units[1])
        packed = native.quotient_steps(steps.steps, above, below, quotient.root, unit)
        return _Program([self._input(total) for total in steps.inputs], packed)

    def _place(self, total: SumOf) -> SumPlace | None:
        """The place of a sum; None for the number of values."""
        return self.places[total.term] if total.term is not None else self.places.get(WEIGHTS)

    def _unit(self, total: SumOf) -> int:
        place = self._place(total)
        return 0 if place is None else exact.origin(place.order)

    def _input(self, total: SumOf) -> tuple[str, int, int]:
        place = self._place(total)
        if place is None:
            return "count", 0, 1
        words = exact.num_limbs(place.order)
        return f"sums{place.order}", 8 * place.row * self.outputs * words, words


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
        return lambda total: self.weight[k] if total.term is None else self[total.term][k]

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
