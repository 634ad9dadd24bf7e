"""Putting the tensors of a file into a model: all is found and made first, then the places are filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from assay.errors import AssayWarning, ConfigError, StateError, describe, warn
from assay.quantize.candidates import QUANTIZED, Candidate, candidates
from assay.quantize.files.description import FileDescription
from assay.quantize.layers import QuantizedWeight
from assay.quantize.packed_weight import PackedWeight

SHOWN = 3
OTHER_MODEL = "Make the model that was saved"


@dataclass
class Replacements:
    """What takes which place in a model.

    Attributes:
        model: the model.
        layers: a layer of it, and what replaces it.
        tensors: the identity of a parameter or buffer -> what replaces it.
    """

    model: nn.Module
    layers: list[tuple[Candidate, nn.Module]] = field(default_factory=list)
    tensors: dict[int, Tensor] = field(default_factory=dict)

    def apply(self) -> None:
        """Fill the places. Nothing here can fail, so that the model is whole before and after."""
        for each, layer in self.layers:
            for place in each.places:
                place.parent._modules[place.attribute] = layer
        for module in self.model.modules():
            for held in (module._parameters, module._buffers):
                for name, old in held.items():
                    if old is not None and id(old) in self.tensors:
                        held[name] = self.tensors[id(old)]  # type: ignore[assignment]


@dataclass(frozen=True)
class Slot:
    """One tensor or quantized weight of a model, under all names that its state has for it."""

    held: Tensor | QuantizedWeight
    names: list[str]

    @property
    def name(self) -> str:
        return self.names[0]


def find_replacements(
    model: nn.Module,
    description: FileDescription,
    weights: Mapping[str, PackedWeight],
    unquantized: Mapping[str, Tensor],
    *,
    where: str,
    strict: bool,
    device: str | torch.device | None,
) -> Replacements:
    """Find the place of everything in a file.

    Args:
        model: where to.
        description: of the file.
        weights: its quantized weights.
        unquantized: its other tensors.
        where: the file, as messages say it.
        strict: raise where the file and the model have not the same names.
        device: where the tensors shall be; None: where the model has them.

    Raises:
        StateError: names, shapes or shared weights are those of another model.
        ConfigError: a layer cannot be replaced.
    """
    slots = _slots(model)
    stored = {name: name for name in (*weights, *unquantized)} | dict(description.tied)
    _check_names(slots, stored, where, strict)
    replacements = Replacements(model)
    layers = _layers(model)
    cache: dict[object, QuantizedWeight | Tensor] = {}
    for slot in slots:
        name = _content(slot, stored, description, where)
        if name in weights:
            kind = description.weights[name]
            weight = QuantizedWeight(weights[name].to(_home(slot.held, device)), kind.dtype)
            shared = cache.setdefault(name, weight)
            assert isinstance(shared, QuantizedWeight)
            replacements.layers += _replaced(slot, layers, shared, where)
        elif name:
            replacements.tensors[id(slot.held)] = _tensor(slot, unquantized[name], cache, name, where, device)
    for _, layer in replacements.layers:
        _take_bias(layer, replacements.tensors)
    _check_values(replacements, where)
    return replacements


def _slots(model: nn.Module) -> list[Slot]:
    result: dict[int, Slot] = {}
    inside: set[str] = set()
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, QuantizedWeight):
            result.setdefault(id(module), Slot(module, [])).names.append(name)
            inside |= {f"{name}.{part}" for part in module.state_dict()}
    for name, held in model.state_dict(keep_vars=True).items():
        if name not in inside and isinstance(held, Tensor):
            result.setdefault(id(held), Slot(held, [])).names.append(name)
    return list(result.values())


def _check_names(slots: Sequence[Slot], stored: Mapping[str, str], where: str, strict: bool) -> None:
    """The file and the model have the same names; a weight that the model shares needs one of its names only."""
    known = {name for slot in slots for name in slot.names}
    extra = sorted(name for name in stored if name not in known)
    missing = sorted(slot.name for slot in slots if not any(name in stored for name in slot.names))
    sides = [(extra, "that the model has not"), (missing, "of the model missing")]
    got = "; ".join(f"{len(names)} tensors {what} ({_some(names)})" for names, what in sides if names)
    if not got:
        return
    expected = "the tensors of the model"
    if strict or len(missing) == len(slots):
        do = f"{OTHER_MODEL}, or pass strict=False to load what both have"
        raise StateError(describe(where, got, expected, do))
    warn(describe(where, got, expected, "Check that they may stay as they were"), AssayWarning)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")


def _content(slot: Slot, stored: Mapping[str, str], description: FileDescription, where: str) -> str:
    """The name under which the file has what belongs into a slot; empty where it has nothing."""
    named = list(dict.fromkeys(stored[name] for name in slot.names if name in stored))
    if len({_sums(name, description) for name in named}) > 1:
        got = f"different values for {' and '.join(named)}"
        raise StateError(describe(where, got, "the same, as the model shares them", OTHER_MODEL))
    return named[0] if named else ""


def _sums(name: str, description: FileDescription) -> tuple[object, ...]:
    weight = description.weights.get(name)
    parts = [name] if weight is None else description.parts(name)
    return (weight, *(description.tensors[part] for part in parts))


def _layers(model: nn.Module) -> dict[str, Candidate]:
    """The linear layers and embeddings of a model by all names of their weights."""
    result = {each.module: each for each in candidates(model)[0]}
    named = model.named_modules(remove_duplicate=False)
    return {f"{name}.weight": result[module] for name, module in named if module in result}


def _replaced(
    slot: Slot, layers: Mapping[str, Candidate], weight: QuantizedWeight, where: str
) -> list[tuple[Candidate, nn.Module]]:
    """What replaces the layers that hold a weight."""
    what = f"{where}, {slot.name}"
    holders = {layers[name].module: layers[name] for name in slot.names if name in layers}
    reasons = [f"{name}, which is of no linear layer and no embedding" for name in slot.names if name not in layers]
    quantized = [each for each in holders.values() if isinstance(each.module, QUANTIZED)]
    reasons += [f"{each.name}: {each.why_not}" for each in holders.values() if each.why_not and each not in quantized]
    if reasons:
        raise ConfigError(describe(what, reasons[0], "a layer that can be replaced", "Make the model without it"))
    shapes = {_shape(each) for each in holders.values()}
    if shapes != {weight.shape}:
        shown = " and ".join(map(str, sorted(shapes)))
        raise StateError(describe(what, f"shape {weight.shape}", f"shape {shown} as in the model", OTHER_MODEL))
    return [(each, each.replacement(weight)) for each in holders.values()]


def _shape(each: Candidate) -> tuple[int, int]:
    held = each.module.weight
    return held.shape if isinstance(held, QuantizedWeight) else each.shape


def _take_bias(layer: nn.Module, tensors: Mapping[int, Tensor]) -> None:
    """Give a new layer its new bias; the pass over the model comes to it as well, but knows only what is in places."""
    for held in (layer._parameters, layer._buffers):
        for name, old in held.items():
            if old is not None and id(old) in tensors:
                held[name] = tensors[id(old)]  # type: ignore[assignment]


def _tensor(
    slot: Slot,
    stored: Tensor,
    cache: dict[object, QuantizedWeight | Tensor],
    name: str,
    where: str,
    device: str | torch.device | None,
) -> Tensor:
    """What replaces a parameter or a buffer: the file's values in the file's dtype."""
    held = slot.held
    what = f"{where}, {slot.name}"
    if isinstance(held, QuantizedWeight):
        raise StateError(describe(what, "floats", "a quantized weight as in the model", OTHER_MODEL))
    if isinstance(held, UninitializedParameter | UninitializedBuffer):
        raise ConfigError(describe(what, "a lazy parameter", "one with a shape", "Run one batch, then load"))
    if tuple(held.shape) != tuple(stored.shape):
        got, expected = f"shape {tuple(stored.shape)}", f"shape {tuple(held.shape)} as in the model"
        raise StateError(describe(what, got, expected, OTHER_MODEL))
    if held.is_floating_point() != stored.is_floating_point():
        raise StateError(describe(what, str(stored.dtype), f"{held.dtype} as in the model", OTHER_MODEL))
    value = stored.to(_home(held, device))
    if isinstance(held, nn.Parameter):
        value = nn.Parameter(value, requires_grad=held.requires_grad)
    shared = cache.setdefault((name, type(value)), value)
    assert isinstance(shared, Tensor)
    return shared


def _home(held: Tensor | QuantizedWeight, device: str | torch.device | None) -> torch.device:
    """Where a tensor shall be: as asked for, where it is, or on the CPU."""
    if device is not None:
        return torch.device(device)
    return torch.device("cpu") if held.device == torch.device("meta") else held.device


def _check_values(replacements: Replacements, where: str) -> None:
    """Raise where something of the model would stay without values.

    Raises:
        ConfigError: a parameter or buffer is on the meta device and the file has nothing for it.
    """
    replaced = {module for each, _ in replacements.layers for module in each.module.modules()}
    for name, module in replacements.model.named_modules():
        if module in replaced:
            continue
        for kind in (module._parameters, module._buffers):
            for part, held in kind.items():
                if held is not None and held.is_meta and id(held) not in replacements.tensors:
                    got = f"nothing for {name}.{part}".replace(" .", " ")
                    do = "Make the model with assay.quantize.files.meta_models, which keeps buffers"
                    raise ConfigError(describe(where, got, "values for what is on the meta device", do))
