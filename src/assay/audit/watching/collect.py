"""Inside the process that runs the target: turns events and errors into observations and sends them on at once."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import TYPE_CHECKING, Any

from assay.audit.watching.error_frames import (
    chain,
    compiled_of,
    frames_of,
    operands_of,
    stack_of,
    tensors_at,
    tensors_below,
    unregistered_of,
)
from assay.audit.watching.observations import NO_BACKEND, AuditRun, Observation, Origin, Unrun, of_event, pack, to_line
from assay.audit.watching.source_code import (
    ASSAY,
    chosen_by,
    device_expression,
    named_by,
    names_index,
    naming,
    where,
)
from assay.devices.kinds import KINDS
from assay.pretend.errors import PretendError
from assay.pretend.events import REFUSED, Event, Frame

if TYPE_CHECKING:
    from assay.audit.watching.origins import Origins

UNSUPPORTED = "unsupported"  # by pretend devices: nothing is known of the real one
ONE_DEVICE = re.compile(r"same device|expected device|not on the same|at the same device")
"""What torch's errors say, in words of each function, of operands on several devices."""
TURNED_OFF = ("torch.autocast", "torch.amp.GradScaler")
MEANT = (*TURNED_OFF, "torch.distributed.init_process_group")
"""Functions that are for a device without its name: by an import (``from torch.cuda.amp``), a default, ``"nccl"``."""
DEEP = 6  # lines of Python that make two events the same
Key = tuple[object, ...]


