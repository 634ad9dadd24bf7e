"""Where a module is, and its evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


def locations(model: Any) -> set[torch.device]:
    """The devices on which a model has parameters or buffers."""
    if not isinstance(model, nn.Module):
        return set()
    return {tensor.device for tensors in (model.parameters(), model.buffers()) for tensor in tensors}


def in_training_mode(model: Any) -> list[str]:
    """The names of the modules of a model that are in training mode, outer ones first; empty for the model itself."""
    modules = model.named_modules() if isinstance(model, nn.Module) else ()
    return [name for name, module in modules if module.training]


@contextmanager
def evaluation_mode(model: Any) -> Iterator[None]:
    """A module in evaluation mode, and afterwards as it was, whatever happened.

    Every module gets its own mode back: parts of a model in training may have been put into evaluation mode on purpose.
    """
    modes = [(module, module.training) for module in model.modules()] if isinstance(model, nn.Module) else []
    try:
        if modes:
            model.eval()
        yield
    finally:
        for module, mode in modes:
            module.training = mode
