"""The argument `thresholds` of metrics of scores."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.field_values import plain

_MOST_THRESHOLDS = 1 << 23  # of twice as many evenly spaced float32 numbers in [0, 1] some are equal


def rising_thresholds(thresholds: Any) -> tuple[float, ...]:
    """Thresholds as rising float32 numbers; a number n stands for n of them from 0 to 1."""
    if isinstance(thresholds, Tensor | np.ndarray | list | tuple):
        values = tuple(torch.as_tensor(thresholds).detach().cpu().float().reshape(-1).tolist())
    else:
        count = plain("thresholds", thresholds, "int")
        values = (
            tuple(torch.linspace(0, 1, count, dtype=torch.float32, device="cpu").tolist())
            if 1 < count <= _MOST_THRESHOLDS
            else ()
        )
    rising = all(a < b for a, b in pairwise(values))
    if not values or not rising or not 0 <= values[0] <= values[-1] <= 1:
        expected = f"rising numbers in [0, 1], or how many there are, 2 to {_MOST_THRESHOLDS:,}"
        raise ConfigError(describe("thresholds", thresholds, expected, "Give 101 for steps of 0.01"))
    return values
