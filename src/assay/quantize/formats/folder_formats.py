"""What a format of a Transformers folder stores for a quantized weight, and what its ``config.json`` says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from assay.quantize.files.description import WeightDescription
from assay.quantize.packed_weight import PackedWeight

Weights: TypeAlias = Mapping[str, WeightDescription]
"""Quantized weights by the names that they had as floats: ``model.layers.0.mlp.up_proj.weight``."""


@dataclass(frozen=True)
class FolderFormat:
    """One format that Transformers reads from a folder of safetensors files.

    Attributes:
        why_not: what the format cannot express of a weight, with what to choose instead; empty where it can.
        tensors: the tensors that are stored for a weight, by name. It must not read values, as it is also called with
            a weight on the meta device.
        config: ``quantization_config`` of the folder for its quantized weights and the names of its skipped linear
            layers; ``None`` where the folder is one of floats.
        metadata: further strings for the header of each safetensors file, from the quantized weights and the names of
            all other tensors.
    """

    why_not: Callable[[WeightDescription], str]
    tensors: Callable[[str, WeightDescription, PackedWeight], dict[str, Tensor]]
    config: Callable[[Weights, list[str]], dict[str, Any] | None]
    metadata: Callable[[Weights, list[str]], dict[str, str]] = lambda weights, others: {}


def layer_name(weight: str) -> str:
    """The name of the layer of a weight."""
    return weight.removesuffix(".weight")


def meta_weight(weight: WeightDescription, scales: torch.dtype) -> PackedWeight:
    """A weight without values, from which a format says what it will store."""
    packed, scale, *zeros = (
        torch.empty(entry.shape, dtype=entry.dtype, device="meta") for entry in weight.entries("", scales)
    )
    return PackedWeight(packed, scale, zeros[0] if zeros else None, weight.scheme, weight.shape)


def only_symmetric(weight: WeightDescription) -> str:
    """Why a format of integer zero points cannot hold a weight."""
    if weight.scheme.symmetric:
        return ""
    head, *words = str(weight.scheme).split(":")
    symmetric = ":".join([head, *(word for word in words if word not in ("asym", "dynamic")), "sym"])
    return f"its zero points are integers, and those of {weight.scheme} are floats; choose {symmetric}"


def only_linear(weight: WeightDescription) -> str:
    """Why a format of linear layers cannot hold a weight."""
    do = "remove the pattern embedding:* from the recipe, or pass --exclude"
    return "" if weight.kind == "linear" else f"its readers take no quantized embedding; {do}"
