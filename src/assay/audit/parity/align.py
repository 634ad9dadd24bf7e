"""Which calls of the device's run stand for which of the CPU's, where the two ran different operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, tee

from assay.audit.parity.steps import Call, CallSite, OperatorStep

Plan = list[tuple[Call, int | None]]


def align(steps: list[OperatorStep], calls: list[Call]) -> Plan:
    """Each call of the device with the index of the CPU's step it stands for; ``None`` if the CPU did not run it."""
    ours, theirs = _segments([step.call for step in steps]), _segments(calls)
    indices: list[int | None] = [None] * len(calls)
    for segment, other in _pairs(ours, theirs):
        for offset, (cpu, device) in enumerate(zip(segment.calls, other.calls, strict=False)):
            if cpu != device:
                break  # what follows may look the same and be something else
            indices[other.start + offset] = segment.start + offset
    return list(zip(calls, indices, strict=True))


@dataclass(frozen=True)
class _Segment:
    """Calls that follow each other at one place: the unit that is the same in both runs, or is not."""

    start: int
    calls: tuple[Call, ...]

    @property
    def place(self) -> CallSite:
        return self.calls[0].place


def _segments(calls: list[Call]) -> list[_Segment]:
    grouped = groupby(range(len(calls)), key=lambda at: calls[at].place)
    numbers = [list(group) for _, group in grouped]
    return [_Segment(group[0], tuple(calls[at] for at in group)) for group in numbers]


def _pairs(ours: list[_Segment], theirs: list[_Segment]) -> Iterator[tuple[_Segment, _Segment]]:
    """The segments that stand for each other: those that are the same, and between them those at the same place."""
    numbers: dict[tuple[Call, ...], int] = {}
    cpu, device = ([numbers.setdefault(segment.calls, len(numbers)) for segment in side] for side in (ours, theirs))
    for tag, low, high, first, last in SequenceMatcher(None, cpu, device, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(ours[low:high], theirs[first:last], strict=True)
            continue
        left = iter(ours[low:high])
        for other in theirs[first:last]:
            rest, left = tee(left)
            segment = next((segment for segment in rest if segment.place == other.place), None)
            if segment is not None:
                yield segment, other
                left = rest
