"""Devices that a program names though the machine does not have them: what errors and questions say of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch

from assay.audit.watching.source_code import SITES
from assay.devices.kinds import ACCELERATORS, BACKENDS, KINDS, PATTERN
from assay.pretend.events import Frame, stack
from assay.pretend.torch_patches import Patches

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
    r"device type at start of device string: (\w+)",
    r"No module named 'torch[._](\w+)",
    r"Unknown c10d backend type (\w+)",
)
"""What torch says where a device is named that it was not built for, or that is not there."""


def names_of(error: BaseException, trace: list[tuple[FrameType, int]], own: str) -> tuple[str, str, str] | None:
    """What an error, with the frames of its origin innermost first, says of a device of another kind than ``own``.

    Returns the kind of observation (``"foreign"`` or ``"location"``), the device that was named, and the function of
    torch that was called with it (``""`` for moving or making a tensor); ``None`` where the error says nothing of it.
    """
    text = str(error)
    if "deserialize object on" in text:
        return "location", _kind_in(text, own) or "cuda", "torch.load"
    named = _kind_in(text, own) or _of_module(trace)
    if named is None or named == own:
        return None
    return "foreign", named, "torch.Generator" if "generator" in text else _called(trace)


def _kind_in(text: str, own: str) -> str | None:
    """The kind that an error names; of a back end that serves several, ``own`` if it is among them."""
    for pattern in ABSENT:
        if match := re.search(pattern, text):
            name = match[1].lower()
            kinds = BACKENDS.get(name, (name,) if name in ACCELERATORS else ())
            return own if own in kinds else next(iter(kinds), None)
    return None


def _of_module(trace: list[tuple[FrameType, int]]) -> str | None:
    """The device whose module of torch raised the error, such as ``torch/cuda/streams.py``."""
    for frame, _ in trace:
        if not _is_torch(frame):
            return None
        if match := re.match(rf"torch\.({PATTERN})\b", frame.f_globals["__name__"]):
            return match[1]
    return None


def _called(trace: list[tuple[FrameType, int]]) -> str:
    """The function of a device's module, or of torch.distributed, that the program called."""
    inside = [frame for frame, _ in trace if _is_torch(frame)]
    for frame in reversed(inside):  # the outermost first
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if re.match(rf"torch\.({PATTERN}|distributed)\b", module) and name != "_lazy_init":
            owner = ".".join(module.split(".")[:2])
            return f"{owner}.{frame.f_code.co_qualname.partition('.')[0].replace('_lazy_init', '')}"
    return ""


def _is_torch(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "torch"


@contextmanager
def watch_availability(
    own: str, question: Callable[[str, tuple[Frame, ...]], object], disabled: Callable[[str, tuple[Frame, ...]], object]
) -> Iterator[None]:
    """Note where a program asks for devices, and where torch turns off what is not for ``own``, the kind there is.

    ``asked`` is called with the kind that was asked for and the lines, ``disabled`` with torch's name of what was
    turned off and the lines.
    """

    def watching(kind: str, original: Callable[[], Any]) -> Callable[[], Any]:
        def answer() -> Any:
            passed = _torch_frames(sys._getframe(1))
            names = [frame.f_code.co_name for frame in passed]
            if "amp_definitely_not_available" in names:
                if (what := _turned_off(passed)) and kind != own:
                    disabled(what, stack(sys._getframe(1)))
            elif set(names) <= {"is_available", "device_count"} and is_program(passed[-1].f_back if passed else None):
                question(kind, stack(sys._getframe(1)))
            return original()

        return answer

    def of_mps(original: Callable[[], bool]) -> Callable[[], bool]:
        def is_available() -> bool:  # it remembers its answer, so what it calls does not see who asks
            if is_program(sys._getframe(1)):
                question("mps", stack(sys._getframe(1)))
            return original()

        return is_available

    with Patches() as patches:
        patches.put(torch.backends.mps, "is_available", of_mps(torch.backends.mps.is_available))
        for kind in KINDS:
            module: Any = getattr(torch, kind, None)
            if hasattr(module, "_is_compiled"):
                patches.put(module, "_is_compiled", watching(kind, module._is_compiled))
        yield


def _torch_frames(frame: FrameType | None) -> list[FrameType]:
    """torch's own frames between here and the program, innermost first."""
    frames: list[FrameType] = []
    while frame is not None and _is_torch(frame):
        frames.append(frame)
        frame = frame.f_back
    return frames


def _turned_off(passed: list[FrameType]) -> str:
    for frame in passed:
        name, arguments = frame.f_code.co_qualname, frame.f_locals
        if name == "autocast.__init__" and arguments.get("enabled", True):
            return "torch.autocast"
        if name == "GradScaler.__init__":
            return "torch.amp.GradScaler"
    return ""


def is_program(frame: FrameType | None) -> bool:
    """Whether a frame is of the program itself, and of no library."""
    return frame is not None and not _is_torch(frame) and not frame.f_code.co_filename.startswith(SITES)
