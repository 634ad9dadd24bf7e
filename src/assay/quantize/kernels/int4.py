"""Kernels of torch for 4-bit weights in groups: one packing for each kind of device.

All of them compute ``w = (q - 8) · scale + zero`` with the scales and zeros in one tensor of shape (K / group, N, 2).
Their weights differ, and nothing in a packed tensor tells of which kind it is. So packed tensors are made here from the
canonical form when they are needed, and are never stored, moved or believed on another device.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from assay.devices.operators.support import layout_of
from assay.quantize.kernels.base import KernelUse, KernelWeight, TorchKernel, padded
from assay.quantize.packed_weight import PackedWeight
from assay.quantize.scheme import Scheme

SCALE_BYTES = 2


class Int4Kernel(TorchKernel):
    """What torch's kernels for 4 bits have in common."""

    bits = 4

    def tensors(self, integers: PackedWeight, dtype: torch.dtype) -> tuple[Tensor, ...]:
        integers = self.filled_up(integers)
        return self.weight(integers), scales_and_zeros(integers, dtype)

    def weight(self, integers: PackedWeight) -> Tensor:
        """The integers in the layout of the operator."""
        raise NotImplementedError

    def multiply(self, x: Tensor, packed: KernelWeight) -> Tensor:
        weight, scales = packed.tensors
        y: Tensor = getattr(torch.ops.aten, self.operator)(x, weight, packed.scheme.group(packed.shape[1]), scales)
        return y


class Int4Pack(Int4Kernel):
    """``aten::_weight_int4pack_mm`` on cuda, mps and xpu. No operator packs: the layouts are made of the bytes."""

    name = "int4pack"
    summary = "torch's kernel for 4-bit weights"
    operator = "_weight_int4pack_mm"

    def weight(self, integers: PackedWeight) -> Tensor:
        return LAYOUTS[layout_of(integers.device)](integers.packed)

    def obstacle(self, use: KernelUse) -> str:
        layout = layout_of(use.device)
        return super().obstacle(use) or ("" if layout in LAYOUTS else f"its layout on {layout} is not known here")

    def extra_bytes(self, device: str | torch.device, scheme: Scheme, shape: Sequence[int]) -> int:
        rows = self.rows(device, shape[0])
        shares = rows == shape[0] and LAYOUTS.get(layout_of(device)) in (for_mps, for_xpu)
        return _bytes_of_scales(scheme, (rows, shape[1])) + (0 if shares else rows * shape[1] // 2)


class Int4PackCpu(Int4Kernel):
    """``aten::_weight_int4pack_mm_for_cpu``, whose layout depends on the processor's vector instructions."""

    name = "int4pack-cpu"
    summary = "torch's kernel for 4-bit weights on the CPU"
    operator = "_weight_int4pack_mm_for_cpu"

    def weight(self, integers: PackedWeight) -> Tensor:
        unsigned = integers.values().to(torch.int32).add_(8)  # the packing operator takes no other dtype
        return torch._convert_weight_to_int4pack_for_cpu(unsigned, 1)

    def extra_bytes(self, device: str | torch.device, scheme: Scheme, shape: Sequence[int]) -> int:
        rows = padded(shape[0], 16)
        return rows * shape[1] // 2 + _bytes_of_scales(scheme, (rows, shape[1]))


def _bytes_of_scales(scheme: Scheme, shape: Sequence[int]) -> int:
    return shape[0] * shape[1] // scheme.group(shape[1]) * 2 * SCALE_BYTES


def scales_and_zeros(integers: PackedWeight, dtype: torch.dtype) -> Tensor:
    """The scales and zeros as torch's kernels for 4 bits read them, of shape (K / group, N, 2)."""
    zeros = torch.zeros_like(integers.scales) if integers.zeros is None else integers.zeros
    return torch.stack([integers.scales.t(), zeros.t()], -1).to(dtype).contiguous()


def for_mps(packed: Tensor) -> Tensor:
    """The canonical bytes under another shape, which torch wants to be that of CUDA.

    Source:
        pytorch aten/src/ATen/native/mps/operations/Quantized.mm and kernels/Quantized.metal: the packing kernel swaps
        the halves of each byte, of which the first it takes is in the high half; the canonical form has it in the low.
    """
    rows, width = packed.shape[0], packed.shape[1] * 2
    tiles = inner_tiles(width)
    return packed.contiguous().view(torch.int32).view(rows // 8, width // (16 * tiles), 32, tiles // 2)


def for_xpu(packed: Tensor) -> Tensor:
    """The canonical bytes as int32 of shape (N, K / 8).

    Source:
        native_functions.yaml names ``_weight_int4pack_mm_xpu``; intel/torch-xpu-ops ``LinearInt4.cpp`` reads even
        columns from the low half of a byte.
    """
    words: Tensor = packed.contiguous().view(torch.int32)
    return words


def for_cuda(packed: Tensor) -> Tensor:
    """Tiles of 8 rows and 32 columns, as a warp's lanes hold them: int32 of shape (N / 8, K / (16 t), 32, t / 2).

    Lane ``4 r + c`` of a tile has row ``r``, and of its 16 bytes those at ``c``, ``c + 4``, ``c + 8`` and ``c + 12``:
    their even columns are the low half of its word, first come lowest, their odd columns the high half.

    Source:
        pytorch aten/src/ATen/native/cuda/int4mm.cu, ``matrix_to_m16n8k16_Bint4_layout``.
    """
    rows, width = packed.shape[0], packed.shape[1] * 2
    tiles = inner_tiles(width)
    lanes = packed.reshape(rows // 8, 8, width // (16 * tiles), tiles // 2, 4, 4)  # n, r, k, t/2, which byte, c
    even, odd = lanes & 15, lanes >> 4
    word = [half[..., at, :] | (half[..., at + 1, :] << 4) for half in (even, odd) for at in (0, 2)]
    by_lane = torch.stack(word, -1).permute(0, 2, 1, 4, 3, 5).contiguous()  # n, k, r, c, t/2, byte
    return by_lane.view(torch.int32).view(rows // 8, width // (16 * tiles), 32, tiles // 2)


def inner_tiles(width: int) -> int:
    """How many tiles of 16 columns torch's kernel takes at once: as many as divide the row, 8, 4 or 2."""
    return next(tiles for tiles in (8, 4, 2) if width % (16 * tiles) == 0)


LAYOUTS = {"cuda": for_cuda, "mps": for_mps, "xpu": for_xpu}
