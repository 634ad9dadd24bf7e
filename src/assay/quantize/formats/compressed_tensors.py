"""The format ``compressed-tensors``, which Transformers (through the package of that name) and vLLM read.

``pack-quantized`` stores ``weight_packed``: integer ``k`` of a row takes the bits ``k·bits`` to ``k·bits + bits - 1``
of the row's little-endian words of 32 bits, as ``v + 2^(bits-1)``. That is the canonical form filled up to whole words;
only with 8 bits the offset is added, which turns the highest bit. ``int-quantized`` stores int8 as they are.

Source:
    https://github.com/vllm-project/compressed-tensors, ``compressors/pack_quantized`` and ``quantization`` of version
    0.20.1. Before it packed densely, 3, 5, 6 and 7 bits were laid in another way, so that a reader of another version
    would give other weights without an error: they are refused.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from assay.quantize.files.description import WeightDescription
from assay.quantize.formats.folder_formats import FolderFormat, Weights, layer_name, only_linear, only_symmetric
from assay.quantize.packed_weight import PackedWeight
from assay.quantize.scheme import Scheme

BITS = (2, 4, 8)
DYNAMIC = Scheme(8, None, symmetric=True, activations="int8")
WORD = 4  # bytes


def _why_not(weight: WeightDescription) -> str:
    scheme = weight.scheme
    if scheme.bits not in BITS:
        return f"versions of its readers lay {scheme.bits} bits in different ways; choose int4:sym or int8"
    if scheme.activations and scheme != DYNAMIC:
        return f"activations are rounded with {DYNAMIC} only; choose that, or int{scheme.bits}:sym"
    return only_linear(weight) or only_symmetric(weight)


def _tensors(name: str, weight: WeightDescription, packed: PackedWeight) -> dict[str, Tensor]:
    if weight.scheme.activations:
        return {name: packed.values(), f"{name}_scale": packed.scales}
    fields = packed.packed ^ 0x80 if weight.scheme.bits == 8 else packed.packed
    words = F.pad(fields, (0, -fields.shape[1] % WORD)).contiguous().view(torch.int32)
    shape = torch.tensor(weight.shape, device="cpu")
    return {f"{name}_packed": words, f"{name}_scale": packed.scales, f"{name}_shape": shape}


def _arguments(scheme: Scheme) -> dict[str, Any]:
    """``QuantizationArgs`` of the weights."""
    return {
        "num_bits": scheme.bits,
        "type": "int",
        "symmetric": True,
        "strategy": "group" if scheme.group_size else "channel",
        "group_size": scheme.group_size,
        "dynamic": False,
    }


def _group(scheme: Scheme, layers: list[str]) -> dict[str, Any]:
    """``QuantizationScheme`` of the layers that share a scheme."""
    inputs = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True}
    return {
        "targets": layers,
        "weights": _arguments(scheme),
        "input_activations": inputs if scheme.activations else None,
        "output_activations": None,
        "format": "int-quantized" if scheme.activations else "pack-quantized",
    }


def _config(weights: Weights, skipped: list[str]) -> dict[str, Any]:
    layers: dict[Scheme, list[str]] = {}
    for name, weight in weights.items():
        layers.setdefault(weight.scheme, []).append(layer_name(name))
    groups = [_group(scheme, names) for scheme, names in layers.items()]
    formats = {group["format"] for group in groups}
    return {
        "quant_method": "compressed-tensors",
        "quantization_status": "compressed",
        "format": formats.pop() if len(formats) == 1 else "mixed-precision",
        "config_groups": {f"group_{k}": group for k, group in enumerate(groups)},
        "ignore": skipped,
        "kv_cache_scheme": None,
        "global_compression_ratio": None,
    }


FORMAT = FolderFormat(_why_not, _tensors, _config)
