"""The path that every device, dtype and scheme has: expand the weight block by block and multiply, in plain torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from assay.devices.policies import chunk_elements
from assay.quantize.integers import Integers, expand, unpack
from assay.quantize.paths.path import Packed, Path
from assay.quantize.scheme import Scheme

LEAST = 2**19  # weights in a block: as many as stay in a core's cache, and no fewer than make calls worth while


class Dequantize(Path):
    """Blocks of rows are expanded to the dtype of the activations and multiplied; the whole weight never is at once."""

    name = "dequantize"
    summary = "expands the weight block by block and multiplies, in plain torch"

    def why_not(
        self,
        device: str | torch.device,
        dtype: str | torch.dtype,
        scheme: Scheme,
        shape: Sequence[int],
        release: str | None = None,
    ) -> str:
        return scheme.why_not(shape)

    def tensors(self, integers: Integers, dtype: torch.dtype) -> tuple[Tensor, ...]:
        zeros = () if integers.zeros is None else (integers.zeros,)
        return (integers.packed, integers.scales, *zeros)

    def matmul(self, x: Tensor, packed: Packed) -> Tensor:
        if packed.scheme.activations:
            x = rounded_rows(x)
        rows, width = packed.shape
        block = max(1, max(LEAST, chunk_elements(x.device)) // width)
        if block >= rows:
            return F.linear(x, _expanded(packed, slice(None), x.dtype))
        starts = range(0, rows, block)
        return torch.cat([F.linear(x, _expanded(packed, slice(at, at + block), x.dtype)) for at in starts], dim=1)


def _expanded(packed: Packed, which: slice, dtype: torch.dtype) -> Tensor:
    integers, scales, *zeros = (tensor[which] for tensor in packed.tensors)
    values = unpack(integers, packed.scheme.bits, packed.shape[1])
    return expand(values, scales, zeros[0] if zeros else None, dtype)


def quantize_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """Round activations to 8 bits, each row with a scale of its own, as dynamic quantization does.

    ``s = max|x| / 127``,  ``v = round(x / s)``; halves go to the even integer.

    Args:
        x: floats of shape (M, K).

    Returns:
        int8 of shape (M, K), and the scales, float32 of shape (M, 1).

    Example:
        >>> quantize_rows(torch.tensor([[0.0, -2.54, 1.0]]))
        (tensor([[   0, -127,   50]], dtype=torch.int8), tensor([[0.0200]]))
    """
    wide = x.to(torch.float32)
    scales = wide.abs().amax(1, keepdim=True) / 127
    safe = torch.where(scales > 0, scales, torch.ones_like(scales))  # a row of zeros
    return (wide / safe).round_().clamp_(-127, 127).to(torch.int8), scales


def rounded_rows(x: Tensor) -> Tensor:
    """The activations that :func:`quantize_rows` leaves, in their dtype."""
    values, scales = quantize_rows(x)
    return (values * scales).to(x.dtype)
