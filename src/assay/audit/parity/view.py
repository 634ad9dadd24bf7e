"""Parity as documents: one for each comparison, and a summary of several."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from assay.audit.parity.replay import KINDS, OperatorDivergence
from assay.errors import plural
from assay.render import Chapter, Document, Line, Paragraph, Span

if TYPE_CHECKING:
    from assay.audit.parity.runs import ParityResult
    from assay.audit.watching.observations import Unrun

MOST = 12  # places that are shown of one program


def parity_document(parity: ParityResult) -> Document:
    """What is shown of one comparison."""
    return Document("", (_chapter(_comparison(parity)),))


def summary_document(compared: Iterable[ParityResult], unrun: Iterable[Unrun]) -> Document:
    """How many comparisons agree on each device, and what could not be compared."""
    lines = [*_counts(list(compared)), *((Span("not compared: ", "warn"), str(part)) for part in unrun)]
    return Document("", (_chapter(lines),) if lines else ())


def _chapter(lines: Iterable[Line]) -> Chapter:
    return Chapter("", tuple(map(Paragraph, lines)))


def _comparison(parity: ParityResult) -> Iterator[Line]:
    yield (Span(parity.target, "strong"), f" on {_device(parity)}, {parity.mode}: ", _verdict(parity))
    for number, divergence in enumerate(parity.divergences[:MOST]):
        yield from _divergence(divergence, first=number == 0)
    if len(parity.divergences) > MOST:
        yield f"  and {len(parity.divergences) - MOST} places more (--json names all)"
    for note in parity.notes[:MOST]:
        yield Span(f"  note: {KINDS[note.kind]}, at {note.place}{_times(note)}: {note.why}", "faint")


def _device(parity: ParityResult) -> str:
    return parity.device if parity.engine == "real" else f"{parity.device} (pretend, {parity.engine})"


def _verdict(parity: ParityResult) -> Span:
    numbers = f"{parity.compared} operators compared" + (f", {parity.random} random" if parity.random else "")
    if parity.agrees:
        return Span(f"{numbers}, all agree", "good")
    if not parity.divergences:
        return Span("no operator was compared", "warn")
    verb = "diverges" if len(parity.divergences) == 1 else "diverge"
    return Span(f"{numbers}, {plural(len(parity.divergences), 'place')} {verb}", "bad")


def _divergence(divergence: OperatorDivergence, *, first: bool) -> Iterator[Line]:
    name = Span(divergence.operator or divergence.kind, "strong")
    yield ("  ", Span("first: " if first else "", "bad"), name, f" at {divergence.place}{_times(divergence)}")
    if source := linecache.getline(divergence.file, divergence.line).strip():
        yield Span(f"      {source}", "info")
    first_line, *others = f"{KINDS[divergence.kind]}: {divergence.why}".split("\n")
    yield f"      {first_line}"
    yield from others


def _times(divergence: OperatorDivergence) -> str:
    return f", {divergence.count} times" if divergence.count > 1 else ""


def _counts(compared: list[ParityResult]) -> Iterator[Line]:
    for device in dict.fromkeys(map(_device, compared)) if len(compared) > 1 else ():
        here = [parity for parity in compared if _device(parity) == device]
        agree = sum(parity.agrees for parity in here)
        diverge = sum(bool(parity.divergences) for parity in here)
        rest = len(here) - agree - diverge
        counts = f": {agree:,} agree, {diverge:,} diverge, {sum(each.compared for each in here):,} operators compared"
        yield (Span(device, "strong"), counts + (f", {rest:,} without any" if rest else ""))
