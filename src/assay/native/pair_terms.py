"""The arithmetic of terms of two tensors of one shape between the logarithms and sums that torch computes: its bits."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.devices.placement import can_read
from assay.native.library import compiled_function, takes
from assay.native.sums import DTYPES


def takes_pair(x: Tensor, y: Tensor) -> bool:
    """Whether compiled code takes two contiguous tensors: floats of one dtype and shape, in host memory."""
    return x.dtype == y.dtype and x.shape == y.shape and can_read(x) and can_read(y) and takes(x, y, dtypes=DTYPES)


def squared_log_errors(preds: Tensor, target: Tensor) -> Tensor | None:
    """`log((1 + preds) / (1 + target)) ** 2`; None where one is not above -1, or a quotient is not finite."""
    growth = torch.empty_like(preds)
    if _step("growths", preds, preds.numel(), preds, target, growth):
        return None
    return growth.log1p_().square_()


def log_coshes(preds: Tensor, target: Tensor) -> Tensor:
    """`log(cosh(preds - target))`."""
    near, tail = torch.empty_like(preds), torch.empty_like(preds)
    count = preds.numel()
    is_far = _step("half_errors", preds, count, preds, target, near, tail)
    _step("sines", preds, count, near.expm1_())
    near.log1p_()
    if is_far:
        _step("far_errors", preds, count, preds, target, tail.exp_().log1p_(), near)
    return near


def have_plain_shares(p: Tensor, q: Tensor) -> bool:
    """Whether the shares of all numbers in the sums of their rows are normal numbers, and no sum overflows."""
    return not any(_step("has_odd_shares", side, side.numel(), side.shape[1], side) for side in (p, q))


def _step(name: str, like: Tensor, *arguments: int | Tensor) -> int:
    """Call a function for the dtype of a tensor, and return what it says."""
    given = [each.data_ptr() if isinstance(each, Tensor) else each for each in arguments]
    found: int = compiled_function(name, 1 + len(given))(like.dtype == torch.float64, *given)
    return found
