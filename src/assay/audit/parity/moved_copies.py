"""A program's arguments, copied and on a device."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from assay.errors import InputError, describe


def moved_copy(tree: Any, device: torch.device) -> Any:
    """A copy of a tree, with what lives on a device moved there: the same object in two places stays one object.

    Tensors, modules, optimizers, methods of objects, devices and objects with a method ``to`` are moved, in tuples,
    lists and dictionaries. Raises an InputError where something cannot be copied.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> copied, optimizer = moved_copy((model, torch.optim.SGD(model.parameters())), torch.device("cpu"))
        >>> copied is not model, optimizer.param_groups[0]["params"][0] is copied.weight
        (True, True)
    """
    try:
        copied = copy.deepcopy(tree)
    except Exception as error:
        do = "Pass tensors that are leaves of autograd, and objects that copy.deepcopy can copy"
        got = f"{type(error).__name__}: {error}"
        raise InputError(describe("the arguments", got, "what can be copied", do)) from error
    done: dict[int, Any] = {}
    return tree_map(lambda leaf: _moved(leaf, device, done), copied)


def _moved(leaf: Any, device: torch.device, done: dict[int, Any]) -> Any:
    """One leaf on the device; the same object twice stays one object."""
    if id(leaf) not in done:
        done[id(leaf)] = leaf, _on(leaf, device, done)  # the leaf is kept, so that its id is not given away
    return done[id(leaf)][1]


def _on(leaf: Any, device: torch.device, done: dict[int, Any]) -> Any:
    if isinstance(leaf, nn.Module):
        return leaf.to(device)
    if isinstance(leaf, Tensor):
        return leaf.detach().to(device).requires_grad_(leaf.requires_grad)
    if isinstance(leaf, torch.device):
        return device
    if isinstance(leaf, torch.optim.Optimizer):
        for state in leaf.state.values():
            tensors = {name: value for name, value in state.items() if isinstance(value, Tensor) and name != "step"}
            state.update({name: value.to(device) for name, value in tensors.items()})  # torch keeps "step" on the CPU
        return leaf
    owner = getattr(leaf, "__self__", None)
    if owner is not None and hasattr(leaf, "__func__"):
        return leaf.__func__.__get__(_moved(owner, device, done))
    if callable(getattr(leaf, "to", None)) and not isinstance(leaf, type):
        moved = leaf.to(device)
        return leaf if moved is None else moved
    return leaf
