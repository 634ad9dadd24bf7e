"""Folders of compressed-tensors with integers or float8; :mod:`assay.quantize.formats.compressed_tensors` writes them.

``pack-quantized`` has ``weight_packed`` and ``weight_shape``; the other formats have ``weight`` in int8 or float8. All
have ``weight_scale``, of one number, of one for each row, for each group of a row, or for each block.
``weight_zero_point`` are integers, packed along the rows where the weight is packed; ``weight_g_idx`` is the group of
each input.

    ``w[n, k] = (q[n, k] - z[n, g]) · scale[n, g]``

Source:
    https://github.com/vllm-project/compressed-tensors, ``compressors`` and ``quantization/lifecycle/forward.py`` of
    version 0.20.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from assay.errors import StateError, describe
from assay.quantize.formats.foreign_format import Config, ForeignFormat
from assay.quantize.formats.int32_fields import fields_of

FORMATS = ("pack-quantized", "int-quantized", "naive-quantized", "float-quantized", "mixed-precision")
PARTS = ("weight_scale", "weight_packed", "weight_shape", "weight_zero_point", "weight_g_idx", "weight")


def _groups(config: Config) -> list[Mapping[str, Any]]:
    return [each for each in (config.get("config_groups") or {}).values() if isinstance(each, Mapping)]


def _refused(config: Config) -> str:
    kinds = {config.get("format"), *(group.get("format") for group in _groups(config))} - {None}
    if unknown := sorted(map(str, kinds - set(FORMATS))):
        return f"the format {unknown[0]}, which is not read; those of integers and float8 are"
    return ""


def _note(config: Config) -> str:
    rounds = any(group.get("input_activations") for group in _groups(config))
    return "The model rounds its activations, too, which is left out: weights are measured." if rounds else ""


def _dequantize(parts: Mapping[str, Tensor], config: Config) -> Tensor:
    scales = parts["weight_scale"].to(torch.float32)
    zeros = parts.get("weight_zero_point")
    if "weight_packed" in parts:
        rows, width = (int(size) for size in parts["weight_shape"])
        bits = _bits(parts["weight_packed"], width, config)
        offset = 1 << (bits - 1)
        weight = (fields_of(parts["weight_packed"], bits, width) - offset).to(torch.float32)
        if zeros is not None and zeros.dtype == torch.int32:
            zeros = fields_of(zeros.t(), bits, rows).t() - offset
    else:
        weight = parts["weight"].to(torch.float32)
    index = parts.get("weight_g_idx")
    block = _block(scales, weight, config)
    if zeros is not None:
        weight = weight - _spread(zeros.to(torch.float32), weight, index, block)
    return weight * _spread(scales, weight, index, block)


def _bits(words: Tensor, width: int, config: Config) -> int:
    """How many bits an integer takes: those of the configuration with which a row takes so many words."""
    named = {int(group["weights"]["num_bits"]) for group in _groups(config) if group.get("weights")}
    fitting = [bits for bits in sorted(named) if -(-width * bits // 32) == words.shape[1]]
    if len(fitting) != 1:
        got = f"{words.shape[1]} words for {width} integers, and {sorted(named)} bits in config.json"
        do = "Save it again with a newer compressed-tensors, which packs densely"
        raise StateError(describe("weight_packed", got, "the bits of one group", do))
    return fitting[0]


def _block(scales: Tensor, weight: Tensor, config: Config) -> tuple[int, int]:
    """The rows and columns of a weight that share a scale; the last block of either may be shorter."""
    if scales.dim() < 2:
        return weight.shape[0], weight.shape[1]
    listed = [group["weights"].get("block_structure") for group in _groups(config) if group.get("weights")]
    for rows, columns in filter(None, listed):
        if scales.shape == (-(-weight.shape[0] // rows), -(-weight.shape[1] // columns)):
            return rows, columns
    return weight.shape[0] // scales.shape[0], weight.shape[1] // scales.shape[1]


def _spread(numbers: Tensor, weight: Tensor, index: Tensor | None, block: tuple[int, int]) -> Tensor:
    """Scales or zeros for each integer of a weight."""
    if index is not None and bool((index >= 0).all()):
        return numbers[:, index.long()]
    whole = numbers.reshape(1, 1) if numbers.numel() == 1 else numbers.reshape(numbers.shape[0], -1)
    whole = whole.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)
    return whole[: weight.shape[0], : weight.shape[1]]


FORMAT = ForeignFormat("weight_scale", PARTS, _dequantize, _refused, _note)
