"""Kernels of torch for 8-bit weights with one scale for each row."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from assay.quantize.kernels.base import KernelWeight, TorchKernel, padded
from assay.quantize.kernels.portable import quantize_rows
from assay.quantize.packed_weight import PackedWeight

LEAST_ROWS = 17  # of activations: CUDA's int8 matmul wants more than 16, and a multiple of 8 (aten cuda/Blas.cpp)


class Int8Pack(TorchKernel):
    """``aten::_weight_int8pack_mm``: the canonical integers as they are, multiplied in the dtype of the activations."""

    name = "int8pack"
    summary = "torch's kernel for 8-bit weights"
    operator = "_weight_int8pack_mm"
    bits = 8

    def tensors(self, integers: PackedWeight, dtype: torch.dtype) -> tuple[Tensor, ...]:
        integers = self.filled_up(integers)
        return integers.values(), integers.scales[:, 0].to(dtype)

    def multiply(self, x: Tensor, packed: KernelWeight) -> Tensor:
        return torch._weight_int8pack_mm(x, *packed.tensors)


class Int8Dynamic(TorchKernel):
    """``aten::_int_mm``: activations rounded to 8 bits row by row, an exact product of integers, then both scales."""

    name = "int8dynamic"
    summary = "torch's product of 8-bit integers, with activations rounded to 8 bits"
    operator = "_int_mm"
    bits = 8
    activations = "int8"

    def tensors(self, integers: PackedWeight, dtype: torch.dtype) -> tuple[Tensor, ...]:
        integers = self.filled_up(integers)
        return integers.values(), integers.scales.float().t()

    def multiply(self, x: Tensor, packed: KernelWeight) -> Tensor:
        weight, scales = packed.tensors
        values, row_scales = quantize_rows(x)
        rows = x.shape[0]
        if self.rows(x.device, 1) > 1 and (rows < LEAST_ROWS or rows % 8):
            values = F.pad(values, (0, 0, 0, max(padded(rows, 8), LEAST_ROWS + 7) - rows))
        return torch._int_mm(values, weight.t())[:rows].to(torch.float32).mul_(scales).mul_(row_scales).to(x.dtype)
