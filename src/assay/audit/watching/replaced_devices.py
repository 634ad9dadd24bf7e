"""Another run of a program, in which every other device that it names is the pretended one: more of it is seen."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from assay.audit.watching.hard_coded import is_program
from assay.audit.watching.observations import NO_BACKEND
from assay.devices.kinds import BACKENDS, HOST, KINDS, PATTERN
from assay.pretend.device_state import memory
from assay.pretend.events import Frame, stack
from assay.pretend.session import PretendDevice
from assay.pretend.torch_patches import Patches, owner_of, stand_in

MEMORY = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
COLLECTIVES = (
    "all_reduce", "broadcast", "reduce", "all_gather", "all_gather_into_tensor", "gather", "scatter",
    "reduce_scatter", "reduce_scatter_tensor", "all_to_all", "all_to_all_single",
)  # fmt: skip
"""Functions of ``torch.distributed`` that take tensors; they write into them without torch's counting it."""
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

    def generator_there(device: Any = "cpu") -> torch.Generator:
        return generator(swap(device, "torch.Generator"))

    with over_gloo(pretended.type), Patches() as patches:
        for kind in (each for each in others if hasattr(torch, each)):  # not those of an adapter that is not here
            patches.put(owner_of(KINDS[kind].asked_by), "is_available", lambda: is_program(sys._getframe(1)))
            for name, stands in _module_of(kind, pretended, swap, note):
                patches.put(getattr(torch, kind), name, stands)
        patches.put(torch, "set_default_device", lambda place: default(swap(place)))
        patches.put(torch, "Generator", stand_in(generator, generator_there))
        patches.put(torch.autocast, "__init__", autocast_there)
        patches.put(threading.Thread, "run", _replacing_run(threading.Thread.run, swap))
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


def _module_of(
    kind: str, pretended: PretendDevice, swap: Callable[..., Any], note: Callable[..., object]
) -> Iterator[tuple[str, Any]]:
    """What stands for the public names of ``torch.cuda`` and its kin."""
    module, answers = getattr(torch, kind), _answers(pretended)
    for name in getattr(module, "__all__", answers):
        original = getattr(module, name, None)
        if name in answers and original is not None:
            yield name, _noting(kind, name, original, answers[name], note)
        elif re.fullmatch(r"[A-Z]\w+Tensor", name):
            yield name, _tensor_type(name, original, lambda: swap(kind))
        elif inspect.isfunction(original) and name != "is_available":
            yield name, _tried(kind, name, original, pretended.type, note)


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
        if name == "type" and len(args) > 1 and (match := _LEGACY.match(_type_name(args[1]))):
            return args[0].to(self._swap(torch.device(match[1]))).to(getattr(torch, match[2]).dtype)
        if "device" in kwargs:
            kwargs["device"] = self._swap(kwargs["device"])
        return func(
            *(self._swap(each) if name == "to" or not isinstance(each, str) else each for each in args), **kwargs
        )


def _replacing_run(original: Callable[..., None], swap: Callable[..., Any]) -> Callable[..., None]:
    """What a thread runs, with devices replaced there, too: a mode of torch is that of one thread."""

    def run(thread: threading.Thread) -> None:
        with _Replacing(swap):
            original(thread)

    return run


_LEGACY = re.compile(rf"torch\.({PATTERN})\.(\w+Tensor)$")


def _type_name(legacy: Any) -> str:
    """``"torch.cuda.LongTensor"``, of that type, too."""
    return f"{legacy.__module__}.{legacy.__name__}" if isinstance(legacy, type) else str(legacy)


def _tensor_type(name: str, original: Any, place: Callable[[], Any]) -> type:
    """``torch.cuda.FloatTensor``, which makes tensors of the device that there is."""

    def make(*args: Any, **kwargs: Any) -> Tensor:
        device = place()
        plain: Tensor = getattr(torch, name)(*args, **kwargs)
        return plain.to(device)

    legacy = stand_in(original, make)
    legacy.__module__ = original.__module__
    return legacy


