"""Quantized models in the files of Transformers: ``save_pretrained`` writes them, ``from_pretrained`` reads them.

Transformers knows the format once `register` was called. It is called when a plan is applied to one of its models, and
a program that only reads such folders calls it before ``from_pretrained``: without it Transformers does not know the
quantization, says so in a log, and makes up the weights.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import torch
from torch import nn

from assay.errors import AssayError, MissingDependencyError, StateError, describe
from assay.quantize.files.description import Weight
from assay.quantize.integers import Integers
from assay.quantize.layers import QuantizedEmbedding, QuantizedLinear, QuantizedWeight
from assay.quantize.planning.candidates import Candidate, candidates

METHOD = "assay"
"""The ``quant_method`` in ``config.json``."""


def register() -> None:
    """Let Transformers read and write models that assay quantized; calling it again changes nothing.

    Raises:
        MissingDependencyError: Transformers is not installed.

    Example:
        >>> register()
        >>> from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING
        >>> METHOD in AUTO_QUANTIZER_MAPPING
        True
    """
    _classes()


def mark(model: nn.Module) -> None:
    """Let ``save_pretrained`` of a model of Transformers write its quantized layers; other models stay as they are."""
    package = sys.modules.get("transformers")
    if package is None or not isinstance(model, package.PreTrainedModel):
        return
    config, quantizer = _classes()
    model.hf_quantizer = quantizer(config(weights=weights_of(model)), pre_quantized=True)
    model.quantization_method = METHOD  # type: ignore[assignment]
    model.config.quantization_config = model.hf_quantizer.quantization_config
    model.config._is_quantized = True


def weights_of(model: nn.Module) -> dict[str, dict[str, Any]]:
    """The quantized weights of a model, by the name of the layer, as ``config.json`` lists them."""
    found = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, QuantizedLinear | QuantizedEmbedding):
            weight = module.weight
            kind = "embedding" if isinstance(module, QuantizedEmbedding) else "linear"
            said = Weight(kind, weight.scheme, weight.shape, weight.dtype).to_json()  # type: ignore[arg-type]
            found[name] = said | {"scales": str(weight.scales.dtype).removeprefix("torch.")}
    return found


def make_room(model: nn.Module, weights: dict[str, dict[str, Any]]) -> None:
    """Give a model quantized layers without values, on the meta device, where a folder has quantized weights.

    Args:
        model: the model of the folder's configuration, with its weights on the meta device.
        weights: what `weights_of` gave.

    Raises:
        StateError: the model has no such layers, or the list cannot be read.
    """
    by_place = {
        name: each
        for each in candidates(model)[0]
        for name, module in model.named_modules(remove_duplicate=False)
        if module is each.module
    }
    shared: dict[tuple[int, str], QuantizedWeight] = {}
    for name, said in weights.items():
        where = f"config.json: quantization_config: {name}"
        if name not in by_place:
            raise StateError(describe(where, "a layer that the model does not have", "one that it has", _DO))
        candidate = by_place[name]
        weight = _empty(candidate, said, where)
        held = candidate.module.weight
        weight = shared.setdefault((id(held), str(said)), weight)
        layer = candidate.replacement(weight)
        for place in candidate.places:
            place.parent._modules[place.attribute] = layer


_DO = "Save the model again with save_pretrained"


def _empty(candidate: Candidate, said: dict[str, Any], where: str) -> QuantizedWeight:
    try:
        weight = Weight.from_json(said)
        scales = getattr(torch, said["scales"])
        parts = {entry.name: entry for entry in weight.entries("w", scales)}
    except (AssayError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise StateError(describe(where, f"{said} ({error})", "a quantized weight", _DO)) from error
    if weight.shape != candidate.shape or weight.kind != candidate.kind:
        got = f"{weight.kind} of shape {weight.shape}"
        raise StateError(describe(where, got, f"{candidate.kind} of shape {candidate.shape} as in the model", _DO))
    packed, scale, *zeros = (
        torch.empty(entry.shape, dtype=entry.dtype, device="meta") for entry in parts.values()
    )
    return QuantizedWeight(Integers(packed, scale, zeros[0] if zeros else None, weight.scheme, weight.shape), weight.dtype)


@cache
def _classes() -> tuple[Any, Any]:
    """The configuration and the quantizer, registered with Transformers."""
    try:
        from transformers.quantizers import HfQuantizer, register_quantization_config, register_quantizer
        from transformers.utils.quantization_config import QuantizationConfigMixin
    except ImportError as error:
        purpose = "quantized models in folders of Transformers"
        raise MissingDependencyError("transformers", extra="hf", purpose=purpose) from error

    @register_quantization_config(METHOD)
    class AssayQuantizationConfig(QuantizationConfigMixin):  # type: ignore[misc]
        """Which layers are quantized, and how."""

        def __init__(self, weights: dict[str, Any] | None = None, **_: Any) -> None:
            self.quant_method = METHOD
            self.weights = dict(weights or {})

    @register_quantizer(METHOD)
    class AssayQuantizer(HfQuantizer):  # type: ignore[misc]
        """Makes room for quantized weights before Transformers loads them."""

        def _process_model_before_weight_loading(self, model: Any, **_: Any) -> None:
            make_room(model, self.quantization_config.weights)

        def get_new_dtype(self, converter: Any, param: Any, dtype: Any) -> Any:
            """The dtype of what the model has in that place; scales keep theirs."""
            return super().get_new_dtype(converter, param, dtype)

        def is_serializable(self) -> bool:
            return True

        @property
        def is_trainable(self) -> bool:
            return False

    return AssayQuantizationConfig, AssayQuantizer
