"""Errors that all samples are needed for: medians, and errors in relation to those of the simplest prediction."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from assay.errors import ConfigError, InvalidValuesError, describe, plural
from assay.metrics.base import AT_MOST_1, NOT_NEGATIVE, Metric, number
from assay.metrics.per_sample import single
from assay.stats.intervals import Ends, order_statistics
from assay.tally.base import Batch, Tally
from assay.tally.stores.samples import SampleArrays, SampleTally
from assay.tally.sums.float_terms import TweedieDeviance
from assay.tally.sums.integer_weights import integer_weights

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SampleErrorMetric(Metric):
    """A metric of all samples of one output. They are kept, as `preds` and `target` came.

    Shapes: `preds` and `target` of one shape, every element of which is a sample; weights `(N,)` or one each.

    Returns:
        float64, shape `()`; NaN without data, or where a value is NaN or infinite.

    Raises:
        ShapeError: `preds` and `target` of different shapes.
    """

    family: ClassVar[str] = "regression"
    inputs: ClassVar[str] = "pairs"
    higher_is_better: ClassVar[bool | None] = False
    exact_terms: ClassVar[bool] = False
    terms_in_float64 = True

    def tally(self, weighted: bool) -> Tally:
        return SampleTally(weighted=weighted)

    def predicted(self, batch: Batch) -> Tensor | None:
        return single(batch.preds)

    def compute(self, counts: SampleArrays) -> Tensor:
        preds, target = (counts[name][0].astype(np.float64) for name in ("preds", "target"))
        if counts.weights is None:
            weights = np.ones(len(preds))
        else:
            weights = _scaled(counts.weights[0])
            preds, target, weights = (each[weights > 0] for each in (preds, target, weights))
        if not len(preds) or not (np.isfinite(preds).all() and np.isfinite(target).all()):
            return number(math.nan)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return number(self.value(preds, target, weights))

    @abstractmethod
    def value(self, preds: Array, target: Array, weights: Array) -> float:
        """The value for finite float64 samples with positive weights."""


def _scaled(weights: Array) -> Array:
    """Weights as integers where those fit a float64 exactly: then weights times 2 change no bit of a sum."""
    whole, _ = integer_weights(weights)
    if int(whole.sum()) < 2**53:
        return whole.astype(np.float64)
    floats = weights.astype(np.float64)
    return floats * 2.0**-128 if floats.max() > 2.0**900 else floats  # whose sums fit float64


def median(values: Array, weights: Array) -> float:
    """The value in the middle, or the mean of the two there; infinities as in floating point."""
    return averaged_quantile(values, weights, 0.5)


def averaged_quantile(values: Array, weights: Array, q: float) -> float:
    """The least value with a share of at least `q` of the weight up to it; halfway to the next one where it is `q`."""
    order = np.argsort(values, kind="stable")
    values, upto = values[order], np.cumsum(weights[order])
    last = len(values) - 1
    wanted = q * upto[-1]
    k = min(int(np.searchsorted(upto, wanted, "left")), last)
    if upto[k] == wanted and k < last and values[k] != values[k + 1]:
        return float(values[k] / 2 + values[k + 1] / 2)
    return float(values[k])


def weighted_mean(values: Array, weights: Array) -> float:
    """The mean, also where the sum is beyond float64."""
    try:
        return math.fsum(values * weights) / math.fsum(weights)
    except OverflowError:
        return math.fsum(values * 2.0**-64 * weights) / math.fsum(weights) * 2.0**64


def relative_to_mean(preds: Array, target: Array, weights: Array) -> Array:
    """`|target - preds| / |target - mean|`; NaN where both are 0."""
    return np.asarray(np.abs(target - preds) / np.abs(_deviations(target, weights)))


def _deviations(values: Array, weights: Array) -> Array:
    """`values - mean` to nearly the last bit, also where the mean is large beside them.

    The mean is the sum of two floats: that of the values, rounded, and that of what is left of them. Differences are
    the sums of two floats, too (Knuth's two-sum).
    """
    centre = weighted_mean(values, weights)
    high = values - centre
    back = high - values
    low = (values - (high - back)) - (centre + back)
    if not np.isfinite(low).all():  # the values spread over all of float64
        return np.asarray(high)
    rest = (math.fsum(high * weights) + math.fsum(low * weights)) / math.fsum(weights)
    return np.asarray((high - rest) + low)


@dataclass(frozen=True)
class MedianErrorMetric(SampleErrorMetric):
    """The median of an error of each sample, which does not depend on the other samples.

    Returns:
        float64, shape `()`; NaN without data, or where a value is NaN or infinite.

    Raises:
        ShapeError: `preds` and `target` of different shapes.
    """

    closed_form = "order statistics"

    @abstractmethod
    def errors(self, preds: Array, target: Array) -> Array:
        """The errors of finite float64 samples."""

    def value(self, preds: Array, target: Array, weights: Array) -> float:
        return median(self.errors(preds, target), weights)

    def interval(self, counts: SampleArrays, confidence_level: float, rows: int) -> Ends | None:
        preds, target = (counts[name][0].astype(np.float64) for name in ("preds", "target"))
        if len(preds) > rows or not (np.isfinite(preds).all() and np.isfinite(target).all()):
            return None
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return order_statistics(np.sort(self.errors(preds, target)), 0.5, confidence_level)


@dataclass(frozen=True)
class MedianAbsoluteError(MedianErrorMetric):
    """Median of the absolute errors: half of the errors are smaller.

    `median |preds - target|`, the mean of the two middle ones for an even number. A weight says how often its sample
    occurs.

    Example:
        >>> import torch
        >>> MedianAbsoluteError()(torch.tensor([2.5, 0.0, 2.0, 8.0]), torch.tensor([3.0, -0.5, 2.0, 7.0]))
        tensor(0.5000, dtype=torch.float64)

    Source: scikit-learn user guide, median absolute error.
    """

    value_range = NOT_NEGATIVE

    unchanged_by = frozenset({"swap"})

    def errors(self, preds: Array, target: Array) -> Array:
        return np.asarray(np.abs(preds - target))


@dataclass(frozen=True)
class MedianAbsolutePercentageError(MedianErrorMetric):
    """Median of the absolute percentage errors, as a fraction: 0.1 is ten percent.

    `median(|preds - target| / |target|)`; infinite where most targets are 0 and predictions are not.

    Raises:
        InvalidValuesError: by `compute`, if prediction and target of a sample were both 0.

    Example:
        >>> import torch
        >>> MedianAbsolutePercentageError()(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([2.0, 4.0, 4.0]))
        tensor(0.2500, dtype=torch.float64)

    Source: Botchkarev, Interdisciplinary Journal of Information, Knowledge, and Management 14 (2019), 45-76.
    """

    value_range = NOT_NEGATIVE

    inputs = "positive pairs"

    def errors(self, preds: Array, target: Array) -> Array:
        return _defined("percentage errors", np.abs(preds - target) / np.abs(target))


@dataclass(frozen=True)
class MedianRelativeAbsoluteError(SampleErrorMetric):
    """Median of the absolute errors in relation to those of the mean of the target.

    `median(|target - preds| / |target - mean(target)|)`.

    Raises:
        InvalidValuesError: by `compute`, if a prediction was right where the target is the mean.

    Example:
        >>> import torch
        >>> MedianRelativeAbsoluteError()(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([2.0, 4.0, 9.0]))
        tensor(1., dtype=torch.float64)

    Source: Botchkarev, Interdisciplinary Journal of Information, Knowledge, and Management 14 (2019), 45-76.
    """

    value_range = NOT_NEGATIVE

    unchanged_by = frozenset({"common affine"})

    def value(self, preds: Array, target: Array, weights: Array) -> float:
        return median(_defined("relative errors", relative_to_mean(preds, target, weights)), weights)


@dataclass(frozen=True)
class GeometricMeanRelativeAbsoluteError(SampleErrorMetric):
    """Geometric mean of the absolute errors in relation to those of the mean of the target.

    `exp(mean(log(|target - preds| / |target - mean(target)|)))`; 0 where a prediction is right.

    Raises:
        InvalidValuesError: by `compute`, if a prediction was right where the target is the mean.

    Example:
        >>> import torch
        >>> GeometricMeanRelativeAbsoluteError()(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([2.0, 4.0, 9.0]))
        tensor(0.6934, dtype=torch.float64)

    Source: Botchkarev, Interdisciplinary Journal of Information, Knowledge, and Management 14 (2019), 45-76.
    """

    value_range = NOT_NEGATIVE

    inputs = "unequal pairs"

    def value(self, preds: Array, target: Array, weights: Array) -> float:
        ratios = _defined("relative errors", relative_to_mean(preds, target, weights))
        if not ratios.all():
            return math.nan if np.isinf(ratios).any() else 0.0
        if np.isinf(ratios).any():
            return math.inf
        return math.exp(math.fsum(np.log(ratios) * weights) / math.fsum(weights))


def _defined(what: str, ratios: Array) -> Array:
    """Quotients, none of which is 0 / 0."""
    if undefined := int(np.isnan(ratios).sum()):
        do = "Leave these samples out, or use a metric that does not divide, such as MedianAbsoluteError"
        raise InvalidValuesError(
            describe(what, f"0 / 0 in {plural(undefined, 'sample')}", "quotients with a value", do)
        )
    return ratios


@dataclass(frozen=True)
class D2Metric(SampleErrorMetric):
    """The share of a loss that predictions save, compared with the best constant prediction.

    Returns:
        float64, shape `()`; at most 1, and below 0 for predictions that are worse than a constant. Where the constant
        has no loss: 1 if the model has none either, else 0. NaN for less than 2 samples.
    """

    value_range = AT_MOST_1

    higher_is_better: ClassVar[bool | None] = True

    def value(self, preds: Array, target: Array, weights: Array) -> float:
        if len(preds) < 2:
            return math.nan
        constant = np.full_like(target, self.constant(target, weights))
        try:
            loss, of_constant = (math.fsum(self.losses(each, target) * weights) for each in (preds, constant))
        except OverflowError:
            return math.nan
        return 1 - loss / of_constant if of_constant else float(not loss)

    @abstractmethod
    def losses(self, preds: Array, target: Array) -> Array:
        """The loss of each sample."""

    @abstractmethod
    def constant(self, target: Array, weights: Array) -> float:
        """The constant with the least loss."""


@dataclass(frozen=True)
class D2PinballScore(D2Metric):
    """The share of the pinball loss that predictions of a quantile save, compared with the quantile of the target.

    `1 - sum(w pinball(preds, target)) / sum(w pinball(quantile(target), target))`.

    Raises:
        ConfigError: `alpha` outside [0, 1].

    Example:
        >>> import torch
        >>> D2PinballScore(alpha=0.5)(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 3.0, 5.0]))
        tensor(0.5000, dtype=torch.float64)

    Source: Koenker and Machado, Journal of the American Statistical Association 94 (1999); scikit-learn,
    d2_pinball_score.
    """

    alpha: Annotated[float, "which quantile is predicted, in [0, 1]."] = 0.5

    examples = ({"alpha": 0.75},)
    unchanged_by = frozenset({"common affine"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.alpha <= 1:
            raise ConfigError(describe("alpha", self.alpha, "a number in [0, 1]", "Give 0.9 for the upper decile"))

    def losses(self, preds: Array, target: Array) -> Array:
        excess = target - preds
        return np.asarray(np.where(excess >= 0, self.alpha * excess, (self.alpha - 1) * excess))

    def constant(self, target: Array, weights: Array) -> float:
        return averaged_quantile(target, weights, self.alpha)


@dataclass(frozen=True)
class D2AbsoluteErrorScore(D2Metric):
    """The share of the absolute error that predictions save, compared with the median of the target.

    `1 - sum(w |preds - target|) / sum(w |median(target) - target|)`.

    Example:
        >>> import torch
        >>> D2AbsoluteErrorScore()(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 3.0, 5.0]))
        tensor(0.5000, dtype=torch.float64)

    Source: scikit-learn user guide, D² absolute error score.
    """

    unchanged_by = frozenset({"common affine"})

    def losses(self, preds: Array, target: Array) -> Array:
        return np.asarray(np.abs(target - preds))

    def constant(self, target: Array, weights: Array) -> float:
        return median(target, weights)


@dataclass(frozen=True)
class D2TweedieScore(D2Metric):
    """The share of the Tweedie deviance that predictions save, compared with the mean of the target.

    `1 - sum(w d(preds, target)) / sum(w d(mean(target), target))`, with the deviance `d` of `TweedieDevianceScore`. For
    power 0 it is R².

    Raises:
        ConfigError: a power between 0 and 1, for which there is no distribution.
        InvalidValuesError: by `compute`, if preds or target were outside the domain of the power.

    Example:
        >>> import torch
        >>> D2TweedieScore(power=1)(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 3.0, 5.0]))
        tensor(0.7718, dtype=torch.float64)

    Source: Hastie, Tibshirani, Wainwright, Statistical Learning with Sparsity (2015), section 3.1; scikit-learn,
    d2_tweedie_score.
    """

    power: Annotated[float, "of the variance as a function of the mean; not between 0 and 1."] = 0.0

    inputs = "positive pairs"
    examples = ({}, {"power": 1}, {"power": 1.5}, {"power": 2}, {"power": -1})

    def __post_init__(self) -> None:
        super().__post_init__()
        if 0 < self.power < 1 or not math.isfinite(self.power):
            do = "Use 0 for normal, 1 for Poisson, 2 for gamma data"
            raise ConfigError(describe("power", self.power, "a finite number of 0 or less, or of 1 or more", do))

    def value(self, preds: Array, target: Array, weights: Array) -> float:
        if self.power and np.isnan(self._deviances(preds, target)).any():
            do = "Use power=0 for values of any sign"
            needs = TweedieDeviance(self.power).needs
            raise InvalidValuesError(describe("preds or target", "values outside the domain", needs, do))
        return super().value(preds, target, weights)

    def losses(self, preds: Array, target: Array) -> Array:
        if self.power == 0:
            return np.asarray((target - preds) ** 2)
        return np.where(preds == target, 0, self._deviances(preds, target))  # also of targets that are all 0

    def _deviances(self, preds: Array, target: Array) -> Array:
        """Those of the tally's term; NaN outside the domain."""
        return np.asarray(TweedieDeviance(self.power)(torch.from_numpy(preds), torch.from_numpy(target)))

    def constant(self, target: Array, weights: Array) -> float:
        return weighted_mean(target, weights)
