"""Paths through torch's kernels for 8-bit weights with one scale for each row."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from assay.devices.operators.support import kernel
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
        takes = kernel(integers.device, self.operator)
        assert takes is not None, "why_not() was not asked"
        extra = padded(integers.shape[0], takes.rows) - integers.shape[0]
        values, scales = integers.values(), integers.scales[:, 0].to(dtype)
        if extra:
            values, scales = F.pad(values, (0, 0, 0, extra)), F.pad(scales, (0, extra))
        return values, scales

    def matmul(self, x: Tensor, packed: KernelWeight) -> Tensor:
        y = torch._weight_int8pack_mm(x, *packed.tensors)
        return y if y.shape[1] == packed.shape[0] else y[:, : packed.shape[0]]


class Int8Dynamic(TorchKernel):
    """``aten::_int_mm``: activations rounded to 8 bits row by row, an exact product of integers, then both scales."""

    name = "int8dynamic"
    summary = "torch's product of 8-bit integers, with activations rounded to 8 bits"
    operator = "_int_mm"
    bits = 8
    activations = "int8"

    def tensors(self, integers: PackedWeight, dtype: torch.dtype) -> tuple[Tensor, ...]:
        takes = kernel(integers.device, self.operator)
        assert takes is not None, "why_not() was not asked"
        extra = padded(integers.shape[0], takes.rows) - integers.shape[0]
        return F.pad(integers.values(), (0, 0, 0, extra)) if extra else integers.values(), integers.scales.float().t()

    def matmul(self, x: Tensor, packed: KernelWeight) -> Tensor:
        weight, scales = packed.tensors
        values, row_scales = quantize_rows(x)
        rows = x.shape[0]
        missing = max(padded(rows, 8), LEAST_ROWS + 7) - rows if (_fills_up(x) and _short(rows)) else 0
        sums = torch._int_mm(F.pad(values, (0, 0, 0, missing)) if missing else values, weight.t())
        return sums[:rows, : packed.shape[0]].to(torch.float32).mul_(scales).mul_(row_scales).to(x.dtype)


def _short(rows: int) -> bool:
    return rows < LEAST_ROWS or rows % 8 != 0


def _fills_up(x: Tensor) -> bool:
    takes = kernel(x.device, Int8Dynamic.operator)
    return takes is not None and takes.rows > 1
