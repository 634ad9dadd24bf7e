"""Inside the process that runs the target: turns events and errors into sightings and sends them on at once."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType, TracebackType
from typing import Any

from assay.audit.sighting import Run, Sighting, Unrun, of_event, pack, to_line
from assay.audit.source import names_in, statement, where
from assay.audit.states import is_tensor
from assay.devices.pretend.errors import PretendError
from assay.devices.pretend.events import REFUSED, Event, Frame

UNSUPPORTED = "unsupported"  # by pretend devices: nothing is known of the real one
DEEP = 6  # lines of Python that make two events the same
Key = tuple[object, ...]


@dataclass
class Collector:
    """Sends each sighting when it is first seen, and how often it was seen at powers of two and at the end of a phase.

    So nothing is lost when the process dies, and a loop of a million steps sends twenty lines.

    Args:
        send: takes a message as one line.
        roots: the folders or files of the target.
        run: what is running now.
        engine: the engine of the pretend device that is open.
    """

    send: Callable[[str], object]
    roots: tuple[str, ...] = ()
    run: Run = field(default_factory=lambda: Run("", "", "", ""))
    engine: str = ""
    _numbers: dict[Key, int] = field(default_factory=dict)
    _counts: dict[int, int] = field(default_factory=dict)
    _sent: dict[int, int] = field(default_factory=dict)
    _refused: list[Event] = field(default_factory=list)
    _unread: list[tuple[Event, Run]] = field(default_factory=list)

    def event(self, event: Event) -> None:
        """Take an event of a pretend device."""
        if event.kind in REFUSED or event.kind == UNSUPPORTED:
            self._refused.append(event)
        elif event.kind == "copy" and event.non_blocking:
            self._unread.append((event, self.run))
        else:
            if event.kind == "sync":
                self._wait(event)
            self.add(of_event(event, self.run))

    def _wait(self, event: Event) -> None:
        """Waiting, in the function that asked for a copy, is how the copy is made whole."""
        functions = {(frame.file, frame.function) for frame in event.stack}
        for pending in tuple(self._unread):
            copy, run = pending
            if copy.where and (copy.where.file, copy.where.function) in functions and "synchronize" in event.operator:
                self._unread.remove(pending)
                self.add(replace(of_event(copy, run), waited=True))

    def add(self, seen: Sighting) -> None:
        """Send a sighting, or count it if its like was sent before."""
        what = "" if seen.operator else seen.what
        key = (seen.kind, seen.operator, what, seen.run, seen.source, seen.target, seen.raised, seen.stack[:DEEP])
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            self._counts[number] = self._sent[number] = seen.count
            self.send(to_line("sighting", number=number, sighting=pack(seen)))
            return
        self._counts[number] += seen.count
        if self._counts[number] >= 2 * self._sent[number]:
            self._send_count(number)

    def _send_count(self, number: int) -> None:
        self._sent[number] = self._counts[number]
        self.send(to_line("count", number=number, count=self._counts[number]))

    @contextmanager
    def phase(self, run: Run) -> Iterator[None]:
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
        """Explain an error: by the refusal it came from, else as an error that only this device shows."""
        refusal = next((event for event in reversed(self._refused) if _came_from(error, event)), None)
        if refusal is not None and refusal.kind != UNSUPPORTED:
            self._refused.remove(refusal)
            operands = operands_of(error, where(refusal.stack, self.roots))
            self.add(replace(of_event(refusal, self.run), raised=True, operands=operands))
        elif isinstance(error, PretendError) and refusal is None:
            self.unrun(self.run, f"cannot be simulated: {error}")
        elif refusal is None and isinstance(error, Exception):
            self._unexplained(error)

    def _unexplained(self, error: Exception) -> None:
        """What ran on the CPU fails for the device.

        Of a script, which was not run there, and with the wrapper engine, which has limits of its own, the error must
        name the device.
        """
        what, stack = f"{type(error).__name__}: {error}", stack_of(error)
        line = where(stack, self.roots)
        doubtful = self.run.phase == "script" or self.engine == "wrapper"
        if doubtful and self.run.device.partition(":")[0] not in str(error).lower():
            self.unrun(self.run, f"stopped with {what}" + (f" at {line}" if line else ""))
            return
        operands = operands_of(error, line)
        self.add(Sighting("error", self.run, what, stack=stack, raised=True, operands=operands))

    def unrun(self, run: Run, why: str, *, known: bool = False) -> None:
        """Say that a part was not audited."""
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
        for number, count in self._counts.items():
            if count != self._sent[number]:
                self._send_count(number)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those it came from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


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


def frames_of(error: BaseException) -> list[tuple[FrameType, int]]:
    """The frames of the error that came first in the chain, innermost first, with the line in each."""
    *_, first = chain(error)
    trace: TracebackType | None = first.__traceback__
    found = []
    while trace is not None:
        found.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return found[::-1]


def stack_of(error: BaseException) -> tuple[Frame, ...]:
    """The lines of Python of an error, innermost first, without torch's."""
    torch = getattr(sys.modules.get("torch"), "__file__", "") or "no torch"
    inside = torch.removesuffix("__init__.py")
    frames = ((frame.f_code, line) for frame, line in frames_of(error))
    return tuple(
        Frame(code.co_filename, line, code.co_qualname)
        for code, line in frames
        if not code.co_filename.startswith((inside, "<frozen"))
    )


def operands_of(error: BaseException, line: Frame | None) -> tuple[tuple[str, str], ...]:
    """The tensors that the line names, with their dtype and device: read from the frame of the error."""
    code = statement(line) if line else None
    if line is None or code is None:
        return ()
    for frame, number in frames_of(error):
        if (frame.f_code.co_filename, number) == (line.file, line.line):
            named = ((name, _look_up(name, frame)) for name in _read_by(code))
            return tuple((name, _told(value)) for name, value in named if is_tensor(value))
    return ()


def _read_by(code: ast.stmt) -> list[str]:
    """The names on the right-hand side: what was read, not what was to be written."""
    value = getattr(code, "value", None)
    augmented = [code.target] if isinstance(code, ast.AugAssign) else []
    return [name for part in [*augmented, value if isinstance(value, ast.AST) else code] for name in names_in(part)]


def _look_up(name: str, frame: FrameType) -> Any:
    """The value of a dotted name, without running a property."""
    first, *rest = name.split(".")
    value = frame.f_locals.get(first, frame.f_globals.get(first))
    for part in rest:
        try:
            held = vars(value)
        except TypeError:
            return None
        value = held.get(part, {**held.get("_buffers", {}), **held.get("_parameters", {})}.get(part))
    return value


def _told(tensor: Any) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} on {tensor.device}"
