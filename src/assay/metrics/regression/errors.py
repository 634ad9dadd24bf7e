"""Errors of predictions of numbers, computed from exact sums over the samples.

Values that are NaN or infinite make what is computed from them NaN, with a warning that says how many there were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import NOT_NEGATIVE, SHARE, Metric, number
from assay.metrics.exact_arithmetic import combined, quotient, root, rounded
from assay.metrics.output_metrics import (
    MEAN_SQUARED_ERROR,
    SQUARED_ERROR,
    SQUARES,
    WEIGHT,
    ElementwiseMetric,
    MeanTermMetric,
    Of,
    absolute,
    magnitude,
    mean_of,
    of_term,
    squared,
    total_of_term,
)
from assay.metrics.per_sample import single
from assay.native.quotients import StateQuotient
from assay.stats.intervals import Ends, few_of_a_kind, wilson
from assay.tally.base import Batch, Tally
from assay.tally.state_quotients import state_quotient
from assay.tally.sums.exact import Number
from assay.tally.sums.float_terms import (
    AbsolutePower,
    Exceeds,
    LogCosh,
    PercentageError,
    SquaredLogError,
    SymmetricPercentageError,
    TweedieDeviance,
    difference,
)
from assay.tally.sums.largest_error import LargestError
from assay.tally.sums.polynomials import QuotientOfSums
from assay.tally.sums.terms import PREDS, TARGET, AbsoluteError, AbsoluteValue, FloatTerm, Term
from assay.tally.sums.totals import Totals

_ROOT_MEAN_SQUARED_ERROR = QuotientOfSums(SQUARED_ERROR, WEIGHT, "of the quotient")


@dataclass(frozen=True)
class MeanSquaredError(ElementwiseMetric):
    """Mean squared error, or its root.

    `sum(w (preds - target)²) / sum(w)`.

    Example:
        >>> import torch
        >>> MeanSquaredError()(torch.tensor([2.5, 0.0, 2.0, 8.0]), torch.tensor([3.0, -0.5, 2.0, 7.0]))
        tensor(0.3750, dtype=torch.float64)

    Source: Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, 2nd ed., section 2.4.
    """

    value_range = NOT_NEGATIVE

    squared: Annotated[bool, "False gives the square root."] = True

    examples = ({}, {"squared": False}, {"num_outputs": 2})
    unchanged_by = frozenset({"swap"})
    terms = SQUARES

    @property
    def per_sample_terms(self) -> Mapping[str, Of]:
        return {"squared error": squared}

    @property
    def scale(self) -> str:
        return "" if self.squared else "root"

    @property
    def formula(self) -> QuotientOfSums | None:
        return MEAN_SQUARED_ERROR if self.squared else _ROOT_MEAN_SQUARED_ERROR


@dataclass(frozen=True)
class MeanAbsoluteError(ElementwiseMetric):
    """Mean absolute error.

    `sum(w |preds - target|) / sum(w)`.

    Example:
        >>> import torch
        >>> MeanAbsoluteError()(torch.tensor([2.5, 0.0, 2.0, 8.0]), torch.tensor([3.0, -0.5, 2.0, 7.0]))
        tensor(0.5000, dtype=torch.float64)

    Source: Willmott and Matsuura, Climate Research 30 (2005), 79-82.
    """

    value_range = NOT_NEGATIVE

    examples = ({}, {"num_outputs": 2})
    unchanged_by = frozenset({"swap"})
    terms = frozenset({AbsoluteError()})
    per_sample_terms: ClassVar[Mapping[str, Of]] = {"absolute error": absolute}
    formula = mean_of(AbsoluteError())


@dataclass(frozen=True)
class MeanAbsolutePercentageError(MeanTermMetric):
    """Mean absolute percentage error, as a fraction: 0.1 is ten percent.

    `sum(w |preds - target| / max(|target|, 1.17e-6)) / sum(w)`.

    Example:
        >>> import torch
        >>> MeanAbsolutePercentageError()(torch.tensor([1.0, 3.0]), torch.tensor([2.0, 4.0]))
        tensor(0.3750, dtype=torch.float64)

    Source: de Myttenaere, Golden, Le Grand, Rossi, Neurocomputing 192 (2016), 38-48; the bound is TorchMetrics'.
    """

    value_range = NOT_NEGATIVE

    term, term_name = PercentageError(), "percentage error"


@dataclass(frozen=True)
class SymmetricMeanAbsolutePercentageError(MeanTermMetric):
    """Symmetric mean absolute percentage error, between 0 and 2.

    `sum(w 2 |preds - target| / max(|preds| + |target|, 1.17e-6)) / sum(w)`.

    Example:
        >>> import torch
        >>> SymmetricMeanAbsolutePercentageError()(torch.tensor([1.0, 4.0]), torch.tensor([3.0, 4.0]))
        tensor(0.5000, dtype=torch.float64)

    Source: Makridakis, International Journal of Forecasting 9 (1993), 527-529; the bound is TorchMetrics'.
    """

    value_range = (0.0, 2.0)

    term, term_name = SymmetricPercentageError(), "symmetric percentage error"
    unchanged_by = frozenset({"swap"})


@dataclass(frozen=True)
class WeightedMeanAbsolutePercentageError(ElementwiseMetric):
    """Weighted mean absolute percentage error: the total error as a fraction of the total target.

    `sum(w |preds - target|) / sum(w |target|)`.

    Returns:
        float64, shape `()` or `(num_outputs,)`. With a target of zeros: infinite, or NaN when there is no error either.

    Example:
        >>> import torch
        >>> WeightedMeanAbsolutePercentageError()(torch.tensor([1.0, 3.0]), torch.tensor([2.0, -2.0]))
        tensor(1.5000, dtype=torch.float64)

    Source: Kolassa and Schütz, Foresight 6 (2007), 40-43.
    """

    value_range = NOT_NEGATIVE
    terms = frozenset({AbsoluteError(), AbsoluteValue("target")})
    per_sample_terms: ClassVar[Mapping[str, Of]] = {"absolute error": absolute, "absolute target": magnitude}
    formula = mean_of(AbsoluteError(), AbsoluteValue("target"))


@dataclass(frozen=True)
class MeanSquaredLogError(MeanTermMetric):
    """Mean squared logarithmic error.

    `sum(w log((1 + preds) / (1 + target))²) / sum(w)`. Each term is computed from the difference of the arguments, so
    that nearly equal ones lose no digits.

    Raises:
        ConfigError: `num_outputs` below 1.
        InvalidValuesError: by `compute`, if a value was -1 or less.

    Example:
        >>> import torch
        >>> MeanSquaredLogError()(torch.tensor([0.5, 1.0, 2.0, 8.0]), torch.tensor([0.5, 1.0, 2.0, 7.0]))
        tensor(0.0035, dtype=torch.float64)

    Source: scikit-learn user guide, mean squared logarithmic error.
    """

    value_range = NOT_NEGATIVE

    term, term_name = SquaredLogError(), "squared log error"
    inputs = "positive pairs"
    unchanged_by = frozenset({"swap"})


@dataclass(frozen=True)
class LogCoshError(MeanTermMetric):
    """Mean of the logarithm of the hyperbolic cosine of the error.

    `sum(w log(cosh(preds - target))) / sum(w)`. Each term is computed in a form that neither overflows for large errors
    nor loses digits for small ones.

    Example:
        >>> import torch
        >>> LogCoshError()(torch.tensor([3.0, 5.0, 2.5, 7.0]), torch.tensor([2.5, 5.0, 4.0, 8.0]))
        tensor(0.3523, dtype=torch.float64)

    Source: Saleh and Saleh, Statistical Properties of the log-cosh Loss Function, arXiv:2208.04564.
    """

    value_range = NOT_NEGATIVE

    term, term_name = LogCosh(), "log-cosh error"
    examples = ({}, {"num_outputs": 2})
    unchanged_by = frozenset({"swap"})


@dataclass(frozen=True)
class MinkowskiDistance(ElementwiseMetric):
    """Minkowski distance between predictions and target.

    `sum(w |preds - target| ** p) ** (1 / p)`.

    Rounding: for `p` of 1 and 2 the value is that of exact arithmetic on the given inputs, rounded once. For another
    `p` each sample's power is computed in float32 (float64 where an argument is float64), and their sum is exact:
    powers below 1e-38 count as 0 in float32, so pass tiny errors as float64.

    Raises:
        ConfigError: `p` below 1 or not finite.

    Example:
        >>> import torch
        >>> MinkowskiDistance(p=2)(torch.tensor([0.0, 1.0, 4.0]), torch.tensor([3.0, 1.0, 0.0]))
        tensor(5., dtype=torch.float64)

    Source: SciPy, scipy.spatial.distance.minkowski.
    """

    value_range = NOT_NEGATIVE

    p: Annotated[float, "the exponent, 1 or more."]

    exact_terms = False
    examples = ({"p": 1}, {"p": 2}, {"p": 3})
    unchanged_by = frozenset({"swap"})
    estimates = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.p < math.inf:
            raise ConfigError(describe("p", self.p, "a finite number of 1 or more", "Below 1 it is not a distance"))

    @property
    def terms(self) -> frozenset[Term]:
        if self.p == 2:
            return SQUARES
        return frozenset({AbsoluteError() if self.p == 1 else AbsolutePower(self.p)})

    def reading(self, tally: Tally) -> StateQuotient | None:
        if self.p == 2:
            return state_quotient(tally, QuotientOfSums(SQUARED_ERROR * WEIGHT, WEIGHT, "of the quotient"))
        if self.p == 1:
            return state_quotient(tally, total_of_term(AbsoluteError()))
        if self.num_outputs > 1:
            return None
        total = state_quotient(tally, total_of_term(AbsolutePower(self.p)))
        return None if total is None else total.through(self._root)

    def _root(self, total: float) -> float:
        return math.pow(total, 1 / self.p)

    def value(self, counts: Totals, k: int) -> Number:
        if counts.count[k] == 0:
            return math.nan
        if self.p == 2:
            return root(SQUARED_ERROR.evaluate(counts.sum_of(k)))
        if self.p == 1:
            return counts[AbsoluteError()][k]
        return self._root(rounded(counts[AbsolutePower(self.p)][k]))


@dataclass(frozen=True)
class TweedieDevianceScore(ElementwiseMetric):
    """Mean deviance of the Tweedie distributions: normal (power 0), Poisson (1), gamma (2), inverse Gaussian (3).

    `sum(w d(preds, target)) / sum(w)` with the unit deviances `(target - preds)²` for power 0,
    `2 (target log(target / preds) + preds - target)` for 1, `2 (log(preds / target) + target / preds - 1)` for 2, and
    `2 (max(target, 0)^(2-p) / ((1-p)(2-p)) - target preds^(1-p) / (1-p) + preds^(2-p) / (2-p))` for another power `p`.

    Rounding: power 0 is exact and rounded once. Otherwise each sample's term is computed in float32 (float64 where an
    argument is float64), without cancellation and so never negative, and their sum is exact.

    Raises:
        ConfigError: a power between 0 and 1, for which there is no distribution.
        InvalidValuesError: by `compute`, if preds or target were outside the domain of the power.

    Example:
        >>> import torch
        >>> TweedieDevianceScore(power=2)(torch.tensor([4.0, 3.0, 2.0, 1.0]), torch.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor(1.2083, dtype=torch.float64)

    Source: Jørgensen, Journal of the Royal Statistical Society B 49 (1987), 127-162.
    """

    value_range = NOT_NEGATIVE

    power: Annotated[float, "of the variance as a function of the mean; not between 0 and 1."] = 0.0

    exact_terms = False
    inputs = "positive pairs"
    examples = ({}, {"power": 1}, {"power": 1.5}, {"power": 2}, {"power": 3})

    def __post_init__(self) -> None:
        super().__post_init__()
        if 0 < self.power < 1 or not math.isfinite(self.power):
            do = "Use 0 for normal, 1 for Poisson, 2 for gamma data"
            raise ConfigError(describe("power", self.power, "a finite number of 0 or less, or of 1 or more", do))

    @property
    def terms(self) -> frozenset[Term]:
        return frozenset({TweedieDeviance(self.power)}) if self.power else SQUARES

    @property
    def per_sample_terms(self) -> Mapping[str, Of]:
        return (
            {f"deviance, power {self.power}": of_term(TweedieDeviance(self.power))}
            if self.power
            else {"squared error": squared}
        )

    @property
    def formula(self) -> QuotientOfSums | None:
        return mean_of(TweedieDeviance(self.power)) if self.power else MEAN_SQUARED_ERROR


@dataclass(frozen=True)
class CriticalSuccessIndex(ElementwiseMetric):
    """Critical success index (threat score): of the events that were forecast or happened, how many were both.

    `hits / (hits + misses + false alarms)`, where a value that reaches the threshold is an event.

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

    value_range = SHARE

    higher_is_better = True

    threshold: Annotated[
        float, "values of this or more are events; compared in float32 (float64 where an argument is float64)."
    ]

    examples = ({"threshold": 0.5},)
    unchanged_by = frozenset({"swap"})

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
    def per_sample_terms(self) -> Mapping[str, Of]:
        return {
            f"hits, threshold {self.threshold}": of_term(self._hits),
            f"events, threshold {self.threshold}": of_term(self._events),
        }

    @property
    def closed_form(self) -> str:
        return "Wilson's interval" if self.num_outputs == 1 else ""

    def interval(self, counts: Totals, confidence_level: float, rows: int) -> Ends | None:
        hits, events = counts[self._hits][0], counts[self._events][0]
        if isinstance(hits, float) or isinstance(events, float) or counts.count[0] > rows:
            return None
        return wilson(int(hits), int(events), confidence_level)

    def caution(self, counts: Totals) -> str:
        return few_of_a_kind(float(counts[self._hits][0]), float(counts[self._events][0]))

    @property
    def formula(self) -> QuotientOfSums | None:
        return mean_of(self._hits, self._events)


@dataclass(frozen=True)
class PinballLoss(ElementwiseMetric):
    """Pinball (quantile) loss: the mean error of predictions of a quantile, low and high ones weighted differently.

    `sum(w (alpha max(target - preds, 0) + (1 - alpha) max(preds - target, 0))) / sum(w)`. The expected loss is least
    for the quantile `alpha` of the target's distribution; with 0.5 it is half of the mean absolute error.

    Raises:
        ConfigError: `alpha` outside [0, 1], `num_outputs` below 1.

    Example:
        >>> import torch
        >>> PinballLoss(alpha=0.75)(torch.tensor([1.0, 4.0]), torch.tensor([2.0, 3.0]))
        tensor(0.5000, dtype=torch.float64)

    Source: Koenker and Bassett, Econometrica 46 (1978), 33-50.
    """

    value_range = NOT_NEGATIVE

    alpha: Annotated[float, "which quantile is predicted, in [0, 1]."] = 0.5

    examples = ({"alpha": 0.9}, {"alpha": 0.25, "num_outputs": 2})
    terms = frozenset({PREDS, TARGET, AbsoluteError()})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.alpha <= 1:
            raise ConfigError(describe("alpha", self.alpha, "a number in [0, 1]", "Give 0.9 for the upper decile"))

    @property
    def per_sample_terms(self) -> Mapping[str, Of]:
        def loss(preds: Tensor, target: Tensor) -> Tensor:
            excess = difference(preds, target)
            return excess.clamp(min=0) * (1 - self.alpha) - excess.clamp(max=0) * self.alpha

        return {f"pinball loss, alpha {self.alpha}": loss}

    def value(self, counts: Totals, k: int) -> Number:
        bias = combined((1, counts[PREDS][k]), (-1, counts[TARGET][k]))
        if isinstance(bias, float):
            return bias
        loss = combined((Fraction(1, 2), counts[AbsoluteError()][k]), (Fraction(1, 2) - Fraction(self.alpha), bias))
        return quotient(loss, counts.weight[k])


@dataclass(frozen=True)
class MaximumAbsoluteError(Metric):
    """Largest absolute error. Samples of weight 0 are left out; other weights have no influence.

    `max |preds - target|`.

    Shapes: `preds` and `target` of one shape, every element of which is a sample.

    Rounding: the value is that of exact arithmetic on the given inputs, rounded once to float64.

    Returns:
        float64, shape `()`; NaN without data, and where a value is NaN or infinite.

    Raises:
        ShapeError: `preds` and `target` of different shapes.
        DtypeError: integers beside floats that do not hold them all, as int64 beside float32.

    Example:
        >>> import torch
        >>> MaximumAbsoluteError()(torch.tensor([2.5, 0.0, 2.0, 8.0]), torch.tensor([3.0, -0.5, 2.0, 7.0]))
        tensor(1., dtype=torch.float64)

    Source: Ignite, `ignite.metrics.regression.MaximumAbsoluteError`; scikit-learn, `max_error`.
    """

    value_range = NOT_NEGATIVE

    family = "regression"
    higher_is_better = False
    inputs = "pairs"
    unchanged_by = frozenset({"swap"})
    estimates = False

    def tally(self, weighted: bool) -> Tally:
        return LargestError()

    def compute(self, counts: float) -> Tensor:
        return number(counts)

    def predicted(self, batch: Batch) -> Tensor | None:
        return single(batch.preds)
