"""The kernel that every device, dtype and scheme has: expand the weight block by block and multiply, in plain torch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from assay.devices.policies import chunk_elements, product_dtype, reads_compiled
from assay.native import weights
from assay.quantize.kernels.base import Kernel, KernelUse, KernelWeight
from assay.quantize.packed_weight import PackedWeight, expand, unpack

LEAST = 2**20  # weights in a block: as many as stay in a core's cache, and no fewer than make calls worth while


class Dequantize(Kernel):
    """Blocks of rows are expanded to the dtype of the activations and multiplied; the whole weight never is at once."""

    name = "dequantize"
    summary = "expands the weight block by block and multiplies, in plain torch"

    def obstacle(self, use: KernelUse) -> str:
        return use.scheme.why_not(use.shape)

    def tensors(self, integers: PackedWeight, dtype: torch.dtype) -> tuple[Tensor, ...]:
        return tuple(tensor.resolve_neg().contiguous() for tensor in integers.tensors)

    def matmul(self, x: Tensor, packed: KernelWeight) -> Tensor:
        dtype = x.dtype
        if packed.scheme.activations:
            x = rounded_rows(x)
        x = x.to(product_dtype(x.device, dtype))
        rows, width = packed.shape
        block = min(rows, max(1, max(LEAST, chunk_elements(x.device)) // width))
        starts = range(0, rows, block)
        scratch = torch.empty((block, width), dtype=x.dtype, device="cpu") if _compiled(x, packed) else None
        parts = [F.linear(x, _expanded(packed, slice(at, at + block), x.dtype, scratch)) for at in starts]
        return (torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]).to(dtype)


def _compiled(x: Tensor, packed: KernelWeight) -> bool:
    """Whether compiled code can expand the weight, to the same bits."""
    plain = not torch.compiler.is_compiling() and type(x) is Tensor and x.dtype in (torch.float32, torch.bfloat16)
    return plain and reads_compiled(x.device) and not weights.why_not(weights.GROUPS, packed.tensors[1].dtype)


def _expanded(packed: KernelWeight, which: slice, dtype: torch.dtype, scratch: Tensor | None) -> Tensor:
    integers, scales, *rest = (tensor[which] for tensor in packed.tensors)
    zeros, bits, width = rest[0] if rest else None, packed.scheme.bits, packed.shape[1]
    if scratch is not None:
        return weights.expand(integers, scales, zeros, bits, scratch[: len(integers)])
    return expand(unpack(integers, bits, width), scales, zeros, dtype)


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
