"""Devices that a program names though they are not those of this machine: recognized, and replaced for another run."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from assay.audit.source import SITES
from assay.devices.pretend.events import Frame, stack
from assay.devices.pretend.front import Patches, owner_of
from assay.devices.pretend.session import DEVICES, Pretended

ABSENT = (
    r"not compiled with (\w+) enabled",
    r"Cannot (?:get|initialize) (\w+) (?:generator )?without",
    r"has no attribute '_(\w+?)_",
    r"compiled without (\w+) support",
    r"requires (\w+) support",
    r"without (\w+) backend",
    r"not linked with support for (\w+) devices",
    r"with arguments from the '(\w+)' backend",
    r"Distributed package doesn't have (\w+) built in",
    r"[dD]eserialize object on a?n? ?(\w+) device",
)
"""What torch says where a device is named that it was not built for, or that is not there."""
COMMUNICATES = {"nccl": "cuda", "xccl": "xpu"}
HARMLESS = (
    "device_count", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "empty_cache",
)  # fmt: skip
ASKED_BY = {"cuda": "torch.cuda", "mps": "torch.backends.mps", "xpu": "torch.xpu"}  # whether it is there
ANY_FILE = -2  # before the pretend devices' own entry in torch's registry of places: torch/serialization.py


def names_of(error: BaseException, trace: list[tuple[FrameType, int]], own: str) -> tuple[str, str, str] | None:
    """What an error says of a device that is not there.

    Args:
        error: the error that came first.
        trace: its frames, innermost first.
        own: the kind of device that is there.

    Returns:
        The kind of sighting (``"foreign"`` or ``"location"``), the device that was named, and the function of torch
        that was called with it (``""`` for moving or making a tensor); ``None`` where the error says nothing of it.
    """
    text, called = str(error), _called(trace)
    if "deserialize object on" in text:
        return "location", _kind_in(text) or "cuda", "torch.load"
    named = _kind_in(text) or _of_module(trace)
    if named is None or named == own:
        return None
    if "generator" in text:
        return "foreign", named, "torch.Generator"
    return "foreign", named, called


def _kind_in(text: str) -> str | None:
    for pattern in ABSENT:
        if match := re.search(pattern, text):
            name = match[1].lower()
            name = COMMUNICATES.get(name, name)
            return name if name in DEVICES else None
    return None


def _of_module(trace: list[tuple[FrameType, int]]) -> str | None:
    """The device whose module of torch raised the error, such as ``torch/cuda/streams.py``."""
    for frame, _ in trace:
        if not _is_torch(frame):
            return None
        if match := re.match(r"torch\.(cuda|mps|xpu)\b", frame.f_globals["__name__"]):
            return match[1]
    return None


def _called(trace: list[tuple[FrameType, int]]) -> str:
    """The function of a device's module, or of torch.distributed, that the program called."""
    inside = [frame for frame, _ in trace if _is_torch(frame)]
    for frame in reversed(inside):  # the outermost first
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if re.match(r"torch\.(cuda|mps|xpu|distributed)\b", module) and name != "_lazy_init":
            owner = ".".join(module.split(".")[:2])
            return f"{owner}.{frame.f_code.co_qualname.partition('.')[0].replace('_lazy_init', '')}"
    return ""


