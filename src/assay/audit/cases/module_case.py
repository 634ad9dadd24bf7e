"""A case for a ``torch.nn.Module``: inputs that were asked for or fit its first layer, and steps forward and back."""

from __future__ import annotations

import copy
import inspect
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from assay.audit.cases.case import Case
from assay.audit.tensor_trees import mapped, seed, tensors_of
from assay.audit.watching.observations import MOVED, USAGES
from assay.errors import ConfigError, describe

ROWS, LENGTH, BATCHES = 4, 16, 3
SIDES = (32, 64, 28, 224)  # of images that are tried
WHOLE = re.compile(r"(?P<shape>\d+(?:x\d+)*)?(?::(?P<dtype>\w+))?")
HOW = "Give the shape of each input by --input, such as --input 8x3x32x32 or --input 8x16:int64"


def case_of(thing: Any, name: str, inputs: Sequence[str] = ()) -> Case:
    """A case for a module, or for a class of modules that can be made without arguments, or why that cannot be run.

    An update is one step: forward, and backward from the sum of the outputs. The value is the output in evaluation
    mode. A module with parameters or buffers is moved to the device first; that it cannot be used otherwise is no bug.

    Args:
        thing: the module, or its class.
        name: what it is called in findings.
        inputs: shapes with dtypes, such as ``"8x3x32x32"`` and ``"8x16:int64"``; guessed by default.

    Raises:
        ConfigError: an input is invalid.
    """
    for text in inputs:
        _tensor(text, None)  # said before anything runs
    try:
        module: nn.Module = _instance(thing)
    except Exception as error:
        todo = "Name an instance in the file instead, or define audit(device) in it"
        got = f"{type(error).__name__}: {error}"
        return Case(name, thing, why_not=describe(f"{name}()", got, "a module without arguments", todo))
    tried = [tuple(_tensor(text, module) for text in inputs)] if inputs else _candidates(module)
    refused = ""
    for batch in tried:
        refused = _refused(thing, batch)
        if not refused:
            usages = (MOVED,) if module.state_dict() else USAGES
            return _case(name, thing, batch, usages)
    got = f"{refused} on the CPU with {' and '.join(inputs) or 'each common layout of inputs'}"
    return Case(name, thing, why_not=describe(f"{name}.forward", got, "inputs that it takes", HOW))


def _case(name: str, thing: Any, batch: tuple[Tensor, ...], usages: tuple[str, ...]) -> Case:
    fed: WeakKeyDictionary[nn.Module, tuple[Any, ...]] = WeakKeyDictionary()

    def update(module: nn.Module, batch: tuple[Any, ...]) -> None:
        fed[module] = batch
        _step(module, batch)

    def compute(module: nn.Module) -> Any:
        return _evaluated(module, fed[module])

    return Case(name, lambda: _instance(thing), (batch,) * BATCHES, update=update, compute=compute, usages=usages)


def _instance(thing: Any) -> Any:
    return thing() if inspect.isclass(thing) else copy.deepcopy(thing)


def _step(module: nn.Module, batch: tuple[Any, ...]) -> None:
    """Forward, and backward where something requires grad."""
    module.zero_grad()
    outputs = tensors_of(module(*batch)).values()
    losses = [output.sum() for output in outputs if output.requires_grad and output.is_floating_point()]
    if losses:
        torch.autograd.backward(losses)


def _evaluated(module: nn.Module, batch: tuple[Any, ...]) -> Any:
    """What it gives when it is evaluated, with the same seed everywhere: dropout draws other numbers on each device."""
    seed()
    training = module.training
    try:
        with torch.no_grad():
            return module.eval()(*batch)
    finally:
        module.train(training)