def _noting(kind: str, name: str, original: Any, answer: Callable[..., Any], note: Callable[..., object]) -> Any:
    """An answer that notes that it was asked for, but for those that need no device to be there."""
    if name in HARMLESS:
        return answer

    def noted(*args: Any, **kwargs: Any) -> Any:
        note(kind, f"torch.{kind}.{name}", stack(sys._getframe(1)))
        return answer(*args, **kwargs)

    return stand_in(original, noted) if isinstance(original, type) else noted


def _tried(kind: str, name: str, original: Callable[..., Any], own: str, note: Callable[..., object]) -> Any:
    """A function that answers without its device where it can; else what the one of the pretended device says."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except (AssertionError, AttributeError, RuntimeError):
            if not is_program(sys._getframe(1)):
                raise
        note(kind, f"torch.{kind}.{name}", stack(sys._getframe(1)))
        there = getattr(getattr(torch, own), name, None)
        return there(*(each for each in args if not _names(each, [kind]))) if inspect.isfunction(there) else None

    return call


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
        "get_device_properties": lambda *_: SimpleNamespace(
            name=f"pretended {device}", total_memory=memory(), major=0, minor=0, multi_processor_count=1
        ),
        "mem_get_info": lambda *_: (memory(), memory()),
        **dict.fromkeys(MEMORY, lambda *_: 0),
        "reset_peak_memory_stats": lambda *_: None,
        "empty_cache": lambda *_: None,
        "Event": lambda enable_timing=False, **_: torch.Event(device, enable_timing=enable_timing),
        "Stream": lambda *_, **__: torch.Stream(device),
        "current_stream": lambda *_: accelerator.current_stream(),
        "stream": lambda *_: nullcontext(),
    }


@contextmanager
def over_gloo(own: str) -> Iterator[None]:
    """Let torch.distributed make groups of ``nccl`` or ``xccl``, the backend of ``own``, in which gloo does the work.

    Tensors of the CPU have no backend there, as in a real one.
    """
    distributed, known = torch.distributed, KINDS[own]
    if not hasattr(distributed, "init_process_group") or known.adapter or not known.backend:
        yield  # the pretended device brings its own, or has none
        return
    make, asked_for = distributed.init_process_group, []

    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        if backend == known.backend:
            asked_for.append(backend)
        here = f"cpu:gloo,{own}:gloo" if backend in (None, known.backend) else backend
        return make(here, *args, **kwargs)

    with Patches() as patches:
        patches.put(distributed, "init_process_group", init_process_group)
        for name in COLLECTIVES:
            patches.put(distributed, name, _of_devices(getattr(distributed, name), asked_for))
        yield


def _of_devices(collective: Callable[..., Any], asked_for: list[str]) -> Callable[..., Any]:
    """A collective that refuses tensors of the CPU in the default group, if a device's backend was asked for."""

    @functools.wraps(collective)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = tree_leaves((args, kwargs))
        default = not any(isinstance(each, torch.distributed.ProcessGroup) for each in given)  # others may be gloo's
        if asked_for and default and any(isinstance(each, Tensor) and str(each.device) == HOST for each in given):
            raise RuntimeError(NO_BACKEND)
        return collective(*args, **kwargs)

    return call


def _over_what_is_here(original: Callable[..., Any], own: str, note: Callable[..., object]) -> Callable[..., Any]:
    """torch.distributed.init_process_group, with the backend of the device that there is, else with gloo."""

    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        served = BACKENDS.get(backend, ())
        if served and own not in served:
            note(served[0], "torch.distributed.init_process_group", stack(sys._getframe(1)))
        return original(KINDS[own].backend or "gloo" if served else backend, *args, **kwargs)

    return init_process_group


def _restoring(device: torch.device, others: list[str]) -> Callable[[Any, str], Any]:
    def restore(storage: Any, location: str) -> Any:
        if not _names(location, others):
            return None
        return torch.serialization.default_restore_location(storage, str(device))  # type: ignore[no-untyped-call]

    return restore
