"""Half-quadratic quantization: zeros (or scales) that minimise an error norm that outliers hardly move."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.quantize.rounding.grid import Grid, grid, nearest
from assay.quantize.scheme import Scheme

ROUNDS = 20
NORM = 0.7  # the p of the norm, and the constants below, are the paper's
BETA, GROWTH = 10.0, 1.01


def hqq(grouped: Tensor, scheme: Scheme, dtype: torch.dtype) -> Grid:
    """Start from the nearest grid and move the zero of each group (without zeros: its scale).

    Alternates two closed forms: what of the error counts as an outlier, by shrinkage for the p-norm with p = 0.7, and
    the zero that fits the rest best. Kept is the best of all rounds by that norm, so it never is worse than the nearest
    by it.

    Args:
        grouped: float32 of shape (N, K / group, group).
        scheme: of the weight.
        dtype: in which scales and zeros are kept.

    Source:
        Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models", 2023.
    """
    now = best = nearest(grouped, scheme, dtype)
    least, beta = _norm(now, grouped, scheme), BETA
    for _ in range(ROUNDS):
        values = now.integers(grouped, scheme)
        scales = now.scales.to(torch.float32)
        unit = grouped.abs().mean()  # beta is made for weights of this size
        rest = grouped - _outliers(grouped - now.weights(values), beta / unit.clamp_min(1e-12), unit)
        wide = values.to(torch.float32)
        if now.zeros is None:
            scales = ((wide * rest).sum(-1, keepdim=True) / wide.square().sum(-1, keepdim=True)).nan_to_num_(0.0)
            now = grid(scales, None, grouped, dtype)
        else:
            now = grid(scales, (rest - wide * scales).mean(-1, keepdim=True), grouped, dtype)
        norm = _norm(now, grouped, scheme)
        wins = norm < least
        zeros = None if now.zeros is None or best.zeros is None else torch.where(wins, now.zeros, best.zeros)
        best, least = Grid(torch.where(wins, now.scales, best.scales), zeros), torch.where(wins, norm, least)
        beta *= GROWTH
    return best


def _outliers(error: Tensor, beta: Tensor, unit: Tensor) -> Tensor:
    """Generalised soft thresholding, the proximal point of the p-norm."""
    size = error.abs()
    threshold = (size / unit).clamp_min(1e-8).pow(NORM - 1) / beta
    return error.sign() * (size - threshold).clamp_min(0.0)


def _norm(of: Grid, grouped: Tensor, scheme: Scheme) -> Tensor:
    return (of.weights(of.integers(grouped, scheme)) - grouped).abs_().pow_(NORM).sum(-1, keepdim=True)
