"""Regression metrics: each is read from exact sums over the samples.

Where a metric is made of differences, squares and products, the value is that of exact arithmetic on the given inputs,
rounded once to float64. Where each sample needs a logarithm, an exponential or a division, its term is computed in
float32 (float64 where an argument is float64), and the sum of the terms is exact.

Values that are NaN or infinite make what is computed from them NaN, with a warning that says how many there were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from assay.errors import ConfigError, describe
from assay.metrics.base import Direction
from assay.metrics.outputs import (
    SQUARES,
    ElementwiseMetric,
    Of,
    absolute,
    magnitude,
    mean_of,
    of_term,
    squared,
    squared_error,
)
from assay.metrics.rational import quotient, root, rounded
from assay.stats.intervals import Ends, wilson
from assay.tally.sums import AbsoluteError, AbsoluteValue, FloatTerm, Number, Term, Totals
from assay.tally.terms import (
    AbsolutePower,
    Exceeds,
    LogCosh,
    PercentageError,
    SquaredLogError,
    SymmetricPercentageError,
    TweedieDeviance,
)


@dataclass(frozen=True)
class MeanSquaredError(ElementwiseMetric):
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

    @property
    def columns(self) -> Mapping[str, Of]:
        return {"squared error": squared} if self.squared else {}

    def value(self, counted: Totals, k: int) -> Number:
        mean = quotient(squared_error(counted, k), counted.weight[k])
        return mean if self.squared else root(mean)


@dataclass(frozen=True)
class MeanAbsoluteError(ElementwiseMetric):
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

    @property
    def columns(self) -> Mapping[str, Of]:
        return {"absolute error": absolute}

    def value(self, counted: Totals, k: int) -> Number:
        return quotient(counted[AbsoluteError()][k], counted.weight[k])


@dataclass(frozen=True)
class MeanAbsolutePercentageError(ElementwiseMetric):
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

    @property
    def columns(self) -> Mapping[str, Of]:
        return {"percentage error": of_term(PercentageError())}

    def value(self, counted: Totals, k: int) -> Number:
        return mean_of(PercentageError(), counted, k)


@dataclass(frozen=True)
class SymmetricMeanAbsolutePercentageError(ElementwiseMetric):
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

    @property
    def columns(self) -> Mapping[str, Of]:
        return {"symmetric percentage error": of_term(SymmetricPercentageError())}

    def value(self, counted: Totals, k: int) -> Number:
        return mean_of(SymmetricPercentageError(), counted, k)


@dataclass(frozen=True)
class WeightedMeanAbsolutePercentageError(ElementwiseMetric):
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

    @property
    def columns(self) -> Mapping[str, Of]:
        return {"absolute error": absolute, "absolute target": magnitude}

    def value(self, counted: Totals, k: int) -> Number:
        return quotient(counted[AbsoluteError()][k], counted[AbsoluteValue("target")][k])


@dataclass(frozen=True)
class MeanSquaredLogError(ElementwiseMetric):
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
        InvalidValuesError: when read, if a value was -1 or less.

    Example:
        >>> import torch
        >>> MeanSquaredLogError()(torch.tensor([0.5, 1.0, 2.0, 8.0]), torch.tensor([0.5, 1.0, 2.0, 7.0]))
        tensor(0.0035, dtype=torch.float64)

    Source: scikit-learn user guide, mean squared logarithmic error.
    """

    @property
    def terms(self) -> frozenset[Term]:
        return frozenset({SquaredLogError()})

    @property
    def columns(self) -> Mapping[str, Of]:
        return {"squared log error": of_term(SquaredLogError())}

    def value(self, counted: Totals, k: int) -> Number:
        return mean_of(SquaredLogError(), counted, k)


@dataclass(frozen=True)
class LogCoshError(ElementwiseMetric):
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

    @property
    def columns(self) -> Mapping[str, Of]:
        return {"log-cosh error": of_term(LogCosh())}

    def value(self, counted: Totals, k: int) -> Number:
        return mean_of(LogCosh(), counted, k)


@dataclass(frozen=True)
class MinkowskiDistance(ElementwiseMetric):
    """Minkowski distance between predictions and target.

    `sum(w |preds - target| ** p) ** (1 / p)`. For `p` of 1 and 2 the value is that of exact arithmetic on the given
    inputs, rounded once; for another `p` each sample's power is computed in float32 (float64 where an argument is
    float64), and their sum is exact: powers below 1e-38 count as 0 in float32, so pass tiny errors as float64.

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
    def estimates(self) -> bool:
        return False

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
class TweedieDevianceScore(ElementwiseMetric):
    """Mean deviance of the Tweedie distributions: normal (power 0), Poisson (1), gamma (2), inverse Gaussian (3).

    `sum(w d(preds, target)) / sum(w)` with the unit deviances `(target - preds)²` for power 0,
    `2 (target log(target / preds) + preds - target)` for 1, `2 (log(preds / target) + target / preds - 1)` for 2, and
    `2 (max(target, 0)^(2-p) / ((1-p)(2-p)) - target preds^(1-p) / (1-p) + preds^(2-p) / (2-p))` for another power `p`.
    Power 0 is exact and rounded once. Otherwise each sample's term is computed in float32 (float64 where an argument is
    float64), without cancellation and so never negative, and their sum is exact.

    Args:
        power: of the variance as a function of the mean; not between 0 and 1.
        num_outputs: for arguments of shape `(N, num_outputs)`, one value each; with 1, every element is a sample.

    Returns:
        float64, shape `()` or `(num_outputs,)`; NaN without data.

    Raises:
        ConfigError: a power between 0 and 1, for which there is no distribution.
        InvalidValuesError: when read, if preds or target were outside the domain of the power.

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

    @property
    def columns(self) -> Mapping[str, Of]:
        return (
            {f"deviance, power {self.power}": of_term(TweedieDeviance(self.power))}
            if self.power
            else {"squared error": squared}
        )

    def value(self, counted: Totals, k: int) -> Number:
        if self.power:
            return mean_of(TweedieDeviance(self.power), counted, k)
        return quotient(squared_error(counted, k), counted.weight[k])


@dataclass(frozen=True)
class CriticalSuccessIndex(ElementwiseMetric):
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

    better: ClassVar[Direction] = "higher"

    threshold: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if math.isnan(self.threshold):
            raise ConfigError(describe("threshold", self.threshold, "a number", "Give the value that makes an event"))

    @property
    def _hits(self) -> FloatTerm:
        return Exceeds(self.threshold, either=False)

    @property
    def _events(self) -> FloatTerm:
        return Exceeds(self.threshold, either=True)

    @property
    def terms(self) -> frozenset[Term]:
        return frozenset({self._hits, self._events})

    @property
    def columns(self) -> Mapping[str, Of]:
        return {
            f"hits, threshold {self.threshold}": of_term(self._hits),
            f"events, threshold {self.threshold}": of_term(self._events),
        }

    @property
    def closed_form(self) -> str:
        return "Wilson's interval" if self.num_outputs == 1 else ""

    def interval(self, counted: Totals, confidence_level: float, rows: int) -> Ends | None:
        hits, events = counted[self._hits][0], counted[self._events][0]
        if isinstance(hits, float) or isinstance(events, float) or counted.count[0] > rows:
            return None
        return wilson(int(hits), int(events), confidence_level)

    def value(self, counted: Totals, k: int) -> Number:
        return quotient(counted[self._hits][k], counted[self._events][k])
