"""Streams and events of a pretend device: nothing runs later, so all work has ended when it is asked for."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from assay.pretend.events import Recorder

UNTIMED = "Both events must be created with argument 'enable_timing=True'."
UNRECORDED = "Both events must be recorded before calculating elapsed time."


@dataclass
class Streams:
    """The streams of one pretend kind: which is current on each device, in each thread.

    Real streams are of threads, too: a new thread begins on the default stream, whose id is 0
    (c10/core/Stream.h in pytorch/pytorch).
    """

    kind: str
    number: int
    get: Callable[[], int]
    set: Callable[[int], None]
    recorder: Recorder
    ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _current: threading.local = field(default_factory=threading.local)

    def current(self, index: int = -1) -> tuple[int, int, int]:
        """Id, device index and device type of the current stream of a device, as torch's C functions give them."""
        index = self.get() if index < 0 else index
        return self._of_thread().get(index, 0), index, self.number

    def default(self, index: int = -1) -> tuple[int, int, int]:
        """The same for the default stream."""
        return 0, self.get() if index < 0 else index, self.number

    def choose(self, stream_id: int, device_index: int, device_type: int) -> None:
        """Make a stream current on its device, and its device the current one (c10/cuda/CUDAStream.cpp)."""
        self._of_thread()[device_index] = stream_id
        self.set(device_index)

    def enter(self, stream: Any) -> Any:
        """Make a stream current until :meth:`leave`."""
        stream.before = (self.get(), self.current(stream.device_index))
        self.choose(stream.stream_id, stream.device_index, stream.device_type)
        return stream

    def leave(self, stream: Any) -> None:
        """Make current what was before :meth:`enter`."""
        device, current = stream.before
        self.choose(*current)
        self.set(device)

    def waited(self, operator: str, index: int) -> None:
        """Note that the program synchronized with a device."""
        why = "synchronizes with the device: waits until all of its work is done"
        self.recorder.record("sync", operator, f"{self.kind}:{index}", why)

    def _of_thread(self) -> dict[int, int]:
        if not hasattr(self._current, "ids"):
            self._current.ids = {}
        ids: dict[int, int] = self._current.ids
        return ids


def stream_methods(streams: Streams) -> dict[str, object]:
    """What ``torch._C._CudaStreamBase`` and ``_XpuStreamBase`` have on a real build.

    A build without the device has empty classes that raise in ``__new__`` (torch/cuda/streams.py); with these methods
    torch's own ``Stream`` and ``Event`` work.
    """

    def new(cls: type, priority: int = 0, stream_id: int = 0, device_index: int = -1, **_: object) -> Any:
        import torch

        stream: Any = object.__new__(cls)
        stream.device_index = streams.get() if device_index < 0 else device_index
        stream.stream_id = stream_id if device_index >= 0 else next(streams.ids)
        stream.device_type = streams.number
        stream.priority = priority
        stream.device = torch.device(streams.kind, stream.device_index)
        stream.cuda_stream = stream.sycl_queue = stream.native_handle = stream.stream_id
        return stream

    def synchronize(stream: Any) -> None:
        streams.waited(f"torch.{streams.kind}.Stream.synchronize", stream.device_index)

    def equal(stream: Any, other: Any) -> bool:
        return (stream.stream_id, stream.device) == (other.stream_id, other.device)

    return {
        "__new__": new,
        "__init__": lambda stream, *_, **__: None,
        "__enter__": lambda stream: streams.enter(stream),
        "__exit__": lambda stream, *_: streams.leave(stream),
        "__eq__": equal,
        "query": lambda stream: True,
        "synchronize": synchronize,
        "priority_range": staticmethod(lambda: (0, -1)),
    }


def mps_stream_methods(streams: Streams) -> dict[str, object]:
    """What ``torch._C._MPSStreamBase`` has on a real build, from torch 2.15 on (torch/mps/streams.py)."""

    def new(cls: type, stream_id: int | None = None) -> Any:
        stream: Any = object.__new__(cls)
        stream.number = next(streams.ids) if stream_id is None else stream_id
        return stream

    return {
        "__new__": new,
        "__init__": lambda stream, *_, **__: None,
        "__eq__": lambda stream, other: stream.number == other.number,
        "stream_id": property(lambda stream: stream.number),
        "query": lambda stream: True,
        "synchronize": lambda stream: streams.waited("torch.mps.Stream.synchronize", 0),
    }


def event_methods(streams: Streams) -> dict[str, object]:
    """What ``torch._C._CudaEventBase`` and ``_XpuEventBase`` have on a real build; see :func:`stream_methods`."""

    def new(cls: type, enable_timing: bool = False, **_: object) -> Any:
        event: Any = object.__new__(cls)
        event.timed, event.at, event.device = enable_timing, None, None
        event.cuda_event = event.sycl_event = 0
        return event

    def record(event: Any, stream: Any = None) -> None:
        event.at = time.perf_counter()
        event.device = stream.device
        event.cuda_event = event.sycl_event = next(streams.ids)

    def synchronize(event: Any) -> None:
        if event.at is not None:
            streams.waited(f"torch.{streams.kind}.Event.synchronize", event.device.index)

    return {
        "__new__": new,
        "__init__": lambda event, *_, **__: None,
        "record": record,
        "wait": lambda event, stream=None: None,
        "query": lambda event: True,
        "synchronize": synchronize,
        "elapsed_time": lambda event, end: elapsed((event.timed, event.at), (end.timed, end.at)),
    }


def elapsed(start: tuple[bool, float | None], end: tuple[bool, float | None]) -> float:
    """Milliseconds between two records, with torch's errors (aten/src/ATen/cuda/CUDAEvent.h)."""
    if not (start[0] and end[0]):
        raise ValueError(UNTIMED)
    if start[1] is None or end[1] is None:
        raise ValueError(UNRECORDED)
    return (end[1] - start[1]) * 1000


@dataclass
class NumberedEvents:
    """The events of ``torch.mps``, which torch's C functions know by number (torch/mps/event.py).

    Numbers count down from -1: ``Event.__del__`` gives a number back only where it is positive, and so does not reach
    for functions that are gone when an event lives longer than its device.
    """

    streams: Streams
    _known: dict[int, tuple[bool, float | None]] = field(default_factory=dict)

    def acquire(self, timed: bool) -> int:
        """A new event."""
        number = -next(self.streams.ids)
        self._known[number] = (timed, None)
        return number

    def record(self, number: int) -> None:
        """Put the event behind the work asked for so far."""
        self._known[number] = (self._known[number][0], time.perf_counter())

    def synchronize(self, number: int) -> None:
        """Wait for the event."""
        if self._known[number][1] is not None:
            self.streams.waited("torch.mps.Event.synchronize", 0)

    def elapsed(self, start: int, end: int) -> float:
        """Milliseconds between two events."""
        return elapsed(self._known[start], self._known[end])