@dataclass
class Collector:
    """Sends each observation once, and how often it was made at powers of two and at the end of a phase.

    So nothing is lost when the process dies, and a loop of a million steps sends twenty lines.
    """

    send: Callable[[str], object]  # takes a message as one line
    roots: tuple[str, ...] = ()  # the folders or files of the target
    run: AuditRun = field(default_factory=lambda: AuditRun("", "", "", ""))  # what is running now
    engine: str = ""  # the engine of the pretend device that is open
    # where tensors were made, in a second run; of one that is for nothing else only what has an origin is sent
    origins: Origins | None = None
    # whether something was seen that ends or idles the run because the program names another device
    named: bool = False
    # whether a tensor was seen on the wrong device, of which a second run may tell where it was made
    strayed: bool = False
    # whether something that the device refused ended a phase: what comes after it was not seen
    stopped: bool = False
    # whether the program goes on after that, in a second run, of which all is sent
    goes_on: bool = False
    _sending: Any = field(default_factory=threading.RLock)  # one thread at a time: no count before what it counts
    _numbers: dict[Key, int] = field(default_factory=dict)
    _counts: dict[int, int] = field(default_factory=dict)
    _sent: dict[int, int] = field(default_factory=dict)
    _refused: list[Event] = field(default_factory=list)
    _explained: BaseException | None = None
    _named_lines: set[Frame] = field(
        default_factory=set
    )  # assignments that name another device, of which one use is sent
    _unread: list[tuple[Event, AuditRun]] = field(default_factory=list)

    def event(self, event: Event) -> None:
        """Take an event of a pretend device."""
        if event.kind in REFUSED or event.kind == UNSUPPORTED:
            self._refused.append(event)
        elif event.kind == "copy" and event.non_blocking:
            self._unread.append((event, self.run))
        else:
            if event.kind == "sync":
                self._wait(event)
            named = event.kind == "copy" and _is_named(event)
            self.add(replace(of_event(event, self.run), named=named))

    def _wait(self, event: Event) -> None:
        """Waiting, in the function that asked for a copy, is how the copy is made whole."""
        functions = {(frame.file, frame.function) for frame in event.stack}
        for pending in tuple(self._unread):
            copy, run = pending
            if copy.where and (copy.where.file, copy.where.function) in functions and "synchronize" in event.operator:
                self._unread.remove(pending)
                self.add(replace(of_event(copy, run), waited=True))

    def add(self, observation: Observation) -> None:
        """Send an observation, or count it if its like was sent before."""
        what = "" if observation.operator else observation.what
        key: Key = (
            observation.kind,
            observation.operator,
            what,
            observation.run,
            observation.source,
            observation.target,
            observation.raised,
            observation.stack[:DEEP],
        )
        self.named |= observation.kind in ("foreign", "location", "unused")
        self.strayed |= observation.kind in ("result", "state") or (
            observation.kind == "devices" and observation.raised
        )
        self.stopped |= observation.kind in (*REFUSED, "error", "collective") and observation.raised
        if self.origins is not None and not observation.run.replaced and not self.goes_on:
            if not observation.origins:
                return
            key, observation = (*key, "origins"), replace(observation, count=0)
        with self._sending:
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = len(self._numbers)
                self._counts[number] = self._sent[number] = observation.count
                self.send(to_line("observation", number=number, observation=pack(observation)))
                return
            self._counts[number] += observation.count
            if self._counts[number] >= 2 * self._sent[number]:
                self._send_count(number)

    def _send_count(self, number: int) -> None:
        self._sent[number] = self._counts[number]
        self.send(to_line("count", number=number, count=self._counts[number]))

    @contextmanager
    def phase(self, run: AuditRun) -> Iterator[None]:
        """What happens in the block belongs to this run; an error is explained and raised again."""
        self.run = run
        try:
            yield
        except BaseException as error:
            self.failed(error)
            raise
        finally:
            self.flush()

    def failed(self, error: BaseException) -> None:
        """Explain an error, once: by the refusal it came from, else as an error that only this device shows."""
        if error is self._explained:
            return
        refusal = next((event for event in reversed(self._refused) if _came_from(error, event)), None)
        if self._names_another(error):
            return
        if refusal is not None and refusal.kind != UNSUPPORTED:
            self._refused.remove(refusal)
            line = where(refusal.stack, self.roots)
            operands, strays = operands_of(error, line), self._strays(error, line)
            unregistered = unregistered_of(error, line)
            traced = (origin for tensor, name in strays for origin in self.origin(tensor, name))
            origins = tuple(dict.fromkeys(traced))
            observation = of_event(refusal, self.run)
            self.add(replace(observation, raised=True, operands=operands, origins=origins, unregistered=unregistered))
        elif isinstance(error, PretendError) and refusal is None:
            self.unrun(self.run, f"cannot be simulated: {error}")
        elif refusal is None and _of_triton(error):
            self.unrun(self.run, "cannot be simulated: a Triton kernel needs the driver of a real GPU")
        elif refusal is None and isinstance(error, Exception):
            self._unexplained(error)

    def explained(self, error: BaseException) -> str:
        """Explain an error after which the program goes on: the kind of the refusal it came from, or ``""``."""
        refusal = next((event for event in reversed(self._refused) if _came_from(error, event)), None)
        if refusal is None:
            return UNSUPPORTED if any(isinstance(each, PretendError) for each in chain(error)) else ""
        if refusal.kind == UNSUPPORTED:
            return UNSUPPORTED
        self.failed(error)
        self._explained = error
        return refusal.kind

    def reported(self, error: BaseException) -> None:
        """Take an error after which the program goes on: no refusal explains it, and on the CPU the call works."""
        self._explained = error
        if not self._names_another(error):
            self._fails(error)

    def _names_another(self, error: BaseException) -> bool:
        """Whether the error is that of a device which the program names and which is not there; then it is sent."""
        from assay.audit.watching.hard_coded import names_of

        *_, first = chain(error)
        mention = names_of(first, frames_of(error), self.run.device.partition(":")[0])
        if mention is None:
            return False
        kind, device, called = mention
        stack, text = stack_of(error), str(first).strip().partition("\n")[0].partition(". ")[0]
        what = f"{type(first).__name__}: {text}"
        line = where(stack, self.roots)
        says = f"the program names {device}, the device is {self.run.device}"
        named = naming(line, device) if line is not None and kind == "foreign" else ()
        origins = tuple(Origin(f"{device} is named", x.file, x.line) for x in named)
        self.add(Observation(kind, self.run, f"{what} ({says})", called, stack, raised=True, origins=origins))
        return True

    def disabled(self, called: str, stack: tuple[Frame, ...]) -> None:
        """Take what torch turned off, because it was asked for on another kind of device."""
        what = f"{called} is for another device here, and is turned off: the device is {self.run.device}"
        self.add(Observation("disabled", self.run, what, called, stack))

    def named_again(self, device: str, called: str, stack: tuple[Frame, ...]) -> None:
        """Take a device that was replaced in a second run, and that no ``if`` asks for.

        The line itself must name it, or a name of the line have it by an assignment: that is sent once.
        """
        line = where(stack, self.roots)
        if line is None or chosen_by(line, device):
            return
        origins: tuple[Origin, ...] = ()
        if called not in MEANT and not device_expression(line, device):
            given = named_by(line, device)
            if given is None or given in self._named_lines or chosen_by(given, device):
                return
            self._named_lines.add(given)
            origins = (Origin(f"{device} is named", given.file, given.line),)
        if called in TURNED_OFF:
            self.disabled(called, stack)
            return
        named = f"the backend of {device}, which is not built in" if called in MEANT else device
        what = f"the program names {named}, the device is {self.run.device}"
        self.add(Observation("foreign", self.run, what, called, stack, raised=True, origins=origins))

    def _strays(self, error: BaseException, line: Frame | None) -> list[tuple[Any, str]]:
        """The tensors that are not on the device under test: by the names of the line, else of torch's frames below."""
        device = self.run.device if ":" in self.run.device else f"{self.run.device}:0"
        for tensors in (tensors_at(error, line), tensors_below(error, line)):
            strays = [(tensor, name) for name, tensor in tensors if str(tensor.device) != device]
            if strays:
                return strays
        return []

    def origin(self, tensor: Any, name: str) -> tuple[Origin, ...]:
        """Where a tensor was made or moved to where it is, as far as that was noted."""
        creation = self.origins.of(tensor) if self.origins is not None else None
        line = where(creation.lines, self.roots) if creation else None
        if creation is None or line is None:
            return ()
        subject = f"`{name}`" if name else "the tensor"
        to = f"{'on' if creation.how == 'made' else 'to'} {tensor.device}"
        return (Origin(f"{subject} was {creation.how} {to}", line.file, line.line),)

    def _unexplained(self, error: Exception) -> None:
        """What ran on the CPU fails for the device.

        Of a script, which was not run there, and with the Python engine, which has limits of its own, the error must
        name the device.
        """
        what, stack = f"{type(error).__name__}: {error}", (*compiled_of(error), *stack_of(error))
        line = where(stack, self.roots)
        *_, first = chain(error)
        if type(first).__name__ == "FakeTensorDeviceMismatchError":  # of torch.compile, before an operator runs
            self.add(Observation("devices", self.run, str(first), stack=stack, raised=True))
            return
        doubtful = self.run.phase == "script" or self.engine == "python"
        named = self.run.device.partition(":")[0] in str(error).lower() or NO_BACKEND in str(error)
        if not doubtful or named:
            self._fails(error)
        elif self.run.phase == "script" and self.origins is None and not self.goes_on:
            self.stopped = True  # another run shows whether the call works on the CPU
        else:
            self.unrun(self.run, f"stopped with {what}" + (f" at {line}" if line else ""))

    def _fails(self, error: BaseException) -> None:
        """Take an error that the same call does not raise on the CPU, or with its operands on one device."""
        what, stack = f"{type(error).__name__}: {error}", (*compiled_of(error), *stack_of(error))
        line = where(stack, self.roots)
        if NO_BACKEND in str(error):
            kind = self.run.device.partition(":")[0]
            said = f"a collective is given a CPU tensor; {KINDS[kind].backend} takes tensors of {kind} only"
            self.add(Observation("collective", self.run, said, stack=stack, raised=True))
            return
        strays = self._strays(error, line) if ONE_DEVICE.search(str(error)) else []
        origins = tuple(dict.fromkeys(origin for tensor, name in strays for origin in self.origin(tensor, name)))
        kind = "devices" if strays else "error"
        seen = Observation(kind, self.run, what, stack=stack, raised=True, operands=operands_of(error, line))
        self.add(replace(seen, origins=origins, unregistered=unregistered_of(error, line) if strays else ()))

    def unrun(self, run: AuditRun, why: str, *, known: bool = False) -> None:
        """Say that a part was not audited; of a second run only if it is to see more than the first."""
        if self.origins is not None and not run.replaced and (known or not self.goes_on):
            return
        why = f"after the hard-coded device was replaced: {why}" if run.replaced else why
        self.send(to_line("unrun", unrun=vars(Unrun(run.subject, run.device, run.usage, why, known))))

    def flush(self) -> None:
        """Send what was held back: refusals that the code handled, copies nobody waited for, and the last counts."""
        for event in self._refused:
            if event.kind == UNSUPPORTED:
                line = where(event.stack, self.roots)
                self.unrun(self.run, f"cannot be simulated: {event.why}" + (f" at {line}" if line else ""))
            else:
                self.add(of_event(event, self.run))
        for event, run in self._unread:
            self.add(of_event(event, run))
        self._refused.clear()
        self._unread.clear()
        for number, count in tuple(self._counts.items()):
            if count != self._sent[number]:
                self._send_count(number)