def _refused(thing: Any, batch: tuple[Any, ...]) -> str:
    """The error of one step on the CPU, or empty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _step(_instance(thing), mapped(batch, Tensor.clone))
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""


def _tensor(text: str, module: nn.Module | None) -> Tensor:
    """An input as it was written: its shape, and its dtype after a colon."""
    match = WHOLE.fullmatch(text)
    dtype = getattr(torch, (match and match["dtype"]) or "float32", None)
    if match is None or not isinstance(dtype, torch.dtype):
        todo = "Write the sizes with x between them, and the dtype after a colon"
        raise ConfigError(describe("input", repr(text), "a shape and a dtype, such as 8x3x32x32 or 8x16:int64", todo))
    shape = tuple(int(size) for size in match["shape"].split("x")) if match["shape"] else ()
    generator = torch.Generator().manual_seed(0)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator, dtype=dtype, device="cpu")
    return torch.randint(
        0, 2 if dtype == torch.bool else _entries(module), shape, generator=generator, device="cpu"
    ).to(dtype)


def _entries(module: nn.Module | None) -> int:
    """How many integers all embeddings of a module know."""
    sizes = [each.num_embeddings for each in module.modules() if isinstance(each, nn.Embedding)] if module else []
    return min(sizes, default=2)


def _candidates(module: nn.Module) -> Iterator[tuple[Tensor, ...]]:
    """Inputs that fit the first layer whose input is known, else common ones; the same for each argument."""
    try:
        parameters = inspect.signature(module.forward).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    needed = [each for each in parameters if each.default is each.empty and each.kind in (0, 1)]
    for text in dict.fromkeys([*_fitting(module), f"{ROWS}x{LENGTH}", f"{ROWS}x3x{SIDES[0]}x{SIDES[0]}", f"{ROWS}"]):
        yield (_tensor(text, module),) * max(1, len(needed))


def _fitting(module: nn.Module) -> Iterator[str]:
    for layer in module.modules():
        shapes = _of_layer(layer)
        if shapes:
            yield from shapes
            return


def _of_layer(layer: nn.Module) -> list[str]:
    """What a layer takes, as inputs are written; empty for layers that take anything."""
    if isinstance(layer, nn.Embedding | nn.EmbeddingBag):
        return [f"{ROWS}x{LENGTH}:int64", f"{ROWS}:int64"]
    if isinstance(layer, nn.Linear):
        return [f"{ROWS}x{layer.in_features}", f"{ROWS}x{LENGTH}x{layer.in_features}", *_image_of(layer.in_features)]
    if isinstance(layer, nn.Conv1d | nn.ConvTranspose1d):
        return [f"{ROWS}x{layer.in_channels}x{side}" for side in SIDES]
    if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
        return [f"{ROWS}x{layer.in_channels}x{side}x{side}" for side in SIDES]
    if isinstance(layer, nn.Conv3d | nn.ConvTranspose3d):
        return [f"{ROWS}x{layer.in_channels}x{side}x{side}x{side}" for side in (16, 32)]
    if isinstance(layer, nn.RNNBase):
        return [f"{ROWS}x{LENGTH}x{layer.input_size}"]
    if isinstance(layer, nn.MultiheadAttention):
        return [f"{ROWS}x{LENGTH}x{layer.embed_dim}"]
    if isinstance(layer, nn.BatchNorm1d | nn.InstanceNorm1d):
        return [f"{ROWS}x{layer.num_features}", f"{ROWS}x{layer.num_features}x{LENGTH}"]
    if isinstance(layer, nn.BatchNorm2d | nn.InstanceNorm2d):
        return [f"{ROWS}x{layer.num_features}x{SIDES[0]}x{SIDES[0]}"]
    if isinstance(layer, nn.LayerNorm):
        return ["x".join(map(str, (ROWS, LENGTH, *layer.normalized_shape)))]
    return []


def _image_of(features: int) -> list[str]:
    """Images that a first linear layer may flatten, such as 28x28."""
    side = round(features**0.5)
    return [f"{ROWS}x1x{side}x{side}"] if side * side == features else []
