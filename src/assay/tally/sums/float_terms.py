"""Terms that are computed in floating point, sample by sample, and summed exactly.

Each is written so that its own rounding stays small: differences are taken before logarithms, and nothing is the
difference of two nearly equal results.

On the CPU, `pow` and `sinh` give other bits in the last elements of a tensor, which do not fill a vector register,
than in the others, so a value would depend on how the samples were split. `exp`, `expm1`, `log` and `log1p` do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.devices.placement import can_read
from assay.native import pair_terms
from assay.native.sums import Kind
from assay.tally.base import Batch
from assay.tally.sums.terms import PREDS, Computed, FloatTerm, Leaf, column

_MOST_EXPONENT = 1 << 20  # of what compiled code raises to a power; it fits its integers
SMALLEST_TARGET = 1.17e-06  # what TorchMetrics divides by where the target is nearer to zero


def difference(preds: Tensor, target: Tensor) -> Tensor:
    """`preds - target` in float32, or in float64 where one of them is: rounded once, as far as the dtypes allow."""
    if preds.dtype.is_floating_point == target.dtype.is_floating_point:
        return (
            as_float(preds) - as_float(target)
            if preds.dtype.is_floating_point
            else as_float(preds.long() - target.long())
        )
    if target.dtype.is_floating_point:
        return -difference(target, preds)
    whole = preds.floor()  # a large integer need not fit a float, but the whole part of a float fits an integer
    return as_float(whole.long() - target.long()) + as_float(preds - whole)


def as_float(x: Tensor) -> Tensor:
    """The same numbers in float32, or in float64 where they are that."""
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def contiguous_float(x: Tensor) -> Tensor:
    """The same as floats, in one order of memory."""
    return as_float(x).contiguous()


@dataclass(frozen=True)
class PercentageError(FloatTerm):
    """`|preds - target| / max(|target|, 1.17e-6)`."""

    computed = Computed(Kind.PERCENTAGE, ("preds", "target"))

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        return _error_over(preds, target, target.abs(), lambda: target.abs() * 0.5)


@dataclass(frozen=True)
class SymmetricPercentageError(FloatTerm):
    """`2 |preds - target| / max(|preds| + |target|, 1.17e-6)`."""

    computed = Computed(Kind.SYMMETRIC, ("preds", "target"))

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        left, right = preds.abs(), target.abs()
        return _error_over(preds, target, left + right, lambda: left * 0.5 + right * 0.5).mul_(2)


def _error_over(preds: Tensor, target: Tensor, size: Tensor, half: Callable[[], Tensor]) -> Tensor:
    """`|preds - target| / max(size, 1.17e-6)`, from the halves of both where one of them is too large for a float."""
    error, size = (preds - target).abs_(), size.clamp(min=SMALLEST_TARGET)
    if preds.numel() and can_read(preds) and torch.maximum(error, size).amax().item() < math.inf:
        return error / size
    halved = (preds * 0.5 - target * 0.5).abs_() / half()
    return torch.where(torch.maximum(error, size) < math.inf, error / size, halved)


@dataclass(frozen=True)
class SquaredLogError(FloatTerm):
    """`log((1 + preds) / (1 + target)) ** 2`."""

    needs = "preds and target above -1"

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        plain = pair_terms.squared_log_errors(preds, target) if pair_terms.takes_pair(preds, target) else None
        return self._of_any(preds, target) if plain is None else plain

    def _of_any(self, preds: Tensor, target: Tensor) -> Tensor:
        smaller = torch.minimum(preds, target)
        error, above = (preds - target).abs_(), smaller + 1
        grown = error / above  # over the larger one, it would cancel near -1
        logs = torch.where(grown < math.inf, grown.log1p(), error.log() - above.log())
        return logs.square_().masked_fill_(smaller <= -1, math.nan)


@dataclass(frozen=True)
class LogCosh(FloatTerm):
    """`log(cosh(preds - target))`."""

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        if pair_terms.takes_pair(preds, target):
            return pair_terms.log_coshes(preds, target)
        error = (preds - target).abs_()
        grown = error.clamp(max=1).mul_(0.5).expm1_()
        sine = (grown + grown / (grown + 1)).mul_(0.5)
        near = sine.square_().mul_(2).log1p_()  # cosh(x) = 1 + 2 sinh(x / 2) ** 2
        far = (error * -2).exp_().log1p_().add_(error - math.log(2))
        return torch.where(error < 1, near, far)


@dataclass(frozen=True)
class AbsolutePower(FloatTerm):
    """`|preds - target| ** p`."""

    p: float

    @property
    def computed(self) -> Computed | None:
        is_whole = 1 <= self.p <= _MOST_EXPONENT and self.p == int(self.p)
        return Computed(Kind.POWER, ("preds", "target"), int(self.p)) if is_whole else None

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        return power((preds - target).abs_(), self.p)


@dataclass(frozen=True)
class TweedieDeviance(FloatTerm):
    """The unit deviance of the Tweedie distribution with variance `mean ** power`."""

    power: float

    @property
    def needs(self) -> str:  # type: ignore[override]
        if self.power < 0:
            return "preds above 0"
        return "preds above 0 and target of 0 or more" if self.power < 2 else "preds and target above 0"

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        outside = preds <= 0
        if self.power > 0:
            outside = outside.logical_or_(target < 0 if self.power < 2 else target <= 0)
        deviance = self._deviance(preds, target)
        too_large = deviance.isnan() & (preds.abs() < math.inf) & (target.abs() < math.inf)  # as inf - inf
        return (
            deviance.masked_fill_(too_large, math.inf).masked_fill_(preds == target, 0).masked_fill_(outside, math.nan)
        )

    def _deviance(self, preds: Tensor, target: Tensor) -> Tensor:
        if self.power == 1:
            x = (preds - target) / target
            near = target * _above_log(x)
            far = (preds - target) - target * _log_ratio(preds, target)
            return torch.where(target == 0, preds, torch.where(x.abs() < 0.5, near, far)).mul_(2)
        x = (target - preds) / preds
        if self.power == 2:
            return torch.where(x.abs() < 0.5, _above_log(x), x - _log_ratio(target, preds)).mul_(2)
        if self.power == 3:
            return x * (x / target)
        one, two = 1 - self.power, 2 - self.power
        scale = power(preds, two)
        crossed = target * power(preds, one) if self.power < 2 else target / preds * scale
        far = power(target.clamp(min=0), two) / (one * two) - crossed / one + scale / two
        logs = x.log1p()
        near = scale * _tweedie_series(logs, two)
        return torch.where(logs.abs() * max(1, abs(two)) < 0.5, near, far.clamp(min=0)).mul_(2)


def _tweedie_series(logs: Tensor, two: float) -> Tensor:
    """`(expm1(two l) / two - expm1(l)) / (two - 1)` for small `l`, without cancellation."""
    # Its series is that of the sum over k > 1 of (1 + two + ... + two ** (k - 2)) l ** k / k!.
    last = 20 if logs.dtype == torch.float64 else 12
    series = torch.zeros_like(logs)
    for k in range(last, 1, -1):
        series.mul_(logs).add_(sum(two**j for j in range(k - 1)) / math.factorial(k))
    return series.mul_(logs).mul_(logs)


def power(x: Tensor, exponent: float) -> Tensor:
    """`x ** exponent` for `x` of 0 or more: whole powers by multiplication, the rest through the logarithm."""
    if exponent < 0:
        return power(x, -exponent).reciprocal()
    whole = int(exponent)
    result = (x.log() * (exponent - whole)).exp_() if exponent > whole else None
    square = x
    while whole:
        if whole & 1:
            result = square if result is None else result * square
        whole >>= 1
        if whole:
            square = square * square
    return torch.ones_like(x) if result is None else result


def _above_log(x: Tensor) -> Tensor:
    """`x - log(1 + x)` for `x` from -0.5 to 0.5, without cancellation."""
    # With s = x / (2 + x): log(1 + x) = 2 atanh(s) and x - 2 s = x s.
    s = x.clamp(-0.5, 0.5)
    s = s / (s + 2)
    square = s * s
    series = torch.zeros_like(square)
    for k in range(33 if x.dtype == torch.float64 else 15, 1, -2):
        series.add_(1 / k).mul_(square)
    return (x - 2 * series) * s


def _log_ratio(a: Tensor, b: Tensor) -> Tensor:
    """`log(a / b)`, also where the quotient is too large or too small for a float."""
    ratio = a / b
    fits = (ratio >= torch.finfo(ratio.dtype).tiny) & (ratio < math.inf)
    return torch.where(fits, ratio.log(), a.log() - b.log())


@dataclass(frozen=True)
class Exceeds(FloatTerm):
    """1 where both preds and target (or, with `either`, one of them) reach the threshold, else 0."""

    threshold: float
    either: bool

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        forecast = torch.ge(preds, self.threshold, out=torch.empty_like(preds))
        event = torch.ge(target, self.threshold, out=torch.empty_like(target))
        met = torch.maximum(forecast, event) if self.either else forecast.mul_(event)
        return met.masked_fill_(preds.isnan().logical_or_(target.isnan()), math.nan)


def _summable(preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both, and half of both where their sum might not fit a float; half of a denormal might not, either."""
    large = torch.maximum(preds.abs(), target.abs()) > 1
    return torch.where(large, preds * 0.5, preds), torch.where(large, target * 0.5, target)


