"""The arithmetic of terms of two tensors of one shape between the logarithms and sums that torch computes: its bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from assay.devices.placement import can_read, is_in_host_memory
from assay.native.library import compiled_function, library
from assay.native.sums import DTYPES

RowSum = Callable[[Tensor], Tensor]
"""`sum_each_row`."""


def takes_pair(x: Tensor, y: Tensor) -> bool:
    """Whether compiled code takes two contiguous tensors: floats of one dtype and shape, in host memory."""
    is_pair = x.dtype == y.dtype and x.shape == y.shape and x.dtype in DTYPES
    return is_pair and is_in_host_memory(x) and can_read(y) and library() is not None


def takes_rows(x: Tensor, y: Tensor) -> bool:
    """The same of two tensors that are known to be in host memory, and of one shape."""
    is_pair = type(x) is type(y) is Tensor and x.dtype == y.dtype and x.dtype in DTYPES
    return is_pair and x.numel() > 0 and library() is not None


def squared_log_errors(preds: Tensor, target: Tensor) -> Tensor | None:
    """`log((1 + preds) / (1 + target)) ** 2`; None where one is not above -1, or a quotient is not finite."""
    growth = torch.empty_like(preds)
    if _step("growths", (preds.numel(),), preds, target, growth):
        return None
    return growth.log1p_().square_()


def log_coshes(preds: Tensor, target: Tensor) -> Tensor:
    """`log(cosh(preds - target))`."""
    near, tail = torch.empty_like(preds), torch.empty_like(preds)
    count = (preds.numel(),)
    is_far = _step("half_errors", count, preds, target, near, tail)
    _step("sines", count, near.expm1_())
    near.log1p_()
    if is_far:
        _step("far_errors", count, preds, target, tail.exp_().log1p_(), near)
    return near


def cosines(x: Tensor, y: Tensor, sum_rows: RowSum) -> Tensor:
    """The cosine of the angle between rows of `(rows, width)`; NaN of rows without direction."""
    rows, width = x.shape
    products, values = x.new_empty(3 * rows, width), x.new_empty(rows)
    _step("scaled_products", x.shape, x, y, products)
    sums = sum_rows(products).view(3, rows)
    sums[0].sqrt_(), sums[1].sqrt_()  # by torch, whose roots are not all rounded to the nearest
    _step("cosines", (rows,), sums, values)
    return values


def divergences(p: Tensor, q: Tensor, sum_rows: RowSum) -> Tensor | None:
    """`p log(p / q)` of the shares of all numbers of `(rows, width)` in their rows; None as `_plain_shares` says."""
    both = _plain_shares(p, q)
    if both is None:
        return None
    ratios = torch.empty_like(p)
    _step("share_ratios", p.shape, sum_rows(both), both, ratios)
    return ratios.log_().mul_(both[: p.shape[0]])


def mean_divergences(p: Tensor, q: Tensor, sum_rows: RowSum) -> Tensor | None:
    """Half of `p log(p / m) + q log(q / m)` of the same shares, with m as their mean."""
    both = _plain_shares(p, q)
    if both is None:
        return None
    logs, terms, far = torch.empty_like(both), torch.empty_like(p), None
    if _step("share_differences", p.shape, sum_rows(both), both, logs):
        far = torch.empty_like(both)
        _step("doubled_shares", (p.numel(),), both, far)
        far.log_()
    _step("mean_divergences", (p.numel(),), both, logs.log1p_(), far, terms)
    return terms


def _plain_shares(p: Tensor, q: Tensor) -> Tensor | None:
    """Both, row after row, where the shares in all rows are normal numbers, and no sum overflows; else None."""
    both = p.new_empty(2 * p.shape[0], p.shape[1])
    return None if _step("copied_shares", (p.numel(), p.shape[1]), p, q, both) else both


def _step(name: str, counts: Sequence[int], *tensors: Tensor | None) -> int:
    """Call a function for the dtype of the first of some tensors, and return what it says."""
    like, addresses = tensors[0], [0 if each is None else each.data_ptr() for each in tensors]
    step = compiled_function(name, 1 + len(counts) + len(addresses))
    found: int = step(like is not None and like.dtype == torch.float64, *counts, *addresses)
    return found