def _is_named(copy: Event) -> bool:
    """Whether the line of Python that copies says to which of several devices; called while it copies.

    What torch itself brings together (``DataParallel``) goes where it is said to go.
    """
    kind, _, index = copy.target.partition(":")
    frame: FrameType | None = sys._getframe(1)
    while index and frame is not None and _only_passes(frame):
        frame = frame.f_back
    if not index or frame is None:
        return False
    return "torch.nn.parallel" in frame.f_globals.get("__name__", "") or names_index(frame, kind)


def _only_passes(frame: FrameType) -> bool:
    """Whether a frame is of assay, or of what torch does on the way to an operator."""
    module = frame.f_globals.get("__name__", "")
    on_the_way = module.startswith(("torch._", "torch.overrides", "torch.utils._", "torch.library"))
    return on_the_way or frame.f_code.co_filename.startswith(ASSAY)


def _of_triton(error: BaseException) -> bool:
    """Whether Triton raised it, which compiles kernels for a device that is there."""
    modules = (str(frame.f_globals.get("__name__", "")) for frame, _ in frames_of(error)[:1])
    return any(module.partition(".")[0] == "triton" for module in modules)


def _came_from(error: BaseException, event: Event) -> bool:
    """Python's operators turn a TypeError into "unsupported operand": then the type of the refusal must do."""
    first = event.why.strip().splitlines()[0] if event.why.strip() else ""
    for each in chain(error):
        text = str(each)
        if first and (first in text or (text in event.why and len(text) > 20)):
            return True
        if event.kind == "dtype" and isinstance(each, TypeError) and "unsupported operand type" in text:
            return True
    return False
