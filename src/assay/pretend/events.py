"""What happened on a pretend device, and the line of Python that caused it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

KINDS = {
    "sync": "a synchronization with the device",
    "copy": "a tensor is copied between two devices, or between the CPU and a device",
    "fallback": "an operator that the device lacks runs on the CPU instead",
    "nondeterministic": "an operator whose result may differ from run to run on this device",
    "devices": "refused: operands are on different devices",
    "dtype": "refused: the device has no such dtype",
    "operator": "refused: the device has no such operator",
    "deterministic": "refused: deterministic algorithms were asked for, and the operator has none there",
    "unsupported": "refused by assay: a pretend device cannot do this",
}
REFUSED = ("devices", "dtype", "operator", "deterministic")


@dataclass(frozen=True)
class Frame:
    """One line of Python: file, line number, and the function it stands in."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Event:
    """One thing that happened on a pretend device.

    Attributes:
        kind: one of :data:`KINDS`.
        operator: torch's name of the operator with its overload, such as ``"aten::index.Tensor"``.
        device: the device it happened on, such as ``"cuda:1"``.
        why: what happened; for a refusal the text of the error.
        stack: the lines of Python that led there, innermost first, without those inside torch.
        source: for a copy, where the values came from.
        target: for a copy, where they went.
        non_blocking: for a copy, whether it was asked for without waiting.
        pinned: for a copy, whether the host memory was pinned.
        elements: for a copy, how many values.
    """

    kind: str
    operator: str
    device: str
    why: str = ""
    stack: tuple[Frame, ...] = ()
    source: str = ""
    target: str = ""
    non_blocking: bool = False
    pinned: bool = False
    elements: int = 0

    @property
    def where(self) -> Frame | None:
        """The innermost line outside torch, or ``None`` if there was none (a thread of torch's own)."""
        return self.stack[0] if self.stack else None

    def __str__(self) -> str:
        return f"{self.kind} on {self.device} at {self.where or 'no line of Python'}: {self.operator}: {self.why}"


@dataclass
class Recorder:
    """Collects events from every thread; engines call :meth:`record`."""

    events: list[Event] = field(default_factory=list)
    listeners: list[Callable[[Event], None]] = field(default_factory=list)
    used: bool = False  # whether an operator ran on the device: most are no event
    _quiet: threading.local = field(default_factory=threading.local)

    def record(self, kind: str, operator: str, device: str, why: str = "", **details: object) -> None:
        """Note an event with the lines of Python that are running now; nothing while this thread is :meth:`quiet`."""
        if getattr(self._quiet, "depth", 0):
            return
        event = Event(kind, operator, device, why, stack(sys._getframe(1)), **details)  # type: ignore[arg-type]
        self.events.append(event)
        for listener in tuple(self.listeners):
            listener(event)

    def of(self, *kinds: str) -> list[Event]:
        """The events of these kinds, in order."""
        return [event for event in tuple(self.events) if event.kind in kinds]

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Record nothing of what this thread does in the block: for looking at tensors without being seen."""
        self._quiet.depth = getattr(self._quiet, "depth", 0) + 1
        try:
            yield
        finally:
            self._quiet.depth -= 1


def stack(frame: FrameType | None, limit: int = 32) -> tuple[Frame, ...]:
    """The lines of Python from ``frame`` outwards, innermost first, without torch's and this package's own."""
    lines: list[Frame] = []
    while frame is not None and len(lines) < limit:
        file = frame.f_code.co_filename
        if not file.startswith(_inside()) and not file.startswith("<frozen"):
            lines.append(Frame(file, frame.f_lineno, frame.f_code.co_qualname))
        frame = frame.f_back
    return tuple(lines)


_INSIDE: tuple[str, ...] = ()


def _inside() -> tuple[str, ...]:
    global _INSIDE
    if not _INSIDE:
        import torch

        _INSIDE = (str(Path(torch.__file__).parent) + "/", str(Path(__file__).parent) + "/")
    return _INSIDE
