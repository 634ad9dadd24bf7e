"""The format ``torchao``: safetensors with the parts of ``IntxUnpackedToInt8Tensor``, which Transformers assembles.

That class holds any number of bits as int8, with scales and zero points for groups, and runs on every device. It takes
a byte for each weight, also below 8 bits: torchao's packed classes are laid for one kind of device.

Source:
    https://github.com/pytorch/ao, ``quantization/quantize_/workflows/intx/intx_unpacked_to_int8_tensor.py`` and
    ``prototype/safetensors/safetensors_support.py``, version 0.18.0. Every file of a folder carries the metadata of all
    tensors, as Transformers 5 writes it: its reader keeps those of the last file.
"""

from __future__ import annotations

import json
from typing import Any

import torch
from torch import Tensor

from assay.quantize.files.description import WeightDescription
from assay.quantize.formats.folder_formats import FolderFormat, Weights, only_linear, only_symmetric
from assay.quantize.packed_weight import PackedWeight
from assay.quantize.scheme import Scheme

CLASS = "IntxUnpackedToInt8Tensor"


def _why_not(weight: WeightDescription) -> str:
    if weight.scheme.activations:
        return f"it rounds activations with zero points, unlike {weight.scheme}; choose int{weight.scheme.bits}:sym"
    return only_linear(weight) or only_symmetric(weight)


def _tensors(name: str, weight: WeightDescription, packed: PackedWeight) -> dict[str, Tensor]:
    layer, _, own = name.rpartition(".")
    parts = {"qdata": packed.values(), "scale": packed.scales}
    parts["zero_point"] = torch.zeros_like(packed.scales, dtype=torch.int8)
    return {f"{layer}._{own}_{part}": tensor for part, tensor in parts.items()}


def _dtype(name: str) -> dict[str, str]:
    return {"_type": "torch.dtype", "_data": name}


def _attributes(weight: WeightDescription) -> str:
    """What the header of a file says of a weight."""
    data = {
        "target_dtype": _dtype(f"int{weight.scheme.bits}"),
        "block_size": [1, weight.scheme.group(weight.shape[1])],
        "dtype": _dtype(str(weight.dtype).removeprefix("torch.")),
        "activation_quantization": None,
    }
    return json.dumps({"_type": CLASS, "_data": data, "_tensor_data_names": ["qdata", "scale", "zero_point"]})


def _metadata(weights: Weights, others: list[str]) -> dict[str, str]:
    plain = dict.fromkeys(others, json.dumps({"_type": "Tensor"}))
    quantized = {name: _attributes(weight) for name, weight in weights.items()}
    return {**plain, **quantized, "tensor_names": json.dumps([*plain, *quantized])}


def _granularity(scheme: Scheme) -> dict[str, Any]:
    if scheme.group_size is None:
        return {"_type": "PerAxis", "_version": 1, "_data": {"axis": 0}}
    return {"_type": "PerGroup", "_version": 1, "_data": {"group_size": scheme.group_size}}


def _config(weights: Weights, skipped: list[str]) -> dict[str, Any]:
    """It names the first scheme; what each weight is, the files say."""
    scheme = next(iter(weights.values())).scheme
    data = {
        "weight_dtype": _dtype(f"int{scheme.bits}"),
        "granularity": _granularity(scheme),
        "mapping_type": {"_type": "MappingType", "_data": "SYMMETRIC"},
        "scale_dtype": None,
        "intx_packing_format": {"_type": "IntxPackingFormat", "_data": "UNPACKED_TO_INT8"},
        "intx_choose_qparams_algorithm": {"_type": "IntxChooseQParamsAlgorithm", "_data": "AFFINE"},
    }
    return {
        "quant_method": "torchao",
        "quant_type": {"default": {"_type": "IntxWeightOnlyConfig", "_version": 2, "_data": data}},
        "modules_to_not_convert": skipped,
        "include_input_output_embeddings": False,
        "untie_embedding_weights": False,
    }


FORMAT = FolderFormat(_why_not, _tensors, _config, _metadata)
