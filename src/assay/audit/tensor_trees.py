"""Trees of tensors: what an object keeps, what a batch holds, and how a batch is moved."""

from __future__ import annotations

import random
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from typing import Any

from assay.devices.capabilities import supports

CACHES = ("_computed", "_forward_cache", "_cache")  # of TorchMetrics: values that were read, and no states
SEED = 20
DEPTH = 6  # of objects in objects: wrappers of metrics hold metrics, not deeper


def is_tensor(thing: object) -> bool:
    """Whether it is a tensor; imports no torch to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.Tensor)


def is_module(thing: object) -> bool:
    """Whether it is a ``torch.nn.Module``."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.nn.Module)


def tensors_of(thing: Any) -> dict[str, Any]:
    """Every tensor in an object's attributes, lists and dictionaries, by its path, such as ``"metrics.mean.sum"``.

    Example:
        >>> import torch
        >>> tensors_of({"a": torch.ones(2), "b": [torch.zeros(1), "no tensor"]})
        {'a': tensor([1., 1.]), 'b[0]': tensor([0.])}
    """
    return dict(_walk(thing, "", DEPTH, set()))


def mapped(tree: Any, change: Callable[[Any], Any]) -> Any:
    """The same tree with every tensor changed."""
    if is_tensor(tree):
        return change(tree)
    if isinstance(tree, Mapping):
        return {name: mapped(branch, change) for name, branch in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(branch, change) for branch in tree))
    if isinstance(tree, list | tuple):
        return type(tree)(mapped(branch, change) for branch in tree)
    return tree


def for_device(tree: Any, device: str) -> Any:
    """Inputs for a device: float32 in place of float64 where the device lacks that, as nobody has float64 there."""
    import torch

    if supports(device, "float64").supported is not False:
        return tree
    return mapped(tree, lambda tensor: tensor.float() if tensor.dtype == torch.float64 else tensor)


def _walk(thing: Any, path: str, depth: int, ids: set[int]) -> Iterator[tuple[str, Any]]:
    if is_tensor(thing):
        yield path, thing
        return
    if depth < 0 or id(thing) in ids:
        return
    ids.add(id(thing))
    for name, branch in _branches(thing, root=depth == DEPTH):
        joined = path + name if name.startswith("[") else f"{path}.{name}".lstrip(".")
        yield from _walk(branch, joined, depth - 1, ids)


def _branches(thing: Any, *, root: bool) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, Mapping):
        yield from ((str(name), branch) for name, branch in thing.items())
    elif isinstance(thing, list | tuple | deque):
        yield from ((f"[{index}]", branch) for index, branch in enumerate(thing))
    elif hasattr(thing, "__dict__") and not isinstance(thing, type) and (root or _keeps_state(thing)):
        for name, branch in vars(thing).items():
            if name in CACHES:
                continue
            if name in ("_parameters", "_buffers", "_modules") and isinstance(branch, Mapping):
                yield from branch.items()  # of torch.nn.Module, which keeps its attributes in these
            else:
                yield name, branch


def _keeps_state(thing: Any) -> bool:
    """Other objects (loggers, functions, enumerations) are not looked into."""
    return is_dataclass(thing) or hasattr(thing, "_buffers") or (hasattr(thing, "update") and hasattr(thing, "compute"))


def values_of(tree: Any) -> dict[str, Any]:
    """The numbers of a result by path, tensors or not, as float64 tensors on the CPU (complex ones as pairs).

    Example:
        >>> values_of({"mean": 0.5, "name": "x"})
        {'mean': tensor(0.5000, dtype=torch.float64)}
    """
    import numpy
    import torch

    def number(leaf: Any) -> Any:
        if isinstance(leaf, bool | int | float | numpy.generic | numpy.ndarray):
            return torch.as_tensor(numpy.asarray(leaf), device="cpu")
        return leaf

    tensors = {path: tensor.detach().cpu() for path, tensor in tensors_of(_numbers(tree, number)).items()}
    return {path: (torch.view_as_real(x) if x.is_complex() else x).double() for path, x in tensors.items()}


def _numbers(tree: Any, number: Callable[[Any], Any]) -> Any:
    if isinstance(tree, Mapping):
        return {name: _numbers(branch, number) for name, branch in tree.items()}
    if isinstance(tree, list | tuple):
        return [_numbers(branch, number) for branch in tree]
    return number(tree)


def seed() -> None:
    """Set every seed that a program commonly sets."""
    import torch

    torch.manual_seed(SEED)
    random.seed(SEED)
    with suppress(ImportError):
        import numpy

        numpy.random.seed(SEED)
