"""Polynomials in exact sums: what is computed from the sums of an output before anything is rounded."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from assay.native.quotients import ADD, LOAD, MULTIPLY, SUBTRACT, QuotientSteps, Root, quotient_steps
from assay.tally.sums.exact import Number
from assay.tally.sums.terms import Term


class Polynomial(ABC):
    """A polynomial in the sums of terms and the sum of the weights, with `+`, `-` and `*`."""

    def __add__(self, other: Polynomial) -> Polynomial:
        return Operation("+", self, other)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return Operation("-", self, other)

    def __mul__(self, other: Polynomial) -> Polynomial:
        return Operation("*", self, other)

    @abstractmethod
    def evaluate(self, sum_of: Callable[[SumOf], Number]) -> Number:
        """The value, from those of the sums; NaN where one that is not alone is not finite."""

    @abstractmethod
    def compile(self, steps: Steps) -> int:
        """Append what computes it to the steps, and say which step gives it."""


@dataclass(frozen=True)
class RowSum:
    """One of the sums of what rows give: a column of one of the sums of a `RowTerm`."""

    place: int = 0
    column: int = 0


@dataclass(frozen=True)
class SumOf(Polynomial):
    """The sum of a term; without one, that of the weights, or the number of values where there are no weights."""

    term: Term | RowSum | None = None

    def evaluate(self, sum_of: Callable[[SumOf], Number]) -> Number:
        return sum_of(self)

    def compile(self, steps: Steps) -> int:
        return steps.append(self, (LOAD, steps.input_of(self), 0), steps.unit_of(self))


@dataclass(frozen=True)
class Operation(Polynomial):
    """Two polynomials, added, subtracted or multiplied."""

    operator: Literal["+", "-", "*"]
    left: Polynomial
    right: Polynomial

    def evaluate(self, sum_of: Callable[[SumOf], Number]) -> Number:
        left, right = self.left.evaluate(sum_of), self.right.evaluate(sum_of)
        if isinstance(left, float) or isinstance(right, float):
            return math.nan
        return left + right if self.operator == "+" else left - right if self.operator == "-" else left * right

    def compile(self, steps: Steps) -> int:
        left, right = steps.place(self.left), steps.place(self.right)
        units = steps.units[left], steps.units[right]
        if self.operator == "*":
            return steps.append(self, (MULTIPLY, left, right), sum(units))
        assert units[0] == units[1], "what is added is of the same degree in the sums"
        return steps.append(self, (ADD if self.operator == "+" else SUBTRACT, left, right), units[0])


@dataclass(frozen=True, eq=False)
class QuotientOfSums:
    """The quotient of two polynomials in the sums of an output, or a root; one object, so that it is compiled once.

    The divisor is never negative. With `takes_weights=False` it holds only where every value counts once.
    """

    above: Polynomial
    below: Polynomial
    root: Root = ""
    takes_weights: bool = True


MEAN_OF_ROWS = QuotientOfSums(SumOf(RowSum()), SumOf())
SUM_OF_ROWS = QuotientOfSums(SumOf(RowSum()) * SumOf(), SumOf())
"""Of the one number that each row gives."""


class Steps:
    """How polynomials are computed with integers, each part once.

    Args:
        unit_of: the power of two that the integers of a sum count.

    Attributes:
        steps: as `native.quotients` has them.
        units: the power of two that the integer of each step counts.
        inputs: the sums that are read.
    """

    def __init__(self, unit_of: Callable[[SumOf], int]) -> None:
        self.unit_of = unit_of
        self.steps: list[tuple[int, int, int]] = []
        self.units: list[int] = []
        self.inputs: list[SumOf] = []
        self._places: dict[Polynomial, int] = {}

    def place(self, polynomial: Polynomial) -> int:
        """The step that gives a polynomial, which is appended if it is missing."""
        known = self._places.get(polynomial)
        return polynomial.compile(self) if known is None else known

    def input_of(self, total: SumOf) -> int:
        """The place of a new sum among the inputs."""
        self.inputs.append(total)
        return len(self.inputs) - 1

    def append(self, polynomial: Polynomial, step: tuple[int, int, int], unit: int) -> int:
        """Append the step that gives a polynomial."""
        self.steps.append(step)
        self.units.append(unit)
        self._places[polynomial] = place = len(self.steps) - 1
        return place


class SumInput(NamedTuple):
    """Where the first output of a sum is in a state: its field, at which byte it starts, and how many limbs it has.

    Its integer counts `2 ** unit`.
    """

    field: str
    start: int
    words: int
    unit: int


class Program(NamedTuple):
    """How a quotient is computed: for each sum its field, at which byte it starts, and how many limbs an output has."""

    inputs: list[tuple[str, int, int]]
    steps: QuotientSteps


def program_of(quotient: QuotientOfSums, input_of: Callable[[SumOf], SumInput]) -> Program:
    """How a quotient is computed from states in which the sums lie where `input_of` says."""
    steps = Steps(lambda total: input_of(total).unit)
    above, below = steps.place(quotient.above), steps.place(quotient.below)
    units = steps.units[above], steps.units[below]
    unit = units[0] - (units[1] // 2 if quotient.root == "of the divisor" else units[1])
    packed = quotient_steps(steps.steps, above, below, quotient.root, unit)
    return Program([input_of(total)[:3] for total in steps.inputs], packed)
