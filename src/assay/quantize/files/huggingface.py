"""Quantized models in the files of Transformers: ``save_pretrained`` writes them, ``from_pretrained`` reads them.

Transformers knows the format after `register_with_transformers`. Applying a plan to one of its models calls it. A
program that only reads such folders calls it before ``from_pretrained``; otherwise Transformers logs a warning about
the unknown quantization and initializes the weights randomly.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from safetensors import safe_open
from torch import nn

from assay.errors import AssayError, StateError, describe
from assay.quantize.candidates import Candidate, candidates
from assay.quantize.files.description import FIELDS, WeightDescription
from assay.quantize.layers import QUANTIZED, QuantizedWeight
from assay.quantize.packed_weight import PackedWeight

METHOD = "assay"
"""The ``quant_method`` in ``config.json``."""
_WHERE = "config.json: weights of quantization_config"
_AGAIN = "Save the model again with save_pretrained"


@dataclass
class LoadState:
    """What `add_empty_layers` leaves to be done after the weights are loaded.

    Attributes:
        tied: layers without a weight, each with the layer whose weight it shares.
        keys: the ties of the model that Transformers must not handle, as ``all_tied_weights_keys`` has them.
        dtypes: of the tensors of the quantized weights, by their names.
    """

    tied: list[tuple[nn.Module, nn.Module]] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    dtypes: dict[str, torch.dtype] = field(default_factory=dict)

    def finish(self, model: nn.Module) -> None:
        """Share the weights that are tied, and check what was loaded.

        Raises:
            StateError: scales or zeros that are not finite.
        """
        for layer, source in self.tied:
            layer.weight = source.weight
        model.all_tied_weights_keys = self.keys | model.all_tied_weights_keys  # type: ignore[operator]
        for name, module in model.named_modules():
            if isinstance(module, QuantizedWeight):
                try:
                    module.integers.check(name)
                except AssayError as error:
                    raise StateError(str(error)) from error


def weights_of(model: nn.Module) -> dict[str, dict[str, Any]]:
    """The quantized weights of a model, by the name of the layer, as ``config.json`` lists them."""
    named = [(name, each) for name, each in model.named_modules(remove_duplicate=False) if isinstance(each, QUANTIZED)]
    targets = getattr(model, "all_tied_weights_keys", {})  # save_pretrained writes the other ones
    first: dict[QuantizedWeight, str] = {}
    result = {}
    for name, layer in sorted(named, key=lambda each: f"{each[0]}.weight" in targets):
        result[name] = WeightDescription.of(layer).to_json() | {"scales": dtype_name(layer.weight.scales.dtype)}
        if first.setdefault(layer.weight, name) != name:
            result[name]["tied"] = first[layer.weight]
    return result


def add_empty_layers(
    model: nn.Module, weights: Mapping[str, Any], dtypes: Mapping[torch.dtype, torch.dtype]
) -> LoadState:
    """Give a model quantized layers without values, on the meta device, where a folder has quantized weights.

    Args:
        model: the model of the folder's configuration, with its weights on the meta device.
        weights: what `weights_of` gave.
        dtypes: dtypes of layers that become others.

    Returns:
        What remains to be done after the weights are loaded.

    Raises:
        StateError: the model has no such layers, or the list cannot be read.
    """
    by_module = {each.module: each for each in candidates(model)[0]}
    places = {name: by_module.get(each) for name, each in model.named_modules(remove_duplicate=False)}
    layers = {name: _layer(name, places.get(name), entry, dtypes) for name, entry in _entries(weights).items()}
    keys: dict[str, str] = getattr(model, "all_tied_weights_keys", {})
    load_state = LoadState(keys={name: keys.pop(name) for name in [*keys] if name.removesuffix(".weight") in layers})
    own = {name: layer for name, layer in layers.items() if "tied" not in weights[name]}
    for name, layer in layers.items():
        candidate = places[name]
        assert candidate is not None
        candidate.install(layer)
        entry = weights[name]
        if name in own:
            tensors = layer.weight.state_dict(prefix=f"{name}.weight.")  # type: ignore[union-attr]
            load_state.dtypes |= {part: tensor.dtype for part, tensor in tensors.items()}
        else:
            if entry["tied"] not in own or entry["shape"] != weights[entry["tied"]]["shape"]:
                raise _refused(name, entry, "it is tied to no weight of its shape")
            load_state.tied.append((layer, own[entry["tied"]]))
            layer._modules["weight"] = None  # until the other one is loaded
    return load_state


def check_files(weights: Mapping[str, Any], files: Iterable[str | os.PathLike[str]]) -> None:
    """Raise where files hold another number of quantized weights than a list: Transformers would make some up.

    Names are not compared, as Transformers renames the weights of some models when it saves them.

    Raises:
        StateError: they do, or the list cannot be read.
    """
    listed = sum("tied" not in entry for entry in _entries(weights).values())
    stored = 0
    for file in files:
        with safe_open(file, framework="pt") as handle:
            stored += sum(name.endswith(f".weight.{FIELDS[0]}") for name in handle.keys())  # noqa: SIM118
    if listed != stored:
        raise StateError(describe(_WHERE, f"{listed} weights", f"the {stored} of the safetensors files", _AGAIN))


def _entries(weights: Any) -> Mapping[str, Mapping[str, Any]]:
    """The list of quantized weights, if it has the form of one."""
    if isinstance(weights, Mapping) and weights and all(isinstance(entry, Mapping) for entry in weights.values()):
        return weights
    raise StateError(describe(_WHERE, repr(weights)[:200], "what is known of each quantized weight, by name", _AGAIN))


def _refused(name: str, entry: object, why: str) -> StateError:
    do = f"{_AGAIN}, and open it with the class that config.json names"
    return StateError(describe(f"{_WHERE}, {name}", f"{entry} ({why})", "a quantized weight of this model", do))


def _layer(
    name: str, candidate: Candidate | None, entry: Mapping[str, Any], dtypes: Mapping[torch.dtype, torch.dtype]
) -> nn.Module:
    """The layer that takes a place, with a weight on the meta device."""
    if candidate is None or candidate.why_not:
        raise _refused(name, entry, candidate.why_not if candidate else "no linear layer or embedding of the model")
    try:
        weight = WeightDescription.from_json(entry)
        entries = weight.entries("", getattr(torch, entry["scales"]))
        packed, scales, *zeros = (torch.empty(each.shape, dtype=each.dtype, device="meta") for each in entries)
        integers = PackedWeight(packed, scales, zeros[0] if zeros else None, weight.scheme, weight.shape)
    except (AssayError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise _refused(name, entry, f"{type(error).__name__}: {error}") from error
    if (weight.kind, weight.shape) != (candidate.kind, candidate.shape):
        raise _refused(name, entry, f"the model has {candidate.kind} of shape {candidate.shape}")
    return candidate.replacement(QuantizedWeight(integers, dtypes.get(weight.dtype, weight.dtype)))


def dtype_name(dtype: torch.dtype) -> str:
    """A dtype as ``config.json`` writes it: ``bfloat16``."""
    return str(dtype).removeprefix("torch.")