def _is_torch(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "torch"


@contextmanager
def watched(
    own: str, asked: Callable[[str, tuple[Frame, ...]], object], disabled: Callable[[str, tuple[Frame, ...]], object]
) -> Iterator[None]:
    """Note where a program asks for another kind of device, and where torch turns something off for want of it.

    Args:
        own: the kind of device that is there.
        asked: called with the other kind (or this one) and the lines that asked whether it is there.
        disabled: called with torch's name of what was turned off, and the lines.
    """
    patches = Patches()

    def watching(kind: str, original: Callable[[], Any]) -> Callable[[], Any]:
        def answer() -> Any:
            passed = _passed(sys._getframe(1))
            names = [frame.f_code.co_name for frame in passed]
            if "amp_definitely_not_available" in names:
                if (what := _turned_off(passed)) and kind != own:
                    disabled(what, stack(sys._getframe(1)))
            elif set(names) <= {"is_available", "device_count"} and _is_program(passed[-1].f_back if passed else None):
                asked(kind, stack(sys._getframe(1)))
            return original()

        return answer

    def of_mps(original: Callable[[], bool]) -> Callable[[], bool]:
        def is_available() -> bool:  # it remembers its answer, so what it calls does not see who asks
            if _is_program(sys._getframe(1)):
                asked("mps", stack(sys._getframe(1)))
            return original()

        is_available.cache_clear = original.cache_clear  # type: ignore[attr-defined]
        return is_available

    patches.put(torch.backends.mps, "is_available", of_mps(torch.backends.mps.is_available))
    for kind in ("cuda", "xpu"):
        module = getattr(torch, kind)
        patches.put(module, "_is_compiled", watching(kind, module._is_compiled))
    try:
        yield
    finally:
        patches.restore()


def _passed(frame: FrameType | None) -> list[FrameType]:
    """torch's own frames between here and the program, innermost first."""
    found: list[FrameType] = []
    while frame is not None and _is_torch(frame):
        found.append(frame)
        frame = frame.f_back
    return found


def _turned_off(passed: list[FrameType]) -> str:
    for frame in passed:
        name, given = frame.f_code.co_qualname, frame.f_locals
        if name == "autocast.__init__" and given.get("enabled", True):
            return "torch.autocast"
        if name == "GradScaler.__init__":
            return "torch.amp.GradScaler"
    return ""


@contextmanager
def replaced(pretended: Pretended, note: Callable[[str, str, tuple[Frame, ...]], object]) -> Iterator[None]:
    """Let every other device that a program names be the pretended one, so that what comes after it is seen.

    ``.cuda()``, ``device="cuda"``, files with tensors of another device and the like give tensors of the pretended
    device; ``torch.cuda.is_available()`` is true for the program itself, not for libraries.

    Args:
        pretended: the device that is open.
        note: called with the kind of device that was replaced, torch's name of the function ("" for moving or making
            a tensor), and the lines of Python.
    """
    device, patches = pretended.device, Patches()
    others = sorted({*DEVICES} - {pretended.type})

    def swap(place: Any, called: str = "") -> Any:
        if not _names(place, others):
            return place
        note(str(place).partition(":")[0], called, stack(sys._getframe(1)))
        return device

    for kind in others:
        patches.put(owner_of(ASKED_BY[kind]), "is_available", lambda: _is_program(sys._getframe(1)))
        for name, answer in _answers(pretended).items():
            if hasattr(getattr(torch, kind), name):
                patches.put(getattr(torch, kind), name, _noting(kind, name, answer, note))
    default, autocast, group = torch.set_default_device, torch.autocast.__init__, _group()
    patches.put(torch, "set_default_device", lambda place: default(swap(place)))
    patches.put(torch, "Generator", _generators(swap))
    patches.put(
        torch.autocast,
        "__init__",
        lambda self, device_type="cuda", *args, **kwargs: autocast(
            self, torch.device(swap(device_type, "torch.autocast")).type, *args, **kwargs
        ),
    )
    if group is not None:
        patches.put(torch.distributed, "init_process_group", _over_the_host(group))
    entry = (ANY_FILE, lambda storage: None, _restoring(device, others))
    torch.serialization._package_registry.insert(0, entry)
    try:
        with _Replacing(swap):
            yield
    finally:
        torch.serialization._package_registry.remove(entry)
        patches.restore()


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
        if name in ("cuda", "xpu") and args and isinstance(args[0], Tensor):
            return args[0].to(self._swap(torch.device(name)), non_blocking=kwargs.get("non_blocking", False))
        if name == "type" and len(args) > 1 and isinstance(args[1], str) and (match := _LEGACY.match(args[1])):
            return args[0].to(self._swap(torch.device(match[1]))).to(getattr(torch, match[2]).dtype)
        given = (self._swap(each) if name == "to" or not isinstance(each, str) else each for each in args)
        if "device" in kwargs:
            kwargs["device"] = self._swap(kwargs["device"])
        return func(*given, **kwargs)


_LEGACY = re.compile(r"torch\.(cuda|xpu)\.(\w+Tensor)$")


def _noting(kind: str, name: str, answer: Callable[..., Any], note: Callable[..., object]) -> Callable[..., Any]:
    """An answer that notes that it was asked for, but for those that need no device to be there."""
    if name in HARMLESS:
        return answer

    def noted(*args: Any, **kwargs: Any) -> Any:
        note(kind, f"torch.{kind}.{name}", stack(sys._getframe(1)))
        return answer(*args, **kwargs)

    return noted


def _answers(pretended: Pretended) -> dict[str, Callable[..., Any]]:
    """What ``torch.cuda`` and its kin say and do, as ``torch.accelerator`` does it on the pretended device."""
    accelerator, device = torch.accelerator, pretended.device
    return {
        "device_count": lambda: pretended.count if _is_program(sys._getframe(1)) else 0,
        "synchronize": lambda *_: accelerator.synchronize(),
        "current_device": accelerator.current_device_index,
        "set_device": lambda *_: None,
        "device": lambda *_: nullcontext(),
        "get_device_name": lambda *_: f"pretended {device}",
        "get_device_capability": lambda *_: (0, 0),
        "memory_allocated": lambda *_: 0,
        "max_memory_allocated": lambda *_: 0,
        "memory_reserved": lambda *_: 0,
        "max_memory_reserved": lambda *_: 0,
        "reset_peak_memory_stats": lambda *_: None,
        "empty_cache": lambda *_: None,
        "Event": lambda enable_timing=False, **_: torch.Event(device, enable_timing=enable_timing),
        "Stream": lambda *_, **__: torch.Stream(device),
        "current_stream": lambda *_: accelerator.current_stream(),
        "stream": lambda *_: nullcontext(),
    }


def _is_program(frame: FrameType | None) -> bool:
    """Whether a frame is of the program itself, and of no library."""
    return frame is not None and not _is_torch(frame) and not frame.f_code.co_filename.startswith(SITES)


def _generators(swap: Callable[..., Any]) -> type[torch.Generator]:
    plain = torch.Generator

    class Kind(type(plain)):  # type: ignore[misc]
        def __call__(cls, device: Any = "cpu") -> torch.Generator:
            return plain(swap(device, "torch.Generator"))

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, plain)

    return Kind("Generator", (), {})


def _group() -> Callable[..., Any] | None:
    return getattr(torch.distributed, "init_process_group", None)


def _over_the_host(original: Callable[..., Any]) -> Callable[..., Any]:
    """torch.distributed.init_process_group, with the backend that every machine has."""

    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        return original("gloo" if backend in COMMUNICATES else backend, *args, **kwargs)

    return init_process_group


def _restoring(device: torch.device, others: list[str]) -> Callable[[Any, str], Any]:
    def restore(storage: Any, location: str) -> Any:
        if not _names(location, others):
            return None
        return torch.serialization.default_restore_location(storage, str(device))  # type: ignore[no-untyped-call]

    return restore
