"""Which modules of a model hold weights that can be quantized, and why the others cannot."""

from __future__ import annotations

import inspect
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from assay._records import Record
from assay.errors import ConfigError, describe
from assay.quantize.layers import QUANTIZED, QuantizedEmbedding, QuantizedLinear, QuantizedWeight
from assay.quantize.scheme import Kind

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
CONV1D = ("transformers.pytorch_utils", "Conv1D")
READS = re.compile(r"(?<!isinstance\()\bself\.(\w+)\.weight\b(?!\.(?:dtype|device|shape)\b)")  # these it keeps
BIAS = "bias"
# What hangs on a module and not on its class. The dictionaries themselves move, so that handles still remove hooks.
_HOOKS = [name for name in vars(nn.Module()) if re.search(r"(for|back)ward.*_hook", name)]
IN_THE_MAKING = re.compile(r"__init__|init|reset|tie|load|extra_repr")  # methods that may touch a weight once


Place: TypeAlias = tuple[nn.Module, str]


@dataclass(frozen=True)
class Candidate:
    """One module with a weight that could be integers.

    Attributes:
        name: its first name in the model.
        kind: ``"linear"`` or ``"embedding"``.
        module: the module itself.
        transposed: its weight is ``(in, out)``, as that of ``Conv1D`` in Transformers.
        places: everywhere it hangs: the parents, and their attributes.
        tied: the first names of the other modules that share its weight.
        why_not: why it is skipped; empty where nothing speaks against it.
    """

    name: str
    kind: Kind
    module: nn.Module = field(repr=False)
    transposed: bool
    places: tuple[Place, ...] = field(repr=False)
    tied: tuple[str, ...] = ()
    why_not: str = ""

    @property
    def shape(self) -> tuple[int, int]:
        """``(out, in)``, or ``(rows, width)`` of an embedding; zeros where it is not known yet."""
        if isinstance(self.module, QUANTIZED):
            return self.module.weight.shape
        weight = _weight(self.module)
        if weight is None or isinstance(weight, UninitializedParameter) or weight.dim() != 2:
            return (0, 0)
        rows, columns = weight.shape
        return (columns, rows) if self.transposed else (rows, columns)

    @property
    def dtype(self) -> str:
        """The dtype of its weight, ``"bfloat16"``."""
        weight = _weight(self.module)
        return "" if weight is None else str(weight.dtype).removeprefix("torch.")

    def replacement(self, weight: QuantizedWeight) -> nn.Module:
        """The layer that takes its place: with its bias, its hooks and its mode, and with another weight."""
        old = self.module
        new: nn.Module
        if self.kind == "embedding":
            new = QuantizedEmbedding(weight, getattr(old, "padding_idx", None))
        else:
            new = QuantizedLinear(weight, getattr(old, "bias", None))
        new.train(old.training)
        new.__dict__.update({name: old.__dict__[name] for name in _HOOKS if name in old.__dict__})
        return new

    def install(self, layer: nn.Module) -> None:
        """Put a layer into all of its places."""
        for parent, attribute in self.places:
            parent._modules[attribute] = layer

    @property
    def nbytes(self) -> int:
        """The bytes that its weight takes, or what its weight is computed from."""
        if isinstance(self.module, QUANTIZED):
            return self.module.integers.nbytes
        return sum(_nbytes(parameter) for name, parameter in self.module.named_parameters() if name != BIAS)

    def weight(self) -> Tensor:
        """Its weight as ``(out, in)``, without a gradient."""
        weight = _weight(self.module)
        assert weight is not None, self.name
        return weight.detach().t() if self.transposed else weight.detach()


class Others(Record):
    """Modules of one class that hold parameters and are neither linear layers nor embeddings; or biases of layers."""

    kind: str
    count: int
    nbytes: int


def candidates(model: nn.Module) -> tuple[list[Candidate], list[Others]]:
    """Find the layers whose weights could be integers.

    Args:
        model: any module; its weights may be on the meta device.

    Returns:
        The linear layers and embeddings in the model's order, each with the reason if it must be skipped; and what
        else holds parameters, by class.

    Raises:
        ConfigError: it is no module, or one whose layers cannot be replaced.

    Example:
        >>> model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2), nn.LayerNorm(2))
        >>> found, rest = candidates(model)
        >>> [(each.name, each.kind, each.shape) for each in found]
        [('0', 'embedding', (10, 4)), ('1', 'linear', (2, 4))]
        >>> rest
        [Others(kind='bias', count=1, nbytes=8), Others(kind='LayerNorm', count=1, nbytes=16)]
    """
    _check(model)
    places: dict[nn.Module | None, list[Place]] = defaultdict(list)  # a module that is shared has several
    for parent in model.modules():
        for attribute, child in parent._modules.items():
            places[child].append((parent, attribute))
    named = ((name, module, _kind(module)) for name, module in model.named_modules())
    result = [_candidate(name, module, kind, tuple(places[module])) for name, module, kind in named if kind]
    if result and result[0].module is model:
        do = "Put it into torch.nn.Sequential"
        raise ConfigError(describe("model", f"one layer, {type(model).__name__}", "a model that holds layers", do))
    return _tied(model, result), _others(model, result)


def by_weight(model: nn.Module) -> dict[str, Candidate]:
    """The same layers by all names of their weights."""
    found = {each.module: each for each in candidates(model)[0]}
    named = model.named_modules(remove_duplicate=False)
    return {f"{name}.weight": found[module] for name, module in named if module in found}


