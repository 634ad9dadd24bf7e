"""A sound device that rounds otherwise: the results of exponentials, quotients and sums of floats are one ulp off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

SHARE = 0.3
"""Of the elements that are rounded otherwise."""
_NAMES = (
    *(
        "exp",
        "expm1",
        "log",
        "log1p",
        "log2",
        "log10",
        "sqrt",
        "rsqrt",
        "_softmax",
        "_log_softmax",
        "div",
        "reciprocal",
    ),
    *(
        "pow",
        "sigmoid",
        "tanh",
        "sin",
        "cos",
        "atan",
        "atan2",
        "acos",
        "asin",
        "erf",
        "sum",
        "mean",
        "mm",
        "bmm",
        "addmm",
    ),
    *("logsumexp", "linalg_vector_norm", "prod", "cumsum", "std", "var"),
)
ROUNDED = {f"aten::{name}{end}" for name in _NAMES for end in ("", "_")}


class OtherRounding(TorchDispatchMode):
    """Inside, floats that a device computes and that are no integers are one ulp larger or smaller, some of them.

    Attributes:
        changed: how many were.
    """

    def __init__(self, device: str, seed: int = 0) -> None:
        super().__init__()
        self._device, self._generator = device, torch.Generator().manual_seed(seed)
        self.changed = 0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        is_float = isinstance(result, Tensor) and result.dtype.is_floating_point
        if is_float and result.device.type == self._device and func._schema.name in ROUNDED:
            values = result.detach().contiguous().to("cpu").clone()
            draws = torch.rand(values.shape, generator=self._generator)
            hit = (draws < SHARE) & values.isfinite() & (values != values.round())
            ends = (torch.full((), end, dtype=values.dtype) for end in (torch.inf, -torch.inf))
            above, below = (torch.nextafter(values, end) for end in ends)
            values = torch.where(hit, torch.where(draws < SHARE / 2, above, below), values)
            self.changed += int(hit.sum())
            result.copy_(values)
        return result
