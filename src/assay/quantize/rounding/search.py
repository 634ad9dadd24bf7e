"""The grid with the smallest squared error, of many that leave out the outermost weights."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.quantize.rounding.grid import Grid, grid, nearest
from assay.quantize.scheme import Scheme

SHRINKS = 24
LEAST = 0.5


def search(grouped: Tensor, scheme: Scheme, dtype: torch.dtype) -> Grid:
    """Shrink the grid of :func:`nearest` step by step, and keep what has the smallest squared error in each group.

    A grid with a zero shrinks from both ends around its middle. A grid of 4 bits or less is then fitted to its
    integers by least squares, once for the best shrink, which no error becomes larger by.

    Args:
        grouped: float32 of shape (N, K / group, group).
        scheme: of the weight.
        dtype: in which scales and zeros are kept.
    """
    best = nearest(grouped, scheme, dtype)
    wide = _wide(best)
    errors = best.errors(grouped, scheme)
    half = (scheme.low + scheme.high) / 2
    for step in range(1, SHRINKS + 1):
        factor = 1 - (1 - LEAST) * step / SHRINKS
        scales = wide[0] * factor
        zeros = None if wide[1] is None else wide[1] + half * (wide[0] - scales)
        best, errors = better(best, errors, grid(scales, zeros, grouped, dtype), grouped, scheme)
    for _ in range(2):
        best, errors = better(best, errors, replacements(best, grouped, scheme, dtype), grouped, scheme)
    return best


def better(best: Grid, errors: Tensor, other: Grid, grouped: Tensor, scheme: Scheme) -> tuple[Grid, Tensor]:
    """Of two grids the better one in each group, and its errors."""
    theirs = other.errors(grouped, scheme)
    wins = theirs < errors
    zeros = None if best.zeros is None or other.zeros is None else torch.where(wins, other.zeros, best.zeros)
    return Grid(torch.where(wins, other.scales, best.scales), zeros), torch.where(wins, theirs, errors)


def replacements(best: Grid, grouped: Tensor, scheme: Scheme, dtype: torch.dtype) -> Grid:
    """The scales and zeros with the least squared error for the integers of a grid."""
    values = best.integers(grouped, scheme).to(torch.float32)
    if best.zeros is None:
        scales = (values * grouped).sum(-1, keepdim=True) / values.square().sum(-1, keepdim=True)
        return grid(scales.nan_to_num_(0.0), None, grouped, dtype)
    middle, centre = values.mean(-1, keepdim=True), grouped.mean(-1, keepdim=True)
    spread = (values - middle).square().sum(-1, keepdim=True)
    scales = ((values - middle) * (grouped - centre)).sum(-1, keepdim=True) / spread
    scales = scales.nan_to_num_(0.0)
    return grid(scales, centre - scales * middle, grouped, dtype)


def _wide(of: Grid) -> tuple[Tensor, Tensor | None]:
    return of.scales.to(torch.float32), None if of.zeros is None else of.zeros.to(torch.float32)
