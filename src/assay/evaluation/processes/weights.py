"""What tells one model that is shared among processes from another: its classes and its weights."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import torch

from assay.evaluation.processes.reachable import modules_of
from assay.meter.processes.distributed_tensors import is_distributed


def shared_digest(model: Any, digest: Callable[[Any, str], str]) -> str:
    """The digest of the weights and buffers of a model, and of the names of its classes.

    A `DTensor` counts by its values, whoever has them: each is gathered, one after the other, so all processes must
    call this. Other parts count as they are on this process.

    Args:
        model: the model.
        digest: of a tensor, which has a name.
    """
    result = hashlib.sha256(str(getattr(model, "__qualname__", type(model).__qualname__)).encode())
    for module in modules_of(model):
        classes = [each for each in type(module).__mro__ if each.__name__ != "FSDPModule"]
        name = type(module).__qualname__ if len(classes) == len(type(module).__mro__) else classes[1].__qualname__
        result.update(name.encode())
        tensors: list[tuple[str, Any]] = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        for name, tensor in tensors:
            with torch.no_grad():
                whole = tensor.full_tensor() if is_distributed(tensor) else tensor
            result.update(f"{name} {digest(whole.detach(), name)}".encode())
    return result.hexdigest()