def _check(model: nn.Module) -> None:
    if not isinstance(model, nn.Module):
        raise ConfigError(describe("model", type(model).__name__, "a torch.nn.Module", "Pass the model"))
    if isinstance(model, torch.jit.ScriptModule):
        raise ConfigError(describe("model", "a scripted module", "one in Python", "Quantize it before torch.jit"))
    if hasattr(model, "_orig_mod"):
        do = "Quantize the module that was compiled, then compile it again"
        raise ConfigError(describe("model", "a compiled module", "the module itself", do))


def _kind(module: nn.Module) -> Kind | None:
    if isinstance(module, QUANTIZED):
        return "embedding" if isinstance(module, QuantizedEmbedding) else "linear"
    if isinstance(module, nn.Linear) or _is_conv1d(module):
        return "linear"
    return "embedding" if isinstance(module, nn.Embedding) else None


def _is_conv1d(module: nn.Module) -> bool:
    return (type(module).__module__, type(module).__name__) == CONV1D


def _candidate(name: str, module: nn.Module, kind: Kind, places: tuple[Place, ...]) -> Candidate:
    why = _why_not(module) or next((why for place in places if (why := _read_past(place))), "")
    return Candidate(name, kind, module, _is_conv1d(module), places, why_not=why)


def _why_not(module: nn.Module) -> str:
    """Why a module cannot be replaced, from itself alone."""
    if isinstance(module, QUANTIZED):
        return "is quantized already"
    if isinstance(module._parameters.get("weight"), UninitializedParameter):
        return "its shape is not known before the first batch"
    if other := _does_more(module):
        return other
    if isinstance(module, nn.Embedding) and module.max_norm is not None:
        return "max_norm writes into its weight"
    weight = module._parameters.get("weight")
    if weight is None:
        return "its weight is computed anew for each batch (weight_norm, a parametrization)"
    if type(weight.data) is not Tensor and not getattr(weight.data, "is_plain", False):  # of assay.pretend
        return f"its weight is a {type(weight.data).__name__}, which another library handles"
    if weight.dtype not in FLOATS:
        return f"its weight is {str(weight.dtype).removeprefix('torch.')}"
    return "" if weight.numel() else "its weight is empty"


def _does_more(module: nn.Module) -> str:
    """Whether a class, or somebody after it was made, changed what the layer does."""
    if "forward" in vars(module):
        return "its forward was replaced by another library (offloading, a wrapper)"
    for cls in type(module).__mro__:
        if cls in (nn.Linear, nn.Embedding) or (cls.__module__, cls.__name__) == CONV1D:
            return ""
        if cls.__name__.startswith("Parametrized"):
            return "its weight is computed anew for each batch (a parametrization)"
        if set(vars(cls)) - _SAYS_NOTHING:
            return f"{type(module).__name__} does more than the layer that it is made from"
    return ""


_SAYS_NOTHING = {"__module__", "__qualname__", "__doc__", "__init__", "__annotations__", "__firstlineno__"} | {
    "__static_attributes__",
    "__parameters__",
    "__orig_bases__",
    "reset_parameters",
}


def _read_past(place: Place) -> str:
    """Whether the parent multiplies with the weight itself, so that a layer without one would break it."""
    attribute = place[1]
    parent: type = type(place[0])
    reader = _readers(parent).get(attribute)
    return f"{parent.__name__}.{reader} reads {attribute}.weight past the layer" if reader else ""


@cache
def _readers(cls: type) -> dict[str, str]:
    """Attribute -> the method that reads its weight; from the source of the class, where there is one."""
    result: dict[str, str] = {}
    for base in cls.__mro__:
        if base is nn.Module:
            break
        for name, method in vars(base).items():
            if inspect.isfunction(method) and not IN_THE_MAKING.search(name):
                result |= dict.fromkeys(READS.findall(_source(method)), name)
    return result


def _source(method: object) -> str:
    try:
        return inspect.getsource(method)  # type: ignore[arg-type]
    except (OSError, TypeError):  # made at run time: nothing to read
        return ""


def _weight(module: nn.Module) -> Tensor | None:
    weight = module._parameters.get("weight")
    return weight if isinstance(weight, Tensor) else None


def _tied(model: nn.Module, result: list[Candidate]) -> list[Candidate]:
    """The same candidates, each with the names of those that share its weight, be they candidates or not."""
    holders: dict[object, list[str]] = defaultdict(list)
    for name, module in model.named_modules():
        for attribute, parameter in module._parameters.items():
            if parameter is not None:
                holders[_memory(parameter)].append(f"{name}.{attribute}".removeprefix(".").removesuffix(".weight"))
    sharing = ((each, holders.get(_memory(_weight(each.module)), [])) for each in result)
    return [replace(each, tied=tuple(name for name in names if name != each.name)) for each, names in sharing]


def _memory(tensor: Tensor | None) -> object:
    """What two tensors have in common that are the same numbers in the same memory, also on the meta device."""
    if tensor is None or isinstance(tensor, UninitializedParameter) or type(tensor.data) is not Tensor:
        return id(tensor)
    return tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape, tensor.stride()


def _others(model: nn.Module, result: list[Candidate]) -> list[Others]:
    """What else holds parameters, by class, and the biases of the candidates; what is shared counts once."""
    inside = {module for each in result for module in each.module.modules()}
    counted = {id(each) for module in inside for name, each in module._parameters.items() if name != BIAS}
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for module in model.modules():
        kind = BIAS if module in inside else type(module).__name__
        own = [each for each in module._parameters.values() if each is not None and id(each) not in counted]
        if own:
            counted |= {id(each) for each in own}
            counts[kind] += 1
            sizes[kind] += sum(_nbytes(each) for each in own)
    return [Others(kind, count, sizes[kind]) for kind, count in counts.items()]


def _nbytes(tensor: Tensor) -> int:
    return 0 if isinstance(tensor, UninitializedParameter) else tensor.nbytes
