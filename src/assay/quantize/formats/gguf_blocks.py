"""Groups of 32 weights as GGUF's blocks: Q4_0, Q5_0 and Q8_0 without an offset, Q4_1 and Q5_1 with one.

A block holds a scale ``d`` in float16, for the last two a minimum ``m`` in float16, and 32 unsigned integers ``q``:

| block | weight | bytes |
|---|---|---|
| Q4_0 | ``d · (q - 8)`` | d, 16 bytes: byte ``i`` holds integer ``i`` in its low and ``i + 16`` in its high half |
| Q4_1 | ``d · q + m`` | d, m, 16 bytes as above |
| Q5_0, Q5_1 | ``d · (q - 16)``, ``d · q + m`` | d, (m,) 4 bytes with the fifth bits, 16 bytes with the lower four |
| Q8_0 | ``d · q`` | d, 32 int8 |

In the canonical form that is ``q = v + 2^(bits-1)``, ``d = scale`` and ``m = zero - 2^(bits-1) · scale``.

Source:
    https://github.com/ggml-org/ggml, ``src/ggml-common.h`` (``block_q4_0`` and those after it) and
    ``src/ggml-quants.c`` (``dequantize_row_q4_0`` and those after it).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from assay.errors import InvalidValuesError, describe
from assay.quantize.files.description import WeightDescription
from assay.quantize.packed_weight import PackedWeight
from assay.quantize.scheme import Scheme

BLOCK = 32
TYPES = {
    Scheme(4, BLOCK, symmetric=True): "Q4_0",
    Scheme(4, BLOCK, symmetric=False): "Q4_1",
    Scheme(5, BLOCK, symmetric=True): "Q5_0",
    Scheme(5, BLOCK, symmetric=False): "Q5_1",
    Scheme(8, BLOCK, symmetric=True): "Q8_0",
}


def why_not(weight: WeightDescription) -> str:
    """What GGUF cannot express of a weight; empty where it can."""
    if weight.scheme in TYPES:
        return ""
    choices = ", ".join(f"{scheme} ({name})" for scheme, name in TYPES.items())
    return f"its blocks hold {BLOCK} weights of 4, 5 or 8 bits; choose one of {choices}"


def blocks(packed: PackedWeight, name: str) -> tuple[np.ndarray, float]:
    """The rows of a weight as bytes of blocks.

    Returns:
        uint8 of shape (N, K / 32 · bytes of a block), and the largest change of a weight by rounding to float16; 0
        where all scales and minimums are values of float16.

    Raises:
        InvalidValuesError: a scale or a minimum is beyond the largest float16.
    """
    bits, (rows, width) = packed.scheme.bits, packed.shape
    fields = packed.values().reshape(rows, width // BLOCK, BLOCK)
    scales = packed.scales.to(torch.float32)
    minimums = [] if packed.zeros is None else [packed.zeros.to(torch.float32) + packed.scheme.low * scales]
    heads = [_float16(each, name) for each in (scales, *minimums)]
    integers = (
        [fields.view(torch.uint8)] if bits == 8 else _low_bits((fields - packed.scheme.low).to(torch.uint8), bits)
    )
    parts = [*(each.unsqueeze(-1).view(torch.uint8) for each in heads), *integers]
    change = _change(scales, heads[0], (1 << bits) - 1 if minimums else -packed.scheme.low)
    if minimums:
        change += _change(minimums[0], heads[1], 1)
    return torch.cat(parts, -1).flatten(1).numpy(), change


def _low_bits(fields: Tensor, bits: int) -> list[Tensor]:
    """Unsigned integers as nibbles, and the fifth bit of each before them where there is one."""
    half = BLOCK // 2
    nibbles = (fields[..., :half] & 15) | ((fields[..., half:] & 15) << 4)
    if bits == 4:
        return [nibbles]
    fifth = np.packbits((fields >> 4).numpy(), axis=-1, bitorder="little")
    return [torch.from_numpy(fifth), nibbles]


def _float16(numbers: Tensor, name: str) -> Tensor:
    rounded = numbers.to(torch.float16)
    if not bool(rounded.isfinite().all()):
        got, do = f"up to {float(numbers.abs().max()):.3g}", "Choose another format, or leave this layer out"
        raise InvalidValuesError(describe(f"scales of {name}", got, "numbers that float16 holds, up to 65504", do))
    return rounded


def _change(before: Tensor, after: Tensor, times: int) -> float:
    return float((before - after.to(torch.float32)).abs().max()) * times