@dataclass(frozen=True)
class CanberraTerm(FloatTerm):
    """`|preds - target| / (|preds| + |target|)`; 0 where both are 0."""

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        left, right = _summable(preds, target)
        return ((left - right).abs_() / (left.abs() + right.abs())).masked_fill_(preds == target, 0)


@dataclass(frozen=True)
class FractionalBiasTerm(FloatTerm):
    """`2 (target - preds) / (target + preds)`; 0 where both are equal, infinite where one is the other's negative."""

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        left, right = _summable(preds, target)
        return ((right - left) / (right + left)).mul_(2).masked_fill_(preds == target, 0)


@dataclass(frozen=True)
class NormalizedBiasTerm(FloatTerm):
    """`(target - preds) / target`."""

    needs = "a target that is not 0"

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        return ((target - preds) / target).masked_fill_(target == 0, math.nan)


@dataclass(frozen=True)
class WaveHedgesTerm(FloatTerm):
    """`|preds - target| / max(preds, target)`; 0 where both are equal."""

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        left, right = _summable(preds, target)
        return ((left - right).abs_() / torch.maximum(left, right)).masked_fill_(preds == target, 0)


@dataclass(frozen=True)
class LogAbsoluteError(FloatTerm):
    """`log |preds - target|`; 0 where both are equal, which `Equal` counts."""

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        return (preds - target).abs_().log_().masked_fill_(preds == target, 0)


@dataclass(frozen=True)
class Equal(FloatTerm):
    """1 where preds and target are equal, else 0."""

    rounding = 0.0

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        return torch.eq(preds, target, out=torch.empty_like(preds))


class ValueTerm(FloatTerm):
    """A term of one argument: of `preds`, without a target."""

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return (self, PREDS)

    def _values(self, batch: Batch) -> Tensor:
        preds = column(batch, "preds")
        preds = (preds if preds.dtype == torch.float64 else preds.float()).contiguous()
        return self(preds, preds)


@dataclass(frozen=True)
class LogValue(ValueTerm):
    """`log(preds)`; 0 where it is 0, which `IsZero` counts."""

    needs = "values of 0 or more"

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        return preds.log().masked_fill_(preds == 0, 0)


@dataclass(frozen=True)
class IsZero(ValueTerm):
    """1 where `preds` are 0, else 0."""

    rounding = 0.0

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        return torch.eq(preds, 0, out=torch.empty_like(preds))
