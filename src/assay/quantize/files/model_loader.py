"""Putting the tensors of a file into a model: all is found and made first, then the places are filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from assay.errors import AssayWarning, ConfigError, StateError, describe, warn
from assay.quantize.candidates import Candidate, by_weight
from assay.quantize.files.description import FileDescription
from assay.quantize.layers import QUANTIZED, QuantizedWeight
from assay.quantize.packed_weight import PackedWeight

LIMIT = 3
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
            each.install(layer)
        for module in self.model.modules():  # also the new layers, which still have the old biases
            for named in (module._parameters, module._buffers):
                for name, old in named.items():
                    if old is not None and id(old) in self.tensors:
                        named[name] = self.tensors[id(old)]  # type: ignore[assignment]


@dataclass(frozen=True)
class Slot:
    """One tensor or quantized weight of a model, under all names that its state has for it."""

    content: Tensor | QuantizedWeight
    names: list[str]

    @property
    def name(self) -> str:
        return self.names[0]


class ModelLoader:
    """Finds the place of everything in a file.

    Args:
        model: where to.
        description: of the file.
        where: the file, as messages say it.
        device: where the tensors shall be; None: where the model has them.
    """

    def __init__(
        self, model: nn.Module, description: FileDescription, where: str, device: str | torch.device | None
    ) -> None:
        self.model, self.description, self.where, self.device = model, description, where, device
        self._holders: dict[str, Candidate] = {}  # by the names of their weights
        self._shared: dict[object, Tensor] = {}

    def replacements(
        self, weights: Mapping[str, PackedWeight], unquantized: Mapping[str, Tensor], strict: bool
    ) -> Replacements:
        """What takes which place.

        Args:
            weights: the quantized weights of the file.
            unquantized: its other tensors.
            strict: raise where the file and the model have not the same names.

        Raises:
            StateError: names, shapes or shared weights are those of another model.
            ConfigError: a layer cannot be replaced.
        """
        slots = _slots(self.model)
        stored = {name: name for name in (*weights, *unquantized)} | dict(self.description.tied)
        self._check_names(slots, stored, strict)
        self._holders = by_weight(self.model)
        result = Replacements(self.model)
        new: dict[str, QuantizedWeight] = {}
        for slot in slots:
            name = self._content(slot, stored)
            if name in weights:
                weight = QuantizedWeight(weights[name].to(self._home(slot)), self.description.weights[name].dtype)
                result.layers += self._layers(slot, new.setdefault(name, weight))
            elif name:
                result.tensors[id(slot.content)] = self._tensor(slot, name, unquantized[name])
        self._check_values(result)
        return result

    def _check_names(self, slots: Sequence[Slot], stored: Mapping[str, str], strict: bool) -> None:
        """The file and the model have the same names; a weight that the model shares needs one of its names only."""
        known = {name for slot in slots for name in slot.names}
        extra = sorted(name for name in stored if name not in known)
        missing = sorted(slot.name for slot in slots if not any(name in stored for name in slot.names))
        sides = [(extra, "that the model has not"), (missing, "of the model missing")]
        some = [(names, what, ", ".join(names[:LIMIT]) + (", …" if names[LIMIT:] else "")) for names, what in sides]
        got = "; ".join(f"{len(names)} tensors {what} ({shown})" for names, what, shown in some if names)
        expected = "the tensors of the model"
        if got and (strict or len(missing) == len(slots)):
            do = f"{OTHER_MODEL}, or pass strict=False to load what both have"
            raise StateError(describe(self.where, got, expected, do))
        if got:
            warn(describe(self.where, got, expected, "Check that they may stay as they were"), AssayWarning)

    def _content(self, slot: Slot, stored: Mapping[str, str]) -> str:
        """The name under which the file has what belongs into a slot; empty where it has nothing."""
        named = list(dict.fromkeys(stored[name] for name in slot.names if name in stored))
        if len(set(map(self.description.sums, named))) > 1:
            got = f"different values for {' and '.join(named)}"
            raise StateError(describe(self.where, got, "the same, as the model shares them", OTHER_MODEL))
        return named[0] if named else ""

    def _layers(self, slot: Slot, weight: QuantizedWeight) -> list[tuple[Candidate, nn.Module]]:
        """What replaces the layers that hold a weight."""
        where = f"{self.where}, {slot.name}"
        holders = {id(each.module): each for each in map(self._holders.get, slot.names) if each}.values()
        lost = [name for name in slot.names if name not in self._holders]
        reasons = [f"{name}, which is of no linear layer and no embedding" for name in lost]
        floats = [each for each in holders if not isinstance(each.module, QUANTIZED)]
        reasons += [f"{each.name}: {each.why_not}" for each in floats if each.why_not]
        if reasons:
            raise ConfigError(describe(where, reasons[0], "a layer that can be replaced", "Make the model without it"))
        shapes = {each.shape for each in holders}
        if shapes != {weight.shape}:
            shown = " and ".join(map(str, sorted(shapes)))
            raise StateError(describe(where, f"shape {weight.shape}", f"shape {shown} as in the model", OTHER_MODEL))
        return [(each, each.replacement(weight)) for each in holders]

    def _tensor(self, slot: Slot, name: str, stored: Tensor) -> Tensor:
        """What replaces a parameter or a buffer: the file's values in the file's dtype."""
        old, where = slot.content, f"{self.where}, {slot.name}"
        if isinstance(old, QuantizedWeight):
            raise StateError(describe(where, "floats", "a quantized weight as in the model", OTHER_MODEL))
        if isinstance(old, UninitializedParameter | UninitializedBuffer):
            raise ConfigError(describe(where, "a lazy parameter", "one with a shape", "Run one batch, then load"))
        if tuple(old.shape) != tuple(stored.shape):
            got, expected = f"shape {tuple(stored.shape)}", f"shape {tuple(old.shape)} as in the model"
            raise StateError(describe(where, got, expected, OTHER_MODEL))
        if old.is_floating_point() != stored.is_floating_point():
            raise StateError(describe(where, str(stored.dtype), f"{old.dtype} as in the model", OTHER_MODEL))
        value = stored.to(self._home(slot))
        if isinstance(old, nn.Parameter):
            value = nn.Parameter(value, requires_grad=old.requires_grad)
        return self._shared.setdefault((name, type(value)), value)

    def _home(self, slot: Slot) -> torch.device:
        """Where a tensor shall be: as asked for, where it is, or on the CPU."""
        if self.device is not None:
            return torch.device(self.device)
        return torch.device("cpu") if slot.content.device == torch.device("meta") else slot.content.device

    def _check_values(self, replacements: Replacements) -> None:
        """Raise where a parameter or a buffer is on the meta device and the file has nothing for it."""
        replaced = {module for each, _ in replacements.layers for module in each.module.modules()}
        for name, module in self.model.named_modules():
            if module in replaced:
                continue
            for part, old in (*module._parameters.items(), *module._buffers.items()):
                if old is not None and old.is_meta and id(old) not in replacements.tensors:
                    got = f"nothing for {name}.{part}".replace(" .", " ")
                    do = "Make the model with assay.quantize.files.meta_models, which keeps buffers"
                    raise ConfigError(describe(self.where, got, "values for what is on the meta device", do))


def _slots(model: nn.Module) -> list[Slot]:
    result: dict[int, Slot] = {}
    inside: set[str] = set()
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, QuantizedWeight):
            result.setdefault(id(module), Slot(module, [])).names.append(name)
            inside |= {f"{name}.{part}" for part in module.state_dict()}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if name not in inside and isinstance(tensor, Tensor):
            result.setdefault(id(tensor), Slot(tensor, [])).names.append(name)
    return list(result.values())
