"""Regression metrics: each is read from exact sums over the samples.

Where a metric is made of differences, squares and products, the value is that of exact arithmetic on the given inputs,
rounded once to float64. Where each sample needs a logarithm, an exponential or a division, its term is computed in
float32 (float64 where an argument is float64), and the sum of the terms is exact.

Values that are NaN or infinite make what is computed from them NaN, with a warning that says how many there were.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, get_args

from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import Metric, number
from assay.metrics.rational import combined, quotient, result, root, rounded
from assay.tally.base import Tally
from assay.tally.sums import PREDS, TARGET, AbsoluteError, AbsoluteValue, Number, Product, Sums, Term, Totals
from assay.tally.terms import (
    AbsolutePower,
    Exceeds,
    LogCosh,
    PercentageError,
    SquaredLogError,
    SymmetricPercentageError,
    TweedieDeviance,
)

XX, XY, YY = Product(PREDS, PREDS), Product(PREDS, TARGET), Product(TARGET, TARGET)
SQUARES: frozenset[Term] = frozenset({XX, XY, YY})
MOMENTS: frozenset[Term] = SQUARES | {PREDS, TARGET}

_FEW_OUTPUTS = 64

MultiOutput = Literal["uniform_average", "raw_values", "variance_weighted"]


@dataclass(frozen=True)
class OutputMetric(Metric):
    """A metric with one value for each of `num_outputs` outputs."""

    num_outputs: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        if self.num_outputs < 1:
            raise ConfigError(describe("num_outputs", self.num_outputs, "1 or more", "Give the size of dimension 1"))

    @property
    @abstractmethod
    def terms(self) -> frozenset[Term]:
        """What is summed."""

    @abstractmethod
    def value(self, counted: Totals, k: int) -> Number:
        """The value of output `k`."""


@dataclass(frozen=True)
class PerOutput(OutputMetric):
    """A metric whose one output takes arguments of any shape, every element of which is a sample."""

    def tally(self, weighted: bool) -> Tally:
        return Sums(self.terms, None if self.num_outputs == 1 else self.num_outputs, weighted)

    def read(self, counted: Totals) -> Tensor:
        return result([self.value(counted, k) for k in range(self.num_outputs)])


@dataclass(frozen=True)
class OverOutputs(OutputMetric):
    """A metric that sets errors against the spread of the target, and reduces over outputs."""

    multioutput: MultiOutput = field(default="uniform_average", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.multioutput not in get_args(MultiOutput):
            expected = "one of " + ", ".join(get_args(MultiOutput))
            raise ConfigError(describe("multioutput", repr(self.multioutput), expected, "Choose one of them"))

    @property
    def terms(self) -> frozenset[Term]:
        return MOMENTS

    def tally(self, weighted: bool) -> Tally:
        return Sums(MOMENTS, self.num_outputs, weighted)

    def read(self, counted: Totals) -> Tensor:
        values = [self.value(counted, k) for k in range(self.num_outputs)]
        if self.multioutput == "raw_values":
            return result(values)
        weights: list[Number] = [Fraction(1)] * self.num_outputs
        if self.multioutput == "variance_weighted":
            spreads = [target_spread(counted, k) for k in range(self.num_outputs)]
            weights = spreads if any(spreads) else weights  # all targets constant: scikit-learn weighs them alike
        return number(rounded(weighted_mean(values, weights)))


def weighted_mean(values: Sequence[Number], weights: Sequence[Number]) -> Number:
    """`sum(w v) / sum(w)`, exactly; in floating point where a value is infinite."""
    finite = [v for v in (*values, *weights) if not isinstance(v, float)]
    if len(finite) < len(values) + len(weights):
        total = math.fsum(rounded(v) * rounded(w) for v, w in zip(values, weights, strict=True))
        return total / math.fsum(map(rounded, weights))
    exact, weight = finite[: len(values)], finite[len(values) :]
    return quotient(total_of([v * w for v, w in zip(exact, weight, strict=True)]), total_of(weight))


def total_of(values: Sequence[Fraction]) -> Fraction:
    """The sum: exact for few values; of many, whose common denominator would be huge, to 300 bits of the largest."""
    largest = max(map(abs, values))
    if len(values) <= _FEW_OUTPUTS or not largest:
        return sum(values, Fraction(0))
    bits = largest.denominator.bit_length() - largest.numerator.bit_length() + 300
    scaled = (v.numerator * 2 ** max(bits, 0) // (v.denominator * 2 ** max(-bits, 0)) for v in values)
    return Fraction(sum(scaled)) * Fraction(2) ** -bits


def squared_error(counted: Totals, k: int) -> Number:
    """`sum((preds - target) ** 2)`."""
    return combined((1, counted[XX][k]), (-2, counted[XY][k]), (1, counted[YY][k]))


def target_spread(counted: Totals, k: int) -> Number:
    """`sum((target - mean(target)) ** 2)`; 0 without samples."""
    weight, total, squares = counted.weight[k], counted[TARGET][k], counted[YY][k]
    if isinstance(weight, float) or isinstance(total, float) or isinstance(squares, float):
        return math.nan
    return squares - total * total / weight if weight else Fraction(0)


def share_left(error: Number, spread: Number) -> Number:
    """`1 - error / spread`; for a constant target 1 when there is no error, else 0."""
    if isinstance(error, float) or isinstance(spread, float):
        return math.nan
    return 1 - error / spread if spread else Fraction(error == 0)


@dataclass(frozen=True)
class MeanSquaredError(PerOutput):
    """Mean squared error, or its root.

    `sum(w (preds - target)²) / sum(w)`. The value is that of exact arithmetic on the given inputs, rounded once.

    Args:
        squared: False gives the square root.
        num_outputs: for arguments of shape `(N, num_outputs)`, one value each; with 1, every element is a sample.

    Returns:
        float64, shape `()`, or `(num_outputs,)` for several outputs; NaN without data.

    Raises:
        ConfigError: `num_outputs` below 1.

    Example:
        >>> import torch
        >>> MeanSquaredError()(torch.tensor([2.5, 0.0, 2.0, 8.0]), torch.tensor([3.0, -0.5, 2.0, 7.0]))
        tensor(0.3750, dtype=torch.float64)

    Source: Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, 2nd ed., section 2.4.
    """

    squared: bool = True

    @property
    def terms(self) -> frozenset[Term]:
        return SQUARES

    def value(self, counted: Totals, k: int) -> Number:
        mean = quotient(squared_error(counted, k), counted.weight[k])
        return mean if self.squared else root(mean)


@dataclass(frozen=True)
class MeanAbsoluteError(PerOutput):
    """Mean absolute error.

    `sum(w |preds - target|) / sum(w)`. The value is that of exact arithmetic on the given inputs, rounded once.

    Args:
        num_outputs: for arguments of shape `(N, num_outputs)`, one value each; with 1, every element is a sample.

    Returns:
        float64, shape `()` or `(num_outputs,)`; NaN without data.

    Raises:
        ConfigError: `num_outputs` below 1.

    Example:
        >>> import torch
        >>> MeanAbsoluteError()(torch.tensor([2.5, 0.0, 2.0, 8.0]), torch.tensor([3.0, -0.5, 2.0, 7.0]))
        tensor(0.5000, dtype=torch.float64)

    Source: Willmott and Matsuura, Climate Research 30 (2005), 79-82.
    """

    @property
    def terms(self) -> frozenset[Term]:
        return frozenset({AbsoluteError()})

    def value(self, counted: Totals, k: int) -> Number:
        return quotient(counted[AbsoluteError()][k], counted.weight[k])


@dataclass(frozen=True)
class MeanAbsolutePercentageError(PerOutput):
    """Mean absolute percentage error, as a fraction: 0.1 is ten percent.

    `sum(w |preds - target| / max(|target|, 1.17e-6)) / sum(w)`. Each sample's term is computed in float32 (float64
    where an argument is float64); their sum is exact.

    Args:
        num_outputs: for arguments of shape `(N, num_outputs)`, one value each; with 1, every element is a sample.

    Returns:
        float64, shape `()` or `(num_outputs,)`; NaN without data.

    Raises:
        ConfigError: `num_outputs` below 1.

    Example:
        >>> import torch
        >>> MeanAbsolutePercentageError()(torch.tensor([1.0, 3.0]), torch.tensor([2.0, 4.0]))
        tensor(0.3750, dtype=torch.float64)

    Source: de Myttenaere, Golden, Le Grand, Rossi, Neurocomputing 192 (2016), 38-48; the bound is TorchMetrics'.
    """

    @property
    def terms(self) -> frozenset[Term]:
        return frozenset({PercentageError()})

    def value(self, counted: Totals, k: int) -> Number:
        return mean_of(PercentageError(), counted, k)


@dataclass(frozen=True)
class SymmetricMeanAbsolutePercentageError(PerOutput):
    """Symmetric mean absolute percentage error, between 0 and 2.

    `sum(w 2 |preds - target| / max(|preds| + |target|, 1.17e-6)) / sum(w)`. Each sample's term is computed in float32
    (float64 where an argument is float64); their sum is exact.

    Args:
        num_outputs: for arguments of shape `(N, num_outputs)`, one value each; with 1, every element is a sample.

    Returns:
        float64, shape `()` or `(num_outputs,)`; NaN without data.

    Raises:
        ConfigError: `num_outputs` below 1.

    Example:
        >>> import torch
        >>> SymmetricMeanAbsolutePercentageError()(torch.tensor([1.0, 4.0]), torch.tensor([3.0, 4.0]))
        tensor(0.5000, dtype=torch.float64)

    Source: Makridakis, International Journal of Forecasting 9 (1993), 527-529; the bound is TorchMetrics'.
    """

    @property
    def terms(self) -> frozenset[Term]:
        return frozenset({SymmetricPercentageError()})

    def value(self, counted: Totals, k: int) -> Number:
        return mean_of(SymmetricPercentageError(), counted, k)


@dataclass(frozen=True)
class WeightedMeanAbsolutePercentageError(PerOutput):
    """Weighted mean absolute percentage error: the total error as a fraction of the total target.

    `sum(w |preds - target|) / sum(w |target|)`. The value is that of exact arithmetic on the given inputs, rounded
    once.

    Args:
        num_outputs: for arguments of shape `(N, num_outputs)`, one value each; with 1, every element is a sample.

    Returns:
        float64, shape `()` or `(num_outputs,)`. With a target of zeros: infinite, or NaN when there is no error either.

    Raises:
        ConfigError: `num_outputs` below 1.

    Example:
        >>> import torch
        >>> WeightedMeanAbsolutePercentageError()(torch.tensor([1.0, 3.0]), torch.tensor([2.0, -2.0]))
        tensor(1.5000, dtype=torch.float64)

    Source: Kolassa and Schütz, Foresight 6 (2007), 40-43.
    """

    @property
    def terms(self) -> frozenset[Term]:
        return frozenset({AbsoluteError(), AbsoluteValue("target")})

    def value(self, counted: Totals, k: int) -> Number:
        return quotient(counted[AbsoluteError()][k], counted[AbsoluteValue("target")][k])


@dataclass(frozen=True)
class MeanSquaredLogError(PerOutput):
    """Mean squared logarithmic error.

    `sum(w log((1 + preds) / (1 + target))²) / sum(w)`. Each sample's term is computed in float32 (float64 where an
    argument is float64), from the difference of the arguments, so that nearly equal ones lose no digits; the sum of the
    terms is exact.

    Args:
        num_outputs: for arguments of shape `(N, num_outputs)`, one value each; with 1, every element is a sample.

    Returns:
        float64, shape `()` or `(num_outputs,)`; NaN without data.

    Raises:
        ConfigError: `num_outputs` below 1.
        ValuesError: when read, if a value was -1 or less.

    Example:
        >>> import torch
        >>> MeanSquaredLogError()(torch.tensor([0.5, 1.0, 2.0, 8.0]), torch.tensor([0.5, 1.0, 2.0, 7.0]))
        tensor(0.0035, dtype=torch.float64)

    Source: scikit-learn user guide, mean squared logarithmic error.
    """

    @property
    def terms(self) -> frozenset[Term]:
        return frozenset({SquaredLogError()})

    def value(self, counted: Totals, k: int) -> Number:
        return mean_of(SquaredLogError(), counted, k)


@dataclass(frozen=True)
class LogCoshError(PerOutput):
    """Mean of the logarithm of the hyperbolic cosine of the error.

    `sum(w log(cosh(preds - target))) / sum(w)`. Each sample's term is computed in float32 (float64 where an argument is
    float64) in a form that neither overflows for large errors nor loses digits for small ones; their sum is exact.

    Args:
        num_outputs: for arguments of shape `(N, num_outputs)`, one value each; with 1, every element is a sample.

    Returns:
        float64, shape `()` or `(num_outputs,)`; NaN without data.

    Raises:
        ConfigError: `num_outputs` below 1.

    Example:
        >>> import torch
        >>> LogCoshError()(torch.tensor([3.0, 5.0, 2.5, 7.0]), torch.tensor([2.5, 5.0, 4.0, 8.0]))
        tensor(0.3523, dtype=torch.float64)

    Source: Saleh and Saleh, Statistical Properties of the log-cosh Loss Function, arXiv:2208.04564.
    """

    @property
    def terms(self) -> frozenset[Term]:
        return frozenset({LogCosh()})

    def value(self, counted: Totals, k: int) -> Number:
        return mean_of(LogCosh(), counted, k)


def mean_of(term: Term, counted: Totals, k: int) -> Number:
    """The mean of a term; infinite where a term was infinite."""
    total = counted[term][k]
    return total if isinstance(total, float) else quotient(total, counted.weight[k])


@dataclass(frozen=True)
class MinkowskiDistance(PerOutput):
    """Minkowski distance between predictions and target.

    `sum(w |preds - target| ** p) ** (1 / p)`. For `p` of 1 and 2 the value is that of exact arithmetic on the given
    inputs, rounded once; for another `p` each sample's power is computed in float32 (float64 where an argument is
    float64), and their sum is exact.

    Args:
        p: the exponent, 1 or more.
        num_outputs: for arguments of shape `(N, num_outputs)`, one value each; with 1, every element is a sample.

    Returns:
        float64, shape `()` or `(num_outputs,)`; NaN without data.

    Raises:
        ConfigError: `p` below 1 or not finite.

    Example:
        >>> import torch
        >>> MinkowskiDistance(p=2)(torch.tensor([0.0, 1.0, 4.0]), torch.tensor([3.0, 1.0, 0.0]))
        tensor(5., dtype=torch.float64)

    Source: SciPy, scipy.spatial.distance.minkowski.
    """

    p: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.p < math.inf:
            raise ConfigError(describe("p", self.p, "a finite number of 1 or more", "Below 1 it is not a distance"))

    @property
    def terms(self) -> frozenset[Term]:
        if self.p == 2:
            return SQUARES
        return frozenset({AbsoluteError() if self.p == 1 else AbsolutePower(self.p)})

    def value(self, counted: Totals, k: int) -> Number:
        if counted.count[k] == 0:
            return math.nan
        if self.p == 2:
            return root(squared_error(counted, k))
        if self.p == 1:
            return counted[AbsoluteError()][k]
        return math.pow(rounded(counted[AbsolutePower(self.p)][k]), 1 / self.p)


@dataclass(frozen=True)
class TweedieDevianceScore(PerOutput):
    """Mean deviance of the Tweedie distributions: normal (power 0), Poisson (1), gamma (2), inverse Gaussian (3).

    `sum(w d(preds, target)) / sum(w)` with the unit deviances `(target - preds)²` for power 0,
    `2 (target log(target / preds) + preds - target)` for 1, `2 (log(preds / target) + target / preds - 1)` for 2, and
    `2 (max(target, 0)^(2-p) / ((1-p)(2-p)) - target preds^(1-p) / (1-p) + preds^(2-p) / (2-p))` for another power `p`.
    Power 0 is exact and rounded once. Otherwise each sample's term is computed in float32 (float64 where an argument is
    float64), for powers 1 and 2 without cancellation, and their sum is exact.

    Args:
        power: of the variance as a function of the mean; not between 0 and 1.
        num_outputs: for arguments of shape `(N, num_outputs)`, one value each; with 1, every element is a sample.

    Returns:
        float64, shape `()` or `(num_outputs,)`; NaN without data.

    Raises:
        ConfigError: a power between 0 and 1, for which there is no distribution.
        ValuesError: when read, if preds or target were outside the domain of the power.

    Example:
        >>> import torch
        >>> TweedieDevianceScore(power=2)(torch.tensor([4.0, 3.0, 2.0, 1.0]), torch.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor(1.2083, dtype=torch.float64)

    Source: Jørgensen, Journal of the Royal Statistical Society B 49 (1987), 127-162.
    """

    power: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if 0 < self.power < 1 or not math.isfinite(self.power):
            do = "Use 0 for normal, 1 for Poisson, 2 for gamma data"
            raise ConfigError(describe("power", self.power, "a finite number of 0 or less, or of 1 or more", do))

    @property
    def terms(self) -> frozenset[Term]:
        return frozenset({TweedieDeviance(self.power)}) if self.power else SQUARES

    def value(self, counted: Totals, k: int) -> Number:
        if self.power:
            return mean_of(TweedieDeviance(self.power), counted, k)
        return quotient(squared_error(counted, k), counted.weight[k])


@dataclass(frozen=True)
class CriticalSuccessIndex(PerOutput):
    """Critical success index (threat score): of the events that were forecast or happened, how many were both.

    `hits / (hits + misses + false alarms)`, where a value that reaches the threshold is an event. Exact, rounded once.

    Args:
        threshold: values of this or more are events; compared in float32 (float64 where an argument is float64).
        num_outputs: for arguments of shape `(N, num_outputs)`, one value each; with 1, every element is a sample.

    Returns:
        float64, shape `()` or `(num_outputs,)`; NaN when there is no event, or where a value is NaN.

    Raises:
        ConfigError: a threshold that is NaN.

    Example:
        >>> import torch
        >>> CriticalSuccessIndex(threshold=0.5)(torch.tensor([0.2, 0.7, 0.9]), torch.tensor([0.4, 0.2, 0.8]))
        tensor(0.5000, dtype=torch.float64)

    Source: Schaefer, Weather and Forecasting 5 (1990), 570-575.
    """

    threshold: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if math.isnan(self.threshold):
            raise ConfigError(describe("threshold", self.threshold, "a number", "Give the value that makes an event"))

    @property
    def _hits(self) -> Term:
        return Exceeds(self.threshold, either=False)

    @property
    def _events(self) -> Term:
        return Exceeds(self.threshold, either=True)

    @property
    def terms(self) -> frozenset[Term]:
        return frozenset({self._hits, self._events})

    def value(self, counted: Totals, k: int) -> Number:
        return quotient(counted[self._hits][k], counted[self._events][k])


@dataclass(frozen=True)
class R2Score(OverOutputs):
    """Coefficient of determination R².

    `1 - sum(w (target - preds)²) / sum(w (target - mean)²)`, with the weighted mean of the target. The value is that of
    exact arithmetic on the given inputs, rounded once.

    Args:
        adjusted: the number of independent variables of the model; above 0 gives the adjusted
            `1 - (1 - R²) (N - 1) / (N - adjusted - 1)`, with `N` the number of samples, weighted or not.
        num_outputs: arguments are `(N, num_outputs)`; for 1, `(N,)` or `(N, 1)`.
        multioutput: "uniform_average" over outputs, "raw_values", or "variance_weighted": by the spread of the target.

    Returns:
        float64, shape `()`, or `(num_outputs,)` for raw values. A constant target reads 1 when it is met exactly, else
        0 (as in scikit-learn). NaN for fewer than 2 samples, and adjusted for `adjusted + 1` samples or fewer.

    Raises:
        ConfigError: `adjusted` below 0, an unknown `multioutput`, `num_outputs` below 1.

    Example:
        >>> import torch
        >>> R2Score()(torch.tensor([2.5, 0.0, 2.0, 8.0]), torch.tensor([3.0, -0.5, 2.0, 7.0]))
        tensor(0.9486, dtype=torch.float64)

    Source: Kvålseth, The American Statistician 39 (1985), 279-285, equation 1; scikit-learn user guide.
    """

    adjusted: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.adjusted < 0:
            raise ConfigError(describe("adjusted", self.adjusted, "0 or more", "Give the number of variables"))

    def value(self, counted: Totals, k: int) -> Number:
        samples = counted.count[k]
        score = share_left(squared_error(counted, k), target_spread(counted, k))
        if isinstance(score, float) or samples < 2:
            return math.nan
        if not self.adjusted:
            return score
        return (
            1 - (1 - score) * Fraction(samples - 1, samples - self.adjusted - 1)
            if samples > self.adjusted + 1
            else math.nan
        )


@dataclass(frozen=True)
class ExplainedVariance(OverOutputs):
    """Explained variance: as R², but a constant error costs nothing.

    `1 - Var(target - preds) / Var(target)`, with weighted variances. The value is that of exact arithmetic on the given
    inputs, rounded once.

    Args:
        num_outputs: arguments are `(N, num_outputs)`; for 1, `(N,)` or `(N, 1)`.
        multioutput: "uniform_average" over outputs, "raw_values", or "variance_weighted": by the spread of the target.

    Returns:
        float64, shape `()`, or `(num_outputs,)` for raw values. A constant target reads 1 when the error is constant,
        too, else 0 (as in scikit-learn). NaN without data.

    Raises:
        ConfigError: an unknown `multioutput`, `num_outputs` below 1.

    Example:
        >>> import torch
        >>> ExplainedVariance()(torch.tensor([2.5, 0.0, 2.0, 8.0]), torch.tensor([3.0, -0.5, 2.0, 7.0]))
        tensor(0.9572, dtype=torch.float64)

    Source: scikit-learn user guide, explained variance score.
    """

    def value(self, counted: Totals, k: int) -> Number:
        error, weight = squared_error(counted, k), counted.weight[k]
        bias = combined((1, counted[PREDS][k]), (-1, counted[TARGET][k]))
        if isinstance(error, float) or isinstance(weight, float) or isinstance(bias, float) or not weight:
            return math.nan
        return share_left(error - bias * bias / weight, target_spread(counted, k))


@dataclass(frozen=True)
class RelativeSquaredError(OverOutputs):
    """Relative squared error: the squared error over that of always predicting the mean, or its root.

    `sum(w (target - preds)²) / sum(w (target - mean)²)`. The value is that of exact arithmetic on the given inputs,
    rounded once (for a mean of roots, each root is rounded and then their mean).

    Args:
        squared: False gives the square root.
        num_outputs: arguments are `(N, num_outputs)`; for 1, `(N,)` or `(N, 1)`.
        multioutput: "uniform_average" over outputs, "raw_values", or "variance_weighted": by the spread of the target.

    Returns:
        float64, shape `()`, or `(num_outputs,)` for raw values. With a constant target: infinite, or NaN when there is
        no error either. NaN without data.

    Raises:
        ConfigError: an unknown `multioutput`, `num_outputs` below 1.

    Example:
        >>> import torch
        >>> RelativeSquaredError()(torch.tensor([2.5, 0.0, 2.0, 8.0]), torch.tensor([3.0, -0.5, 2.0, 7.0]))
        tensor(0.0514, dtype=torch.float64)

    Source: Botchkarev, Interdisciplinary Journal of Information, Knowledge, and Management 14 (2019), 45-76.
    """

    squared: bool = True

    def value(self, counted: Totals, k: int) -> Number:
        share = quotient(squared_error(counted, k), target_spread(counted, k))
        return share if self.squared else root(share)
