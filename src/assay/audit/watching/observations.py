"""What the audit saw while a target ran, before it is judged: the messages from the process that runs it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from assay._records import Record
from assay.pretend.events import Event, Frame

MOVED, NOT_MOVED, AS_IT_IS = "moved first", "not moved", "as it is"
USAGES = (MOVED, NOT_MOVED)
NO_BACKEND = "No backend type associated with device type cpu"  # what torch says of a group of another device
COMPILING = "compiling the engine"  # what the process says it does before it runs the target

OBSERVATIONS = {
    "result": "a result is on another device than the inputs",
    "state": "a state is on another device than the inputs",
    "value": "the value differs from that on the CPU",
    "counter": "a float32 state counts",
    "collective": "a CPU tensor is handed to a collective under an accelerator's backend",
    "error": "an error that no refusal of the device explains",
    "foreign": "a device is named that is not the one there is",
    "location": "a file with tensors of another device is loaded without map_location",
    "unused": "another kind of device is asked for, and the one there is is not used",
    "disabled": "a feature is turned off, because it was asked for on another kind of device",
}


@dataclass(frozen=True)
class AuditRun:
    """What was running: which subject (a metric, a script), on which device, used how, and in which phase."""

    subject: str
    device: str
    usage: str
    phase: str
    calls: int = 1
    replaced: bool = False  # another device that the program names is taken for this one, to see what comes next


class Origin(Record):
    """The line at which a tensor came to be where it is: what happened there."""

    what: str
    file: str
    line: int


@dataclass(frozen=True)
class Observation:
    """One thing that was seen, at one line, in one run."""

    kind: str  # a kind of event (:data:`assay.pretend.events.KINDS`) or one of :data:`OBSERVATIONS`
    run: AuditRun  # what was running
    what: str = ""  # what happened
    operator: str = ""  # torch's name of the operator, where there is one
    stack: tuple[Frame, ...] = ()  # the lines of Python, innermost first
    source: str = ""  # for a copy, where the values came from
    target: str = ""  # for a copy, where they went
    non_blocking: bool = False  # for a copy, whether it was asked for without waiting
    elements: int = 0  # for a copy, how many values
    named: bool = False  # for a copy, whether the line says to which of several devices
    waited: bool = False  # for a copy, whether the same function waited for the device afterwards
    raised: bool = False  # whether the refusal ended the phase; one that the code handled did not
    # expressions of the line that are tensors, each with its dtype and device
    operands: tuple[tuple[str, str], ...] = ()
    minor: bool = False  # it matters less than its rule says
    count: int = 1  # how often it was seen
    # those of ``operands`` (or the state) that are plain attributes of a module, which nothing moves
    unregistered: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()  # where the tensors that are on the wrong device were made, or moved there


def of_event(event: Event, run: AuditRun) -> Observation:
    """The observation of an event."""
    same = ("operator", "stack", "source", "target", "non_blocking", "elements")
    return Observation(event.kind, run, event.why, **{name: getattr(event, name) for name in same})


class Unrun(Record):
    """A part that was not audited, and why; ``known`` says that this was known before, and is no failure."""

    subject: str
    device: str
    usage: str
    why: str
    known: bool = False

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.device, self.usage) if part)
        return f"{self.subject} ({where}): {self.why}" if where else f"{self.subject}: {self.why}"


def to_line(kind: str, **content: Any) -> str:
    """A message as one line of JSON."""
    return json.dumps({"message": kind, **content}) + "\n"


def pack(observation: Observation) -> dict[str, Any]:
    """An observation as plain values."""
    return asdict(observation)


def unpack(plain: dict[str, Any]) -> Observation:
    """The observation of :func:`pack`.

    Example:
        >>> seen = Observation("sync", AuditRun("m", "mps", MOVED, "update"), stack=(Frame("a.py", 3, "f"),))
        >>> unpack(json.loads(json.dumps(pack(seen)))) == seen
        True
    """
    return Observation(
        **plain
        | {
            "run": AuditRun(**plain["run"]),
            "stack": tuple(Frame(**frame) for frame in plain["stack"]),
            "operands": tuple((name, place) for name, place in plain["operands"]),
            "unregistered": tuple(plain["unregistered"]),
            "origins": tuple(Origin(**origin) for origin in plain["origins"]),
        }
    )
