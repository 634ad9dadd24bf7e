"""Parity in the terminal."""

from __future__ import annotations

import linecache

from rich.console import Console
from rich.text import Text

from assay.audit.parity.replay import KINDS, OperatorDivergence
from assay.audit.parity.runs import ParityResult

MOST = 12  # places that are told of one program


class Shower:
    """Prints each comparison when it is done, and a summary at the end.

    Args:
        silent: print nothing.
    """

    def __init__(self, *, silent: bool = False) -> None:
        self._console = Console(quiet=silent, highlight=False)

    def show(self, parity: ParityResult) -> None:
        """Print one comparison."""
        head = Text.assemble((parity.target, "bold"), f" on {_device(parity)}, {parity.mode}: ", _verdict(parity))
        self._print(head)
        for number, divergence in enumerate(parity.divergences[:MOST]):
            self._print(_told(divergence, first=number == 0))
        if len(parity.divergences) > MOST:
            self._print(Text(f"  and {len(parity.divergences) - MOST} places more (--json tells all)"))
        for note in parity.notes[:MOST]:
            why = f"  note: {KINDS[note.kind]}, at {note.place}{_times(note)}: {note.why}"
            self._print(Text(why, style="dim"))

    def sum_up(self, compared: list[ParityResult], unrun: list[tuple[str, str, str]]) -> None:
        """Print how many agree on each device, and what could not be compared."""
        if len(compared) > 1:
            self._print(Text("\n").join(_table(compared)))
        for target, device, why in unrun:
            self._print(Text.assemble(("not compared: ", "yellow"), f"{target} on {device}: {why}"))

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)


def _device(parity: ParityResult) -> str:
    return parity.device if parity.engine == "real" else f"{parity.device} (pretend, {parity.engine})"


def _verdict(parity: ParityResult) -> Text:
    numbers = f"{parity.compared} operators compared" + (f", {parity.random} random" if parity.random else "")
    if parity.agrees:
        return Text(f"{numbers}, all agree", style="green")
    if not parity.divergences:
        return Text("no operator was compared", style="yellow")
    places = "1 place diverges" if len(parity.divergences) == 1 else f"{len(parity.divergences)} places diverge"
    return Text(f"{numbers}, {places}", style="red")


def _told(divergence: OperatorDivergence, *, first: bool) -> Text:
    name = divergence.operator or divergence.kind
    text = Text.assemble("  ", ("first: " if first else "", "red"), (name, "bold"), f" at {divergence.place}")
    text.append(_times(divergence))
    line = divergence.place.line
    source = linecache.getline(line.file, line.line).strip() if line else ""
    if source:
        text.append(f"\n      {source}", style="cyan")
    text.append(f"\n      {KINDS[divergence.kind]}: {divergence.why}")
    return text


def _times(divergence: OperatorDivergence) -> str:
    return f", {divergence.count} times" if divergence.count > 1 else ""


def _table(compared: list[ParityResult]) -> list[Text]:
    lines = []
    for device in dict.fromkeys(_device(parity) for parity in compared):
        here = [parity for parity in compared if _device(parity) == device]
        agree = sum(parity.agrees for parity in here)
        diverge = sum(bool(parity.divergences) for parity in here)
        operators = sum(parity.compared for parity in here)
        line = Text.assemble(
            (device, "bold"), f": {agree:,} agree, {diverge:,} diverge, {operators:,} operators compared"
        )
        rest = len(here) - agree - diverge
        lines.append(line.append(f", {rest:,} without any" if rest else ""))
    return lines
