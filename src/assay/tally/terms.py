"""Terms that are computed in floating point, sample by sample, and summed exactly.

Each is written so that its own rounding stays small: differences are taken before logarithms, and nothing is the
difference of two nearly equal results.

On the CPU, `pow` and `sinh` give other bits in the last elements of a tensor, which do not fill a vector register,
than in the others, so a value would depend on how the samples were split. `exp`, `expm1`, `log` and `log1p` do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.tally.sums import FloatTerm

SMALLEST_TARGET = 1.17e-06  # what TorchMetrics divides by where the target is nearer to zero


@dataclass(frozen=True)
class PercentageError(FloatTerm):
    """`|preds - target| / max(|target|, 1.17e-6)`."""

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        return (preds - target).abs_() / target.abs().clamp_(min=SMALLEST_TARGET)


@dataclass(frozen=True)
class SymmetricPercentageError(FloatTerm):
    """`2 |preds - target| / max(|preds| + |target|, 1.17e-6)`."""

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        below = preds.abs().add_(target.abs()).clamp_(min=SMALLEST_TARGET)
        return (preds - target).abs_().div_(below).mul_(2)


@dataclass(frozen=True)
class SquaredLogError(FloatTerm):
    """`log((1 + preds) / (1 + target)) ** 2`."""

    needs = "preds and target above -1"

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        smaller = torch.minimum(preds, target)
        logs = ((preds - target).abs_() / (smaller + 1)).log1p_()  # over the larger one, it would cancel near -1
        return logs.square_().masked_fill_(smaller <= -1, math.nan)


@dataclass(frozen=True)
class LogCosh(FloatTerm):
    """`log(cosh(preds - target))`."""

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
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
        return self._deviance(preds, target).masked_fill_(outside, math.nan)

    def _deviance(self, preds: Tensor, target: Tensor) -> Tensor:
        if self.power == 1:
            deviance = target * _above_log((preds - target) / target, preds / target)
            return torch.where(target == 0, preds, deviance).mul_(2)
        if self.power == 2:
            return _above_log((target - preds) / preds, target / preds).mul_(2)
        one, two = 1 - self.power, 2 - self.power
        above = power(target.clamp(min=0), two) / (one * two)
        return (above - target * power(preds, one) / one + power(preds, two) / two).mul_(2)


def power(x: Tensor, exponent: float) -> Tensor:
    """`x ** exponent` for `x` of 0 or more: whole powers by multiplication, the rest through the logarithm."""
    if exponent < 0:
        return power(x, -exponent).reciprocal_()
    whole = int(exponent)
    result = (x.log() * (exponent - whole)).exp_() if exponent > whole else torch.ones_like(x)
    square = x
    while whole:
        if whole & 1:
            result = result * square
        whole >>= 1
        if whole:
            square = square * square
    return result


def _above_log(x: Tensor, grown: Tensor) -> Tensor:
    """`x - log(1 + x)`, without cancellation near 0 and, as `1 + x` is given, near -1."""
    # With s = x / (2 + x): log(1 + x) = 2 atanh(s) and x - 2 s = x s.
    s = x.clamp(-0.5, 0.5)
    s = s / (s + 2)
    square = s * s
    series = torch.zeros_like(square)
    for k in range(21 if x.dtype == torch.float64 else 9, 1, -2):
        series.add_(1 / k).mul_(square)
    near = (x - 2 * series) * s
    return torch.where(x.abs() < 0.5, near, x - grown.log())


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
