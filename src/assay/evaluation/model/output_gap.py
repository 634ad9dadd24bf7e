"""How far two sets of outputs for the same samples are apart, and whether rounding explains that."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.errors import ShapeError, describe

MOST_ULPS = 64.0
"""What is called rounding without a float64 run.

The sound models of the tests, of up to 24 layers, differ by at most 19 ulps between batch sizes; those that depend on
the batch by 6,500 and more.
"""


@dataclass(frozen=True)
class OutputGap:
    """The largest differences of outputs.

    Attributes:
        largest: absolute.
        ulps: in units of the last place of the largest output of the sample.
        flips: samples whose decision differs; None where outputs are no scores of classes.
        sample: the row of the largest difference; None where all outputs are equal.
        rows: how many samples were compared.
    """

    largest: float
    ulps: float
    flips: int | None
    sample: int | None
    rows: int


def gap_between(first: Tensor, second: Tensor, eps: float | None = None) -> OutputGap:
    """How far outputs are apart; NaN equals NaN, and differs from all else by infinity.

    Args:
        first: a row a sample.
        second: of the same samples.
        eps: the spacing of the dtype above 1; that of the coarser of both by default.

    Raises:
        ShapeError: they have other shapes.

    Example:
        >>> gap = gap_between(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0], [2.0, 1.0]]))
        >>> gap.largest, gap.flips, gap.sample
        (2.0, 1, 1)
    """
    if first.shape != second.shape:
        do = "Give outputs one row a sample"
        raise ShapeError(describe("outputs", str(tuple(second.shape)), f"{tuple(first.shape)}, as before", do))
    eps = eps or max(spacing(first.dtype), spacing(second.dtype))
    one, other = (each.reshape(len(each), -1).to(torch.float64) for each in (first, second))
    distance = _distance(one, other)
    by_row = distance.amax(1) if distance.shape[1] else distance.new_zeros(len(distance))
    finite = torch.where(one.isfinite(), one.abs(), 0.0)
    scale = finite.amax(1) if finite.shape[1] else by_row
    ulps = torch.where(by_row == 0, 0.0, by_row / (scale * eps))
    worst = int(ulps.argmax()) if len(ulps) and bool((ulps > 0).any()) else None
    largest = float(by_row.max()) if len(by_row) else 0.0
    return OutputGap(largest, 0.0 if worst is None else float(ulps[worst]), _flips(first, second), worst, len(first))


def _distance(one: Tensor, other: Tensor) -> Tensor:
    equal = (one == other) | (one.isnan() & other.isnan())
    return torch.where(equal, 0.0, (one - other).abs().nan_to_num(math.inf, math.inf))


def _flips(first: Tensor, second: Tensor) -> int | None:
    if first.ndim < 2 or first.shape[-1] < 2:
        return None
    differ = first.argmax(-1) != second.argmax(-1)
    return int(differ.reshape(len(differ), -1).any(1).sum())


def spacing(dtype: torch.dtype) -> float:
    """The distance from 1 to the next number of a dtype; of integers as in float32, where any change is far beyond."""
    return torch.finfo(dtype).eps if dtype.is_floating_point else torch.finfo(torch.float32).eps
