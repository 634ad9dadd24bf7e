"""Where a module is, and its evaluation mode; of one that several threads use, too."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass
class _PlaceInUse:
    """A module that was moved: where it came from, and how many blocks it is in."""

    module: nn.Module
    home: torch.device
    blocks: int = 0


@contextmanager
def on_device(model: Any, device: torch.device) -> Iterator[None]:
    """A module on a device, and afterwards where it was, also after an error.

    One that lies on several devices stays there. Where several threads do this at once, it goes back when the last of
    them leaves.
    """
    with _lock:
        place = _places.get(id(model))
        homes = locations(model)
        if place is None and len(homes) == 1 and homes != {device}:
            place = _places[id(model)] = _PlaceInUse(model, homes.pop())
        if place is not None:
            place.blocks += 1
    try:
        if place is not None:
            model.to(device)
        yield
    finally:
        if place is not None:
            with _lock:
                place.blocks -= 1
                if not place.blocks:
                    del _places[id(model)]
                    model.to(place.home)


@dataclass
class _ModeInUse:
    """A module in evaluation mode: the mode that it gets back, and how many blocks it is in."""

    module: nn.Module
    training: bool
    blocks: int = 0


_places: dict[int, _PlaceInUse] = {}
_modes: dict[int, _ModeInUse] = {}
_lock = threading.Lock()


@contextmanager
def evaluation_mode(model: Any) -> Iterator[None]:
    """A module in evaluation mode, and afterwards as it was, also after an error.

    Every module gets its own mode back: parts of a model in training may have been put into evaluation mode on purpose.
    Where several threads do this at once, it does so when the last of them leaves.
    """
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    with _lock:
        for module in modules:
            _modes.setdefault(id(module), _ModeInUse(module, module.training)).blocks += 1
    try:
        if modules:
            model.eval()
        yield
    finally:
        with _lock:
            for module in modules:
                mode = _modes[id(module)]
                mode.blocks -= 1
                if not mode.blocks:
                    module.training = mode.training
                    del _modes[id(module)]
