"""What metrics with one value for each output have in common, and the sums that most are read from."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Annotated, ClassVar, Literal

from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import Metric, number
from assay.metrics.exact_arithmetic import mean_of_pairs, pair, quotient, quotient_of, result, rounded
from assay.metrics.per_sample import SampleTerms, single
from assay.native.quotients import Quotients
from assay.tally.base import Batch, Tally
from assay.tally.sums.exact import Number
from assay.tally.sums.float_terms import as_float, difference
from assay.tally.sums.polynomials import QuotientOfSums, SumOf
from assay.tally.sums.sums import Sums
from assay.tally.sums.terms import PREDS, TARGET, FloatTerm, Product, Term
from assay.tally.sums.totals import Totals

XX, XY, YY = Product(PREDS, PREDS), Product(PREDS, TARGET), Product(TARGET, TARGET)
WEIGHT = SumOf()
SQUARED_ERROR = SumOf(XX) - SumOf(XY) - SumOf(XY) + SumOf(YY)
MEAN_SQUARED_ERROR = QuotientOfSums(SQUARED_ERROR, WEIGHT)
TARGET_SPREAD = WEIGHT * SumOf(YY) - SumOf(TARGET) * SumOf(TARGET)
"""`sum((target - mean(target)) ** 2)` times the sum of the weights."""
SQUARES: frozenset[Term] = frozenset({XX, XY, YY})
MOMENTS: frozenset[Term] = SQUARES | {PREDS, TARGET}

_FEW_OUTPUTS = 64

MultiOutput = Literal["uniform_average", "raw_values", "variance_weighted"]


@dataclass(frozen=True)
class OutputMetric(Metric):
    """A metric with one value for each of `num_outputs` outputs.

    Shapes: `preds` and `target` `(N, num_outputs)`; for one output `(N,)` or `(N, 1)`. Weights are `(N,)` or one each.

    Returns:
        float64, shape `()`, or `(num_outputs,)` for several outputs; NaN without data.

    Raises:
        ConfigError: `num_outputs` below 1.
    """

    family: ClassVar[str] = "regression"
    inputs: ClassVar[str] = "pairs"

    num_outputs: Annotated[int, "how many outputs there are; one value for each."] = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_outputs < 1:
            raise ConfigError(describe("num_outputs", self.num_outputs, "1 or more", "Give the size of dimension 1"))

    @property
    @abstractmethod
    def terms(self) -> frozenset[Term]:
        """What is summed."""

    def tally(self, weighted: bool) -> Tally:
        return Sums(self.terms, None if self.num_outputs == 1 else self.num_outputs, weighted)

    @property
    def per_sample_terms(self) -> Mapping[str, Of]:
        """What each sample contributes, from its prediction and target; and what it counts, where that is not one."""
        return {}

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        if not self.per_sample_terms or self.num_outputs > 1:
            return None
        preds, target = single(batch.preds), single(batch.needed_target)
        if preds is None or target is None:
            return None
        terms = ((name, of(preds, target)) for name, of in self.per_sample_terms.items())
        (name, values), *divisor = terms
        return SampleTerms.of(name, values, *(divisor[0] if divisor else ()))

    @property
    def formula(self) -> QuotientOfSums | None:
        """The value as a quotient of sums, where it is one; its `value` may differ where the divisor is 0."""
        return None

    def value(self, counts: Totals, k: int) -> Number:
        """The value of output `k`."""
        assert self.formula is not None, "a metric has a quotient or a value of its own"
        return quotient_of(self.formula, counts, k)

    def values(self, counts: Totals) -> Quotients | None:
        """The values of all outputs at once, which are those of `value`; None where there is no faster way."""
        formula = self.formula
        quotients = None if formula is None else counts.quotients(formula)
        if quotients is not None:
            for k in quotients.doubtful:
                value, rest = pair(self.value(counts, k))
                quotients.values.view(-1)[k] = value
                if quotients.rests is not None:
                    quotients.rests[k] = rest
        return quotients

    @property
    def quotient_of_sums(self) -> QuotientOfSums | None:
        return self.formula if self.num_outputs == 1 else None

    def compute(self, counts: Totals) -> Tensor:
        quotients = self.values(counts)
        if quotients is None:
            return result([self.value(counts, k) for k in range(self.num_outputs)])
        return quotients.values

    def predicted(self, batch: Batch) -> Tensor | None:
        return single(batch.preds) if self.num_outputs == 1 else None


@dataclass(frozen=True)
class ElementwiseMetric(OutputMetric):
    """A metric whose one output takes arguments of any shape, every element of which is a sample.

    Shapes: `preds` and `target` `(N, num_outputs)`; for one output any shape, every element of which is a sample.
    """

    higher_is_better: ClassVar[bool | None] = False


@dataclass(frozen=True)
class MeanTermMetric(OutputMetric):
    """The mean of a term that is computed in floating point for each sample.

    Shapes: `preds` and `target` `(N, num_outputs)`; for one output any shape, every element of which is a sample.
    """

    higher_is_better: ClassVar[bool | None] = False
    exact_terms: ClassVar[bool] = False
    term: ClassVar[FloatTerm]
    term_name: ClassVar[str]

    @property
    def terms(self) -> frozenset[Term]:
        return frozenset({self.term})

    @property
    def per_sample_terms(self) -> Mapping[str, Of]:
        return {self.term_name: of_term(self.term)}

    @property
    def formula(self) -> QuotientOfSums | None:
        return mean_of(self.term)


Of = Callable[[Tensor, Tensor], Tensor]
"""A number for each sample, from predictions and targets `(N,)` of any real dtypes."""


def squared(preds: Tensor, target: Tensor) -> Tensor:
    """`(preds - target) ** 2`."""
    return difference(preds, target).square()


def absolute(preds: Tensor, target: Tensor) -> Tensor:
    """`|preds - target|`."""
    return difference(preds, target).abs()


def magnitude(preds: Tensor, target: Tensor) -> Tensor:
    """`|target|`."""
    return as_float(target).abs()


def of_term(term: FloatTerm) -> Of:
    """The term of each sample."""
    return lambda preds, target: term.values(Batch(preds, target))


@dataclass(frozen=True)
class OverOutputs(OutputMetric):
    """A metric that sets errors against the spread of the target, and reduces over outputs.

    Raises:
        ConfigError: an unknown `multioutput`, `num_outputs` below 1.
    """

    higher_is_better: ClassVar[bool | None] = True

    multioutput: Annotated[
        MultiOutput,
        '"uniform_average" over outputs, "raw_values", or "variance_weighted": by the spread of the target.',
    ] = field(default="uniform_average", kw_only=True)
    terms = MOMENTS

    def tally(self, weighted: bool) -> Tally:
        return Sums(MOMENTS, self.num_outputs, weighted)

    @property
    @abstractmethod
    def formula(self) -> QuotientOfSums | None:
        """The value of an output as a quotient of sums, where it is one."""

    @property
    def quotient_of_sums(self) -> QuotientOfSums | None:
        return super().quotient_of_sums

    def compute(self, counts: Totals) -> Tensor:
        if self.multioutput == "raw_values" or self.num_outputs == 1:
            return super().compute(counts)
        quotients = self.values(counts) if self.multioutput == "uniform_average" else None
        mean = None
        if quotients is not None and quotients.rests is not None:
            mean = mean_of_pairs(quotients.values.tolist(), quotients.rests.tolist())
        return number(self._mean(counts) if mean is None else mean)

    def _mean(self, counts: Totals) -> float:
        """The mean over the outputs, by fractions."""
        values = [self.value(counts, k) for k in range(self.num_outputs)]
        weights: list[Number] = [Fraction(1)] * self.num_outputs
        if self.multioutput == "variance_weighted":
            spreads = [target_spread(counts, k) for k in range(self.num_outputs)]
            weights = spreads if any(spreads) else weights  # all targets constant: scikit-learn weighs them equally
        return rounded(weighted_mean(values, weights))


def weighted_mean(values: Sequence[Number], weights: Sequence[Number]) -> Number:
    """`sum(w v) / sum(w)`, exactly, over the values whose weight is not 0; infinite or NaN where one of those is."""
    counts = [(v, w) for v, w in zip(values, weights, strict=True) if w]
    infinite = [x for pair in counts for x in pair if isinstance(x, float) and not math.isfinite(x)]
    if infinite:
        return sum(infinite)
    exact = [(Fraction(v), Fraction(w)) for v, w in counts]
    return quotient(total_of([v * w for v, w in exact]), total_of([w for _, w in exact]))


def total_of(values: Sequence[Fraction]) -> Fraction:
    """The sum: exact for few values; of many, whose common denominator would be huge, to 300 bits of the largest."""
    largest = max(map(abs, values))
    if len(values) <= _FEW_OUTPUTS or not largest:
        return sum(values, Fraction(0))
    bits = largest.denominator.bit_length() - largest.numerator.bit_length() + 300
    scaled = (v.numerator * 2 ** max(bits, 0) // (v.denominator * 2 ** max(-bits, 0)) for v in values)
    return Fraction(sum(scaled)) * Fraction(2) ** -bits


def target_spread(counts: Totals, k: int) -> Number:
    """`sum((target - mean(target)) ** 2)`; 0 without samples."""
    weight, total, squares = counts.weight[k], counts[TARGET][k], counts[YY][k]
    if isinstance(weight, float) or isinstance(total, float) or isinstance(squares, float):
        return math.nan
    return squares - total * total / weight if weight else Fraction(0)


def share_left(formula: QuotientOfSums, counts: Totals, k: int) -> Number:
    """A quotient of what the errors leave of the target's spread; for a constant target 1 without any error, else 0."""
    sum_of = counts.sum_of(k)
    left, spread = formula.above.evaluate(sum_of), formula.below.evaluate(sum_of)
    if isinstance(left, float) or isinstance(spread, float):
        return math.nan
    return left / spread if spread else Fraction(left == 0)


@cache
def total_of_term(term: Term) -> QuotientOfSums:
    """The sum of a term, times its weight."""
    return QuotientOfSums(SumOf(term) * WEIGHT, WEIGHT)


@cache
def mean_of(term: Term, divisor: Term | None = None) -> QuotientOfSums:
    """The sum of a term over that of another one, or over that of the weights; infinite where a term was infinite."""
    return QuotientOfSums(SumOf(term), SumOf(divisor))
