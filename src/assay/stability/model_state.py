"""What a model carries from call to call, and which of its parts `eval()` does not reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from assay.evaluation.model.every_module import DEEP, OF_TORCH, every_module
from assay.evaluation.nested_batch import digest


def out_of_reach(model: Any) -> dict[str, nn.Module]:
    """The modules that `eval()` and `to()` do not reach, as a plain list or dictionary holds them."""
    reached = {id(each) for each in model.modules()} if isinstance(model, nn.Module) else set()
    return {name: each for name, each in every_module(model).items() if id(each) not in reached}


def fingerprints(model: Any) -> dict[str, str]:
    """By name, a digest of each parameter, buffer and attribute of a model and its modules."""
    found: dict[str, str] = {}
    for name, module in every_module(model).items():
        at = f"{name}." if name else ""
        for kind, tensors in (("parameter", module.named_parameters), ("buffer", module.named_buffers)):
            found |= {f"{kind} '{at}{key}'": _mark(each, 0) for key, each in tensors(recurse=False)}
        for key, value in vars(module).items():
            if key not in OF_TORCH:
                kind = "cache" if isinstance(value, dict) else "attribute"
                found[f"{kind} '{at}{key}'"] = _mark(value, 0)
    return found


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """The names whose digests differ, also those that came or went."""
    return tuple(name for name in {**before, **after} if before.get(name) != after.get(name))


def _mark(value: Any, depth: int) -> str:
    if isinstance(value, Tensor):
        return digest(value)
    if isinstance(value, torch.Generator):
        return digest(value.get_state())
    if isinstance(value, int | float | str | bytes | bool | None):
        return repr(value)
    if depth < DEEP and isinstance(value, Mapping):
        return repr({repr(key): _mark(each, depth + 1) for key, each in value.items()})
    if depth < DEEP and isinstance(value, list | tuple):
        return repr([_mark(each, depth + 1) for each in value])
    if depth < DEEP and isinstance(value, set | frozenset):
        return repr(sorted(_mark(each, depth + 1) for each in value))
    return type(value).__name__
