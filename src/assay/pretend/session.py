"""``with pretend("mps"):`` opens a device that is not there, and closes it."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from assay.devices.kinds import KINDS, PRETENDED
from assay.devices.operators.overloads import overloads
from assay.devices.operators.releases import VARIABLE, as_of
from assay.devices.operators.rules import Rules, rules
from assay.devices.pretend_state import set_pretended_kind
from assay.devices.tried_releases import report_untried
from assay.errors import ConfigError, describe
from assay.pretend.errors import PretendError
from assay.pretend.events import Event, Recorder

if TYPE_CHECKING:
    import torch


EngineName = Literal["auto", "native", "python"]
_lock = threading.Lock()
_open_now: list[PretendDevice] = []


class Engine(Protocol):
    """What both engines can do, as contexts."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *_: object) -> None: ...

    def current_device(self) -> int: ...

    def set_device(self, index: int) -> None: ...


@dataclass(frozen=True)
class PretendDevice:
    """A pretend device that is open.

    Attributes:
        type: its kind, such as ``"mps"``.
        count: how many of them there are.
        engine: ``"native"`` or ``"python"``.
        recorder: where its events go.
    """

    type: str
    count: int
    engine: str
    recorder: Recorder

    @property
    def device(self) -> torch.device:
        """The last of the devices, ``cuda:1`` of two: not the current one, so what lands elsewhere is seen."""
        import torch

        return torch.device(self.type, self.count - 1)

    @property
    def events(self) -> list[Event]:
        """All that happened so far, in order."""
        return self.recorder.events

    @property
    def used(self) -> bool:
        """Whether anything ran or happened on it."""
        return self.recorder.used or bool(self.recorder.events)

    @property
    def syncs(self) -> list[Event]:
        """Where the program synchronized with the device."""
        return self.recorder.of("sync")


@contextmanager
def pretend(
    device: str, *, count: int | None = None, engine: EngineName = "auto", release: str | None = None
) -> Iterator[PretendDevice]:
    """A device that is not there: computed by the CPU, under the name of the device and by its rules.

    Inside the block, tensors can be created on and moved to the device as usual. Operators give the CPU's values.
    What the real device refuses is refused with the same error: operands on different devices, dtypes and operators
    that it lacks, operators without a deterministic form where one is asked for. Where it would synchronize with the
    device is noted, with the line of Python that caused it.

    Args:
        device: ``"cuda"``, ``"mps"``, ``"xpu"``, ``"npu"``, ``"mlu"``, ``"musa"``, ``"hpu"``, or one of several, such
            as ``"cuda:1"``: then there are as many as needed, and the first stays the current one. Of ``npu``, ``mlu``
            and ``musa`` one can be pretended in a process, and no other kind after it.
        count: how many devices of that kind there are; by default one, or as many as ``device`` names.
        engine: ``"native"`` (plain tensors on torch's own dispatcher; compiled once, which takes about half a minute
            and a C++ compiler), ``"python"`` (a tensor subclass in pure Python: slower, and refuses some), or
            ``"auto"``: native where there is a compiler.
        release: an older release of torch, such as ``"2.4"``: what the device is known to have lacked then
            (``devices/known/history.toml``) is refused. By default what the environment variable
            ``ASSAY_PRETEND_TORCH`` says, else the installed release.

    Yields:
        What is open, with its events.

    Raises:
        ConfigError: there is no such device, or no such number of them.
        PretendError: a pretend device is open already, torch has the real one, or the engine is not available.

    Example:
        >>> import torch
        >>> with pretend("cuda:1") as gpu:
        ...     scores = torch.tensor([0.2, 0.9], device=gpu.device)
        ...     try:
        ...         scores * torch.ones(2)
        ...     except RuntimeError as error:
        ...         print(error)
        ...     best = scores.max().item()
        Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cpu!
        >>> [event.operator for event in gpu.syncs]
        ['aten::copy_', 'aten::_local_scalar_dense']

    Source:
        The rules are facts with their sources, in ``devices/known/``; docs/calibration.md says how each was checked.
    """
    kind, count = _kind_and_count(device, count)
    if not _lock.acquire(blocking=False):
        got = f"{device!r} while a pretend device is open"
        raise PretendError(describe("pretend", got, "one at a time", "Leave the other first"))
    try:
        with ExitStack() as stack:
            _open_now.append(_open(stack, kind, count, engine, release))
            set_pretended_kind(kind)
            yield _open_now[0]
    finally:
        _open_now.clear()
        set_pretended_kind("")
        _lock.release()


def current() -> PretendDevice | None:
    """The pretend device that is open in this process, if there is one."""
    return _open_now[0] if _open_now else None


def _open(stack: ExitStack, kind: str, count: int, engine: str, release: str | None) -> PretendDevice:
    from assay.pretend.adapters import claim_name
    from assay.pretend.torch_patches import patch_torch, refuse_real

    report_untried()
    refuse_real(kind)
    claim_name(kind)
    engine = _choose_engine(engine)
    overloads()  # it asks the dispatcher which kernels a device has, and the engines are about to add theirs
    older = release or os.environ.get(VARIABLE)
    recorder, known = Recorder(), as_of(rules(kind), older) if older else rules(kind)
    machine = stack.enter_context(_engine(engine)(kind, count, known, recorder))
    generators = getattr(machine, "generator", None)
    stack.enter_context(patch_torch(kind, count, machine.current_device, machine.set_device, recorder, generators))
    return PretendDevice(kind, count, engine, recorder)


def _kind_and_count(device: str, count: int | None) -> tuple[str, int]:
    match = re.fullmatch(rf"({'|'.join(PRETENDED)})(?::(\d+))?", str(device))
    if match is None:
        expected = f"one of {', '.join(PRETENDED)}, with or without an index"
        raise ConfigError(describe("device", repr(device), expected, "The CPU needs no pretending"))
    kind, least = match[1], int(match[2] or 0) + 1
    count = least if count is None else count
    most, several = KINDS[kind].most, KINDS[kind].several
    if least > most:
        todo = "Take a smaller index" if several else "A Mac has one Apple GPU"
        raise ConfigError(describe("device", repr(device), f"at most {kind}:{most - 1}", todo))
    if not isinstance(count, int) or not least <= count <= most:
        todo = "Ask for fewer, or for as many as the index needs" if several else "A Mac has one Apple GPU"
        raise ConfigError(describe("count", f"{count!r} for {device!r}", f"{least} to {most}", todo))
    return kind, count


def _choose_engine(engine: str) -> str:
    from assay.pretend.native_engine.build import why_not
    from assay.pretend.torch_patches import refuse_native_beside_real

    if engine not in ("auto", "native", "python"):
        raise ConfigError(describe("engine", repr(engine), "auto, native or python", "Check the spelling"))
    if engine == "auto":
        return "python" if why_not() else "native"
    if engine == "native":
        refuse_native_beside_real()
    return engine


def _engine(name: str) -> Callable[[str, int, Rules, Recorder], Engine]:
    if name == "native":
        from assay.pretend.native_engine.engine import NativeEngine

        return NativeEngine
    from assay.pretend.python_engine.engine import PythonEngine

    return PythonEngine
