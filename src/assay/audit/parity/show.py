"""Parity as documents: one for each comparison, and a summary at the end."""

from __future__ import annotations

import linecache
from collections.abc import Iterator

from rich.console import Console

from assay.audit.parity.replay import KINDS, OperatorDivergence
from assay.audit.parity.runs import ParityResult
from assay.render import Chapter, Document, Line, Paragraph, Span
from assay.render.document import plural
from assay.render.terminal import show

MOST = 12  # places that are shown of one program


class Shower:
    """Prints each comparison when it is done, and a summary at the end.

    Args:
        silent: print nothing.
    """

    def __init__(self, *, silent: bool = False) -> None:
        self._console = Console(quiet=silent, highlight=False)

    def show(self, parity: ParityResult) -> None:
        """Print one comparison."""
        self._print(_parity(parity))

    def sum_up(self, compared: list[ParityResult], unrun: list[tuple[str, str, str]]) -> None:
        """Print how many agree on each device, and what could not be compared."""
        self._print(_summary(compared, unrun))

    def _print(self, lines: Iterator[Line]) -> None:
        chapter = Chapter("", tuple(map(Paragraph, lines)))
        if chapter.blocks and not self._console.quiet:
            show(Document("", (chapter,)), self._console, soft_wrap=True)


def _parity(parity: ParityResult) -> Iterator[Line]:
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
    line = divergence.place.line
    source = linecache.getline(line.file, line.line).strip() if line else ""
    if source:
        yield Span(f"      {source}", "info")
    first_line, *others = f"{KINDS[divergence.kind]}: {divergence.why}".split("\n")
    yield f"      {first_line}"
    yield from others


def _times(divergence: OperatorDivergence) -> str:
    return f", {divergence.count} times" if divergence.count > 1 else ""


def _summary(compared: list[ParityResult], unrun: list[tuple[str, str, str]]) -> Iterator[Line]:
    for device in dict.fromkeys(map(_device, compared)) if len(compared) > 1 else ():
        here = [parity for parity in compared if _device(parity) == device]
        agree = sum(parity.agrees for parity in here)
        diverge = sum(bool(parity.divergences) for parity in here)
        rest = len(here) - agree - diverge
        counts = f": {agree:,} agree, {diverge:,} diverge, {sum(each.compared for each in here):,} operators compared"
        yield (Span(device, "strong"), counts + (f", {rest:,} without any" if rest else ""))
    for target, device, why in unrun:
        yield (Span("not compared: ", "warn"), f"{target} on {device}: {why}")
