"""The grid of a group of weights: evenly spaced values, of which the nearest is taken."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.quantize.scheme import Scheme


@dataclass(frozen=True, eq=False)
class Grid:
    """Scales and zeros as they are kept, of shape (N, K / group, 1); symmetric grids have no zeros."""

    scales: Tensor
    zeros: Tensor | None

    def integers(self, grouped: Tensor, scheme: Scheme) -> Tensor:
        """The nearest integers of weights of shape (N, K / group, group): int8 of the same shape."""
        centred = grouped if self.zeros is None else grouped - self.zeros.to(torch.float32)
        return (centred / self.scales.to(torch.float32)).round_().clamp_(scheme.low, scheme.high).to(torch.int8)

    def weights(self, integers: Tensor) -> Tensor:
        """What integers stand for, in float32."""
        wide = integers.to(torch.float32) * self.scales.to(torch.float32)
        return wide if self.zeros is None else wide + self.zeros.to(torch.float32)

    def errors(self, grouped: Tensor, scheme: Scheme) -> Tensor:
        """The sum of squared errors of each group, of shape (N, K / group, 1)."""
        return (self.weights(self.integers(grouped, scheme)) - grouped).square_().sum(-1, keepdim=True)


def nearest(grouped: Tensor, scheme: Scheme, dtype: torch.dtype) -> Grid:
    """The grid from the smallest to the largest weight of each group.

    With a zero: ``scale = (max - min) / (2^bits - 1)``, ``zero = min + 2^(bits-1) · scale``. Without:
    ``scale = max|w| / (2^bits - 1) · 2``.

    Args:
        grouped: float32 of shape (N, K / group, group).
        scheme: of the weight.
        dtype: in which scales and zeros are kept.
    """
    if scheme.symmetric:
        return grid(grouped.abs().amax(-1, keepdim=True) / (scheme.high - scheme.low) * 2, None, grouped, dtype)
    low, high = grouped.amin(-1, keepdim=True), grouped.amax(-1, keepdim=True)
    scales = (high - low) / (scheme.high - scheme.low)
    return grid(scales, low - scheme.low * scales, grouped, dtype)


def grid(scales: Tensor, zeros: Tensor | None, grouped: Tensor, dtype: torch.dtype) -> Grid:
    """A grid as it is kept: rounded to a dtype, and with scales that can be divided by.

    A group whose weights are all equal has no scale. It is given one of 1, and a zero that is that weight.
    """
    kept = scales.to(dtype)
    usable = (kept.to(torch.float32) > torch.finfo(torch.float32).tiny) & kept.isfinite()
    flat = torch.ones_like(kept)
    if zeros is None:
        return Grid(torch.where(usable, kept, flat), None)
    middle = grouped.mean(-1, keepdim=True)
    return Grid(torch.where(usable, kept, flat), torch.where(usable, zeros, middle).to(dtype))
