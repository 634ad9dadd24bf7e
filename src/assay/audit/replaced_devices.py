"""Another run of a program, in which every other device that it names is the pretended one: more of it is seen."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from assay.audit.hard_coded import is_program
from assay.devices.kinds import BACKENDS, KINDS, PATTERN
from assay.pretend.events import Frame, stack
from assay.pretend.session import PretendDevice
from assay.pretend.torch_patches import Patches, owner_of, stand_in

MEMORY = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
HARMLESS = ("device_count", "empty_cache", *MEMORY)
ANY_FILE = -2  # before the pretend devices' own entry in torch's registry of places: torch/serialization.py


@contextmanager
def replace_devices(pretended: PretendDevice, note: Callable[[str, str, tuple[Frame, ...]], object]) -> Iterator[None]:
    """Let every other device that a program names be the pretended one, so that what comes after it is seen.

    ``.cuda()``, ``device="cuda"``, files with tensors of another device and the like give tensors of the pretended
    device; ``torch.cuda.is_available()`` is true for the program itself, not for libraries. ``note`` is called with the
    kind that was replaced, torch's name of the function ("" for moving or making a tensor), and the lines of Python.
    """
    device, others = pretended.device, sorted({*KINDS} - {pretended.type})
    default, autocast, generator = torch.set_default_device, torch.autocast.__init__, torch.Generator
    scaler = torch.amp.GradScaler.__init__
    entry = (ANY_FILE, lambda storage: None, _restoring(device, others))

    def swap(place: Any, called: str = "") -> Any:
        if not _names(place, others):
            return place
        note(str(place).partition(":")[0], called, stack(sys._getframe(1)))
        return device

    def autocast_there(self: Any, device_type: str = "cuda", *args: Any, **kwargs: Any) -> None:
        autocast(self, torch.device(swap(device_type, "torch.autocast")).type, *args, **kwargs)

    def scaler_there(self: Any, device: str = "cuda", *args: Any, **kwargs: Any) -> None:
        scaler(self, torch.device(swap(device, "torch.amp.GradScaler")).type, *args, **kwargs)

    with Patches() as patches:
        for kind in (each for each in others if hasattr(torch, each)):  # not those of an adapter that is not here
            patches.put(owner_of(KINDS[kind].asked_by), "is_available", lambda: is_program(sys._getframe(1)))
            for name, answer in _answers(pretended).items():
                if hasattr(getattr(torch, kind), name):
                    patches.put(getattr(torch, kind), name, _noting(kind, name, answer, note))
        patches.put(torch, "set_default_device", lambda place: default(swap(place)))
        patches.put(torch, "Generator", stand_in(generator, lambda place: generator(swap(place, "torch.Generator"))))
        patches.put(torch.autocast, "__init__", autocast_there)
        patches.put(torch.amp.GradScaler, "__init__", scaler_there)
        if hasattr(torch.distributed, "init_process_group"):
            there = _over_what_is_here(torch.distributed.init_process_group, pretended.type, note)
            patches.put(torch.distributed, "init_process_group", there)
        torch.serialization._package_registry.insert(0, entry)
        try:
            with _Replacing(swap):
                yield
        finally:
            torch.serialization._package_registry.remove(entry)


def _names(place: Any, kinds: list[str]) -> bool:
    """Whether a device is named, by its kind or with an index."""
    return isinstance(place, torch.device | str) and str(place).partition(":")[0] in kinds


class _Replacing(TorchFunctionMode):
    """Replaces the device in every call of torch's functions that names another."""

    def __init__(self, swap: Callable[..., Any]) -> None:
        super().__init__()
        self._swap = swap

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in KINDS and args and isinstance(args[0], Tensor):
            return args[0].to(self._swap(torch.device(name)), non_blocking=kwargs.get("non_blocking", False))
        if name == "type" and len(args) > 1 and isinstance(args[1], str) and (match := _LEGACY.match(args[1])):
            return args[0].to(self._swap(torch.device(match[1]))).to(getattr(torch, match[2]).dtype)
        if "device" in kwargs:
            kwargs["device"] = self._swap(kwargs["device"])
        return func(
            *(self._swap(each) if name == "to" or not isinstance(each, str) else each for each in args), **kwargs
        )


_LEGACY = re.compile(rf"torch\.({PATTERN})\.(\w+Tensor)$")


def _noting(kind: str, name: str, answer: Callable[..., Any], note: Callable[..., object]) -> Callable[..., Any]:
    """An answer that notes that it was asked for, but for those that need no device to be there."""
    if name in HARMLESS:
        return answer

    def noted(*args: Any, **kwargs: Any) -> Any:
        note(kind, f"torch.{kind}.{name}", stack(sys._getframe(1)))
        return answer(*args, **kwargs)

    return noted


def _answers(pretended: PretendDevice) -> dict[str, Callable[..., Any]]:
    """What ``torch.cuda`` and its kin say and do, as ``torch.accelerator`` does it on the pretended device."""
    accelerator, device = torch.accelerator, pretended.device
    return {
        "device_count": lambda: pretended.count if is_program(sys._getframe(1)) else 0,
        "synchronize": lambda *_: accelerator.synchronize(),
        "current_device": accelerator.current_device_index,
        "set_device": lambda *_: None,
        "device": lambda *_: nullcontext(),
        "get_device_name": lambda *_: f"pretended {device}",
        "get_device_capability": lambda *_: (0, 0),
        **dict.fromkeys(MEMORY, lambda *_: 0),
        "reset_peak_memory_stats": lambda *_: None,
        "empty_cache": lambda *_: None,
        "Event": lambda enable_timing=False, **_: torch.Event(device, enable_timing=enable_timing),
        "Stream": lambda *_, **__: torch.Stream(device),
        "current_stream": lambda *_: accelerator.current_stream(),
        "stream": lambda *_: nullcontext(),
    }


def _over_what_is_here(original: Callable[..., Any], own: str, note: Callable[..., object]) -> Callable[..., Any]:
    """torch.distributed.init_process_group, with the backend of an adapter, else with gloo."""
    here = KINDS[own].backend if KINDS[own].adapter else "gloo"

    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        served = BACKENDS.get(backend, ())
        if served and own not in served:
            note(served[0], "torch.distributed.init_process_group", stack(sys._getframe(1)))
        return original(here if served else backend, *args, **kwargs)

    return init_process_group


def _restoring(device: torch.device, others: list[str]) -> Callable[[Any, str], Any]:
    def restore(storage: Any, location: str) -> Any:
        if not _names(location, others):
            return None
        return torch.serialization.default_restore_location(storage, str(device))  # type: ignore[no-untyped-call]

    return restore
