"""The grid of a group of weights: evenly spaced values, of which the nearest is taken; and three ways to choose it.

Each way takes float32 of shape (N, K / group, group), the scheme, and the dtype in which scales and zeros are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.quantize.scheme import Scheme

SHRINKS, LEAST = 24, 0.5  # steps of the search, and the smallest part of the grid that it tries
ROUNDS = 20  # of HQQ
NORM = 0.7  # the p of its norm; this and the constants below are the paper's
BETA, GROWTH = 10.0, 1.01


@dataclass(frozen=True, eq=False)
class Grid:
    """Scales and zeros as they are kept, of shape (N, K / group, 1); symmetric grids have no zeros."""

    scales: Tensor
    zeros: Tensor | None

    @classmethod
    def of(cls, scales: Tensor, zeros: Tensor | None, grouped: Tensor, dtype: torch.dtype) -> Grid:
        """A grid rounded to a dtype, and with scales that can be divided by.

        A group whose weights are all equal has no scale. It is given one of 1, and a zero that is that weight.
        """
        rounded = scales.to(dtype)
        usable = (rounded.to(torch.float32) > torch.finfo(torch.float32).tiny) & rounded.isfinite()
        scales = torch.where(usable, rounded, torch.ones_like(rounded))
        if zeros is None:
            return cls(scales, None)
        return cls(scales, torch.where(usable, zeros, grouped.mean(-1, keepdim=True)).to(dtype))

    @property
    def wide(self) -> tuple[Tensor, Tensor | None]:
        """Scales and zeros in float32."""
        return self.scales.to(torch.float32), None if self.zeros is None else self.zeros.to(torch.float32)

    def integers(self, grouped: Tensor, scheme: Scheme) -> Tensor:
        """The nearest integers of weights of shape (N, K / group, group): int8 of the same shape."""
        scales, zeros = self.wide
        centred = grouped if zeros is None else grouped - zeros
        return (centred / scales).round_().clamp_(scheme.low, scheme.high).to(torch.int8)

    def weights(self, integers: Tensor) -> Tensor:
        """What integers stand for, in float32."""
        scales, zeros = self.wide
        weights = integers.to(torch.float32) * scales
        return weights if zeros is None else weights + zeros

    def better(
        self, errors: Tensor, other: Grid, grouped: Tensor, scheme: Scheme, norm: Callable[[Tensor], Tensor]
    ) -> tuple[Grid, Tensor]:
        """Of two grids the better one in each group, and its errors by a norm of single errors."""
        theirs = other.errors(grouped, scheme, norm)
        wins = theirs < errors
        zeros = None if self.zeros is None or other.zeros is None else torch.where(wins, other.zeros, self.zeros)
        return Grid(torch.where(wins, other.scales, self.scales), zeros), torch.where(wins, theirs, errors)

    def errors(self, grouped: Tensor, scheme: Scheme, norm: Callable[[Tensor], Tensor]) -> Tensor:
        """The sum of the errors of each group, of shape (N, K / group, 1)."""
        return norm(self.weights(self.integers(grouped, scheme)) - grouped).sum(-1, keepdim=True)


def nearest(grouped: Tensor, scheme: Scheme, dtype: torch.dtype) -> Grid:
    """The grid from the smallest to the largest weight of each group.

    With a zero: ``scale = (max - min) / (2^bits - 1)``, ``zero = min + 2^(bits-1) · scale``. Without:
    ``scale = max|w| / (2^bits - 1) · 2``.
    """
    if scheme.symmetric:
        return Grid.of(grouped.abs().amax(-1, keepdim=True) / (scheme.high - scheme.low) * 2, None, grouped, dtype)
    low, high = grouped.amin(-1, keepdim=True), grouped.amax(-1, keepdim=True)
    scales = (high - low) / (scheme.high - scheme.low)
    return Grid.of(scales, low - scheme.low * scales, grouped, dtype)


def search(grouped: Tensor, scheme: Scheme, dtype: torch.dtype) -> Grid:
    """Shrink the grid of :func:`nearest` step by step, and keep what has the smallest squared error in each group.

    A grid with a zero shrinks from both ends around its middle. A grid of 4 bits or less is then fitted to its
    integers by least squares, once for the best shrink, which no error becomes larger by.
    """
    best = nearest(grouped, scheme, dtype)
    first, middle = best.wide
    errors = best.errors(grouped, scheme, Tensor.square_)
    for step in range(1, SHRINKS + 1):
        scales = first * (1 - (1 - LEAST) * step / SHRINKS)
        zeros = None if middle is None else middle + (scheme.low + scheme.high) / 2 * (first - scales)
        other = Grid.of(scales, zeros, grouped, dtype)
        best, errors = best.better(errors, other, grouped, scheme, Tensor.square_)
    for _ in range(2):
        other = least_squares(best, grouped, scheme, dtype)
        best, errors = best.better(errors, other, grouped, scheme, Tensor.square_)
    return best


def least_squares(best: Grid, grouped: Tensor, scheme: Scheme, dtype: torch.dtype) -> Grid:
    """The scales and zeros with the least squared error for the integers of a grid."""
    values = best.integers(grouped, scheme).to(torch.float32)
    if best.zeros is None:
        scales = (values * grouped).sum(-1, keepdim=True) / values.square().sum(-1, keepdim=True)
        return Grid.of(scales.nan_to_num_(0.0), None, grouped, dtype)
    middle, centre = values.mean(-1, keepdim=True), grouped.mean(-1, keepdim=True)
    spread = (values - middle).square().sum(-1, keepdim=True)
    scales = (((values - middle) * (grouped - centre)).sum(-1, keepdim=True) / spread).nan_to_num_(0.0)
    return Grid.of(scales, centre - scales * middle, grouped, dtype)


def hqq(grouped: Tensor, scheme: Scheme, dtype: torch.dtype) -> Grid:
    """Half-quadratic quantization: start from the nearest grid and move the zero of each group, or else its scale.

    Alternates two closed forms: what of the error counts as an outlier, by shrinkage for the p-norm with p = 0.7, and
    the zero that fits the rest best. The best of all rounds by that norm is taken, so it never is worse than the
    nearest by it.

    Source:
        Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models", 2023.
    """
    now = best = nearest(grouped, scheme, dtype)
    least, beta = now.errors(grouped, scheme, _norm), BETA
    unit = grouped.abs().mean(-1, keepdim=True).clamp_min_(1e-12)  # beta is made for weights of this size
    for _ in range(ROUNDS):
        values = now.integers(grouped, scheme)
        scales, wide = now.scales.to(torch.float32), values.to(torch.float32)
        rest = grouped - _outliers(grouped - now.weights(values), beta / unit, unit)
        if now.zeros is None:
            scales = ((wide * rest).sum(-1, keepdim=True) / wide.square().sum(-1, keepdim=True)).nan_to_num_(0.0)
            now = Grid.of(scales, None, grouped, dtype)
        else:
            now = Grid.of(scales, (rest - wide * scales).mean(-1, keepdim=True), grouped, dtype)
        best, least = best.better(least, now, grouped, scheme, _norm)
        beta *= GROWTH
    return best


def _outliers(error: Tensor, beta: Tensor, unit: Tensor) -> Tensor:
    """Generalised soft thresholding, the proximal point of the p-norm."""
    size = error.abs()
    threshold = (size / unit).clamp_min(1e-8).pow(NORM - 1) / beta
    return error.sign() * (size - threshold).clamp_min(0.0)


def _norm(error: Tensor) -> Tensor:
    return error.abs_().pow_(NORM)


METHODS: dict[str, Callable[[Tensor, Scheme, torch.dtype], Grid]] = {"nearest": nearest, "search": search, "hqq": hqq}
