"""The format ``transformers``: an ordinary folder, with the floats that the quantized weights stand for.

It takes the room of the model before, and every program that reads such folders reads it. Its weights are the values of
the quantized model bit for bit: what the canonical form defines, rounded once to the dtype that the weight had.
"""

from __future__ import annotations

from torch import Tensor

from assay.quantize.files.description import WeightDescription
from assay.quantize.formats.folder_formats import FolderFormat
from assay.quantize.packed_weight import PackedWeight


def _why_not(weight: WeightDescription) -> str:
    if weight.scheme.activations:
        return f"floats cannot say that activations are rounded; choose int{weight.scheme.bits}, without :dynamic"
    return ""


def _tensors(name: str, weight: WeightDescription, packed: PackedWeight) -> dict[str, Tensor]:
    return {name: packed.dequantize(weight.dtype)}


FORMAT = FolderFormat(_why_not, _tensors, lambda weights, skipped: None)
