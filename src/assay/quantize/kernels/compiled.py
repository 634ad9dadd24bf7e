"""The kernel through assay's own compiled code, which multiplies by the canonical bytes in host memory as they are."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.devices.policies import reads_compiled
from assay.native import weights
from assay.quantize.kernels.base import Kernel, KernelUse, KernelWeight
from assay.quantize.kernels.portable import rounded_rows
from assay.quantize.packed_weight import PackedWeight


class Native(Kernel):
    """Integers become floats in registers, sums are float32: nothing is packed, and no dtype is a slow one.

    With activations in bfloat16 it uses the processor's products of pairs of bfloat16, where it has them; the integers
    are exact in bfloat16.
    """

    name = "native"
    summary = "assay's compiled code, on the integers as they are"

    def obstacle(self, use: KernelUse) -> str:
        if not reads_compiled(use.device):
            return f"it reads host memory, not that of {use.device}"
        if f"torch.{use.dtype}" not in map(str, weights.DTYPES):
            return f"it takes float32, bfloat16 and float16, not {use.dtype}"
        return use.scheme.why_not(use.shape) or weights.why_not(use.scheme.group(use.shape[1]))

    def tensors(self, integers: PackedWeight, dtype: torch.dtype) -> tuple[Tensor, ...]:
        packed, *others = integers.tensors
        if integers.scales.dtype == torch.float16:  # which it does not read; float32 holds them exactly
            others = [each.float() for each in others]
        return tuple(tensor.resolve_neg().contiguous() for tensor in (packed, *others))

    def matmul(self, x: Tensor, packed: KernelWeight) -> Tensor:
        if packed.scheme.activations:
            x = rounded_rows(x)
        integers, scales, *zeros = packed.tensors
        call = weights.multiply if _has_memory(x) else _operator
        return call(x, integers, scales, zeros[0] if zeros else None, packed.scheme.bits).to(x.dtype)


def _has_memory(x: Tensor) -> bool:
    """Whether a tensor has values in memory of its own: not while it is traced, nor inside torch.func.vmap."""
    traced = torch.compiler.is_compiling() or type(x) is not Tensor
    return not traced and not torch._C._functorch.is_functorch_wrapped_tensor(x)


@torch.library.custom_op("assay::multiply_quantized", mutates_args=())
def _operator(x: Tensor, packed: Tensor, scales: Tensor, zeros: Tensor | None, bits: int) -> Tensor:
    """The same product as an operator, which torch.compile leaves whole."""
    return weights.multiply(x, packed, scales, zeros, bits)


@_operator.register_fake
def _shape(x: Tensor, packed: Tensor, scales: Tensor, zeros: Tensor | None, bits: int) -> Tensor:
    return x.new_empty((x.shape[0], packed.shape[0]), dtype=torch.float32)
