"""The dtypes in which predictions can be made again on the CPU."""

from __future__ import annotations

import torch

DTYPES = {"float32": torch.float32, "float64": torch.float64}
