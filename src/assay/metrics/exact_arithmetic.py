"""Reading exact numbers: quotients and roots of fractions, each rounded once to float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from torch import Tensor

from assay.metrics.base import number, vector
from assay.tally.sums.exact import Number
from assay.tally.sums.polynomials import MEAN_OF_ROWS, SUM_OF_ROWS, QuotientOfSums, SumOf
from assay.tally.sums.row_sums import RowTotals
from assay.tally.sums.totals import Totals

_SMALL, _LARGE = 2.0**-900, 2.0**900  # two floats have 106 bits of what lies between
_BITS = 128  # of the integer under the root: its root has 64, which is more than float64 keeps


def rounded(value: Number) -> float:
    """The nearest float64; infinite beyond its range."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def combined(*terms: tuple[int | Fraction, Number]) -> Number:
    """The sum of factors times numbers; NaN where a number is not finite."""
    total = Fraction(0)
    for factor, value in terms:
        if isinstance(value, float):
            return math.nan
        total += factor * value
    return total


def quotient(above: Number, below: Number) -> Number:
    """`above / below`; NaN for 0 / 0 and where a number is not finite, infinite for other divisions by zero."""
    if isinstance(above, float) or isinstance(below, float):
        return math.nan
    if below == 0:
        return math.nan if not above else math.inf if above > 0 else -math.inf
    return above / below


def rounded_quotient(above: Number, below: Number) -> float:
    """`quotient`, rounded once.

    Example:
        >>> rounded_quotient(Fraction(1), Fraction(3))
        0.3333333333333333
    """
    if isinstance(above, float) or isinstance(below, float) or not below:
        return rounded(quotient(above, below))
    try:  # integers are divided to the nearest float, without a fraction in lowest terms
        return (above.numerator * below.denominator) / (above.denominator * below.numerator)
    except OverflowError:
        return rounded(quotient(above, below))


def means(counts: RowTotals, k: int = 0) -> list[Number]:
    """The means over the rows of what was summed first, or in another place; NaN without weight."""
    weight = counts.weight
    return [total if isinstance(total, float) and weight else quotient(total, weight) for total in counts.sums[k]]


def sums_or_means(counts: RowTotals, reduction: Literal["sum", "mean"]) -> list[Number]:
    """What was summed first, or its means over the rows; NaN without data."""
    return counts.sums[0] if reduction == "sum" and counts.count else means(counts)


def quotient_of_rows(reduction: Literal["sum", "mean"]) -> QuotientOfSums:
    """That of `sums_or_means`, of rows that give one number."""
    return SUM_OF_ROWS if reduction == "sum" else MEAN_OF_ROWS


def root(value: Number) -> float:
    """The square root, rounded once; NaN for negative numbers.

    Example:
        >>> root(Fraction(2))
        1.4142135623730951
    """
    if isinstance(value, float):
        return math.sqrt(value) if value >= 0 else math.nan
    return math.nan if value < 0 else root_of_quotient(value.numerator, value.denominator)


def root_of_quotient(above: int, below: int) -> float:
    """The square root of `above / below`, rounded once; neither is negative, and they need not be in lowest terms.

    Example:
        >>> root_of_quotient(4, 6) == root(Fraction(2, 3))
        True
    """
    shift = (_BITS - above.bit_length() + below.bit_length()) // 2  # of the root
    scaled, rest = divmod(above << max(0, 2 * shift), below << max(0, -2 * shift))
    whole = math.isqrt(scaled)
    inexact = rest > 0 or whole * whole != scaled
    sticky = 2 * whole + inexact  # a last bit that says on which side of a tie the root lies
    try:  # integers are divided to the nearest float
        return (sticky << max(0, -shift - 1)) / (1 << max(0, shift + 1))
    except OverflowError:
        return math.inf


def over_root(above: Number | int, below: Number | int) -> float:
    """`above / sqrt(below)`, rounded once; NaN for 0 / 0 and where a number is not finite."""
    if isinstance(above, float) or isinstance(below, float) or below <= 0:
        return math.nan
    top, bottom = above.numerator**2 * below.denominator, above.denominator**2 * below.numerator
    value = root_of_quotient(top, bottom)
    return -value if above < 0 else value


def quotient_of(formula: QuotientOfSums, counts: Totals, k: int) -> Number:
    """The quotient of sums of output `k`, exactly, or its root, rounded once.

    Where a sum is not finite it is NaN, or that sum itself where it alone is divided.
    """
    sum_of = counts.sum_of(k)
    above, below = formula.above.evaluate(sum_of), formula.below.evaluate(sum_of)
    if isinstance(above, float) and isinstance(formula.above, SumOf):
        return above
    if formula.root == "of the divisor":
        return over_root(above, below)
    value = quotient(above, below)
    return root(value) if formula.root else value


def value_of_sums(formula: QuotientOfSums, counts: Totals) -> Tensor:
    """The quotient of sums of the only output, rounded once."""
    quotients = counts.quotients(formula)
    if quotients is None or quotients.doubtful:
        return number(rounded(quotient_of(formula, counts, 0)))
    return quotients.values


def pair(value: Number) -> tuple[float, float]:
    """A number rounded to float64, and what that leaves of it."""
    first = rounded(value)
    rest = float(value - Fraction(first)) if isinstance(value, Fraction) and math.isfinite(first) else 0.0
    return first, rest


def mean_of_pairs(values: Sequence[float], rests: Sequence[float]) -> float | None:
    """The mean of numbers, rounded once, each a sum of two floats that is right to 2 ** -97 of it.

    None where that is not enough to round, or a number is too small or too large.
    """
    sizes = [abs(value) for value in values if value]
    if sizes and not (min(sizes) > _SMALL and max(sizes) < _LARGE and math.isfinite(math.fsum(sizes))):
        return None
    parts = [*values, *rests]
    total = math.fsum(parts)
    mean = (Fraction(total) + Fraction(math.fsum([*parts, -total]))) / len(values)
    error = Fraction(math.fsum(sizes)) / 2**96
    low, high = float(mean - error), float(mean + error)
    return low if low == high else None


def result(values: Sequence[Number]) -> Tensor:
    """A result per output: 0-dimensional for one, else a vector."""
    floats = [rounded(value) for value in values]
    return number(floats[0]) if len(floats) == 1 else vector(floats)
