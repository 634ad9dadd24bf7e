"""Paths through torch's kernels for 4-bit weights in groups: one packing for each kind of device.

All of them compute ``w = (q - 8) · scale + zero`` with the scales and zeros in one tensor of shape (K / group, N, 2).
Their weights differ, and nothing in a packed tensor tells of which kind it is. So packed tensors are made here from the
canonical form when they are needed, and are never stored, moved or believed on another device.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from assay.devices.operators.support import kernel, layout_of
from assay.quantize.kernels.base import KernelWeight, TorchKernel, padded
from assay.quantize.packed_weight import PackedWeight
from assay.quantize.scheme import Scheme

SCALE_BYTES = 2


class Int4Pack(TorchKernel):
    """``aten::_weight_int4pack_mm`` on cuda, mps and xpu. No operator packs: the layouts are made of the bytes."""

    name = "int4pack"
    summary = "torch's kernel for 4-bit weights"
    operator = "_weight_int4pack_mm"
    bits = 4

    def tensors(self, integers: PackedWeight, dtype: torch.dtype) -> tuple[Tensor, ...]:
        integers = _filled_up(integers, self.operator)
        return LAYOUTS[layout_of(integers.device)](integers.packed), scales_and_zeros(integers, dtype)

    def matmul(self, x: Tensor, packed: KernelWeight) -> Tensor:
        weight, scales = packed.tensors
        y = torch._weight_int4pack_mm(x, weight, packed.scheme.group(packed.shape[1]), scales)
        return y if y.shape[1] == packed.shape[0] else y[:, : packed.shape[0]]

    def why_not(
        self,
        device: str | torch.device,
        dtype: str | torch.dtype,
        scheme: Scheme,
        shape: Sequence[int],
        release: str | None = None,
    ) -> str:
        unknown = "" if layout_of(device) in LAYOUTS else f"its layout on {layout_of(device)} is not known here"
        return super().why_not(device, dtype, scheme, shape, release) or unknown

    def extra_bytes(self, device: str | torch.device, scheme: Scheme, shape: Sequence[int]) -> int:
        takes = kernel(device, self.operator)
        rows = padded(shape[0], takes.rows if takes else 1)
        shares = rows == shape[0] and LAYOUTS.get(layout_of(device)) in (for_mps, for_xpu)
        return _bytes_of_scales(scheme, (rows, shape[1])) + (0 if shares else rows * shape[1] // 2)


class Int4PackCpu(TorchKernel):
    """``aten::_weight_int4pack_mm_for_cpu``, whose layout depends on the processor's vector instructions."""

    name = "int4pack-cpu"
    summary = "torch's kernel for 4-bit weights on the CPU"
    operator = "_weight_int4pack_mm_for_cpu"
    bits = 4

    def tensors(self, integers: PackedWeight, dtype: torch.dtype) -> tuple[Tensor, ...]:
        integers = _filled_up(integers, self.operator)
        unsigned = integers.values().to(torch.int32).add_(8)  # the packing operator takes no other dtype
        weight = torch._convert_weight_to_int4pack_for_cpu(unsigned, 1)
        return weight, scales_and_zeros(integers, dtype)

    def matmul(self, x: Tensor, packed: KernelWeight) -> Tensor:
        weight, scales = packed.tensors
        y = torch.ops.aten._weight_int4pack_mm_for_cpu(x, weight, packed.scheme.group(packed.shape[1]), scales)
        result: Tensor = y if y.shape[1] == packed.shape[0] else y[:, : packed.shape[0]]
        return result

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


def _filled_up(integers: PackedWeight, operator: str) -> PackedWeight:
    """The integers with rows of zeros at the end, to as many as the kernel takes."""
    takes = kernel(integers.device, operator)
    assert takes is not None, "why_not() was not asked"
    rows = padded(integers.shape[0], takes.rows)
    extra = rows - integers.shape[0]
    if not extra:
        return integers
    packed, scales = F.pad(integers.packed, (0, 0, 0, extra)), F.pad(integers.scales, (0, 0, 0, extra))
    zeros = None if integers.zeros is None else F.pad(integers.zeros, (0, 0, 0, extra))
    return PackedWeight(packed, scales, zeros, integers.scheme, (rows, integers.shape[1]))
