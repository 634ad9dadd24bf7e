"""Quantized weights to test with, and how far products of them may lie from the plain formula."""

from __future__ import annotations

import torch

from assay.quantize.packed_weight import PackedWeight, pack
from assay.quantize.scheme import Scheme

# Of the norm of the result. bfloat16 rounds weights or results to 8 bits, float16 to 11.
TOLERANCES = {torch.bfloat16: 6e-3, torch.float16: 1e-3, torch.float32: 1e-5}


def integers_of(text, shape, seed=0, dtype=torch.bfloat16) -> PackedWeight:
    """Random integers, with scales and zeros like those of real weights."""
    scheme, generator = Scheme.parse(text), torch.Generator().manual_seed(seed)
    values = torch.randint(scheme.low, scheme.high + 1, shape, generator=generator, dtype=torch.int8)
    groups = (shape[0], shape[1] // scheme.group(shape[1]))
    scales = ((torch.rand(groups, generator=generator) + 0.1) * 0.01).to(dtype)
    zeros = None if scheme.symmetric else (torch.randn(groups, generator=generator) * 0.01).to(dtype)
    return PackedWeight(pack(values, scheme.bits), scales, zeros, scheme, shape)


def apart(found, expected) -> float:
    """The norm of the difference over that of what was expected."""
    expected = expected.detach().cpu().double()
    return float((found.detach().cpu().double() - expected).norm() / expected.norm().clamp_min(1e-30))
