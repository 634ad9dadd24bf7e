"""What the checks of a device found: one file to send, and one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from assay._records import Record
from assay.conformance.outcomes import KINDS, CheckOutcome
from assay.errors import plural
from assay.render import Chapter, DataGrid, Document, GridCell, GridColumn, GridRow, Paragraph, Span, Viewable

EXIT_CODES = {"holds": 0, "differs": 1, "not enough evidence": 2}
SHOWN = 6
_STYLES = {"holds": "good", "differs": "strong bad", "not enough evidence": "warn"}
PRETENDED = "PRETENDED: computed by the CPU by the facts about the device. It says nothing of a real one."


class DeviceCheck(Record, Viewable, schema="assay.device-check/1"):
    """What the checks of a device found.

    Args:
        device: the device, such as ``"mps"``.
        how: ``"real"``, or ``"pretended"``: then it says nothing of a real device.
        name: the name of the device.
        machine: the system, its processor, and the releases of Python, torch and assay.
        expected_of: the release of torch by which devices are judged, and the digest of what is expected.
        created: when the checks began, in UTC.
        duration_s: how long they took, in seconds.
        outcomes: what each check found.
    """

    device: str
    how: Literal["real", "pretended"]
    name: str
    machine: dict[str, str]
    expected_of: dict[str, str]
    created: str
    duration_s: float
    outcomes: tuple[CheckOutcome, ...]

    @property
    def outcome(self) -> str:
        """``"differs"`` where a check does, ``"not enough evidence"`` where none of a kind was seen, else ``"holds"``.

        Where the program waits for a device is left out of that: most devices do not tell.
        """
        if self.differing:
            return "differs"
        seen = {each.kind for each in self.outcomes if each.result == "holds"}
        return "holds" if seen >= KINDS.keys() - {"waits"} else "not enough evidence"

    @property
    def exit_code(self) -> int:
        """0 where all holds, 1 where something differs, 2 for not enough evidence."""
        return EXIT_CODES[self.outcome]

    @property
    def differing(self) -> tuple[CheckOutcome, ...]:
        """The outcomes that differ from what is expected."""
        return tuple(each for each in self.outcomes if each.result == "differs")

    def __repr__(self) -> str:
        """One line: the device, whether it is real, and the verdict."""
        return f"<DeviceCheck {self.device} ({self.how}): {self.outcome}; {plural(len(self.outcomes), 'check')}>"

    def to_document(self) -> Document:
        """What is shown: a row a kind of check, what differs, and the verdict."""
        return Document("", tuple(_chapters(self)))


def _chapters(check: DeviceCheck) -> Iterator[Chapter]:
    machine = check.machine
    releases = ", ".join(f"{name} {machine[name]}" for name in ("torch", "python", "assay"))
    about = [
        Paragraph((Span(check.device, "strong"), f"  {check.name}")),
        Paragraph(Span(f"{machine['system']}; {releases}; {check.duration_s:.0f} s", "faint")),
    ]
    if check.how == "pretended":
        about.insert(0, Paragraph(Span(PRETENDED, "warn")))
    release = check.expected_of["torch"]
    if not f"{machine['torch']}.".startswith(f"{release.rpartition('.')[0]}."):
        text = f"Operators are judged by torch {release}: other releases may have others."
        about.append(Paragraph(Span(text, "warn")))
    columns = (GridColumn("check"), *(GridColumn(name, "number") for name in ("hold", "differ", "unseen")))
    yield Chapter("", (*about, DataGrid(columns, tuple(_rows(check)))))
    if check.differing:
        yield Chapter(f"{len(check.differing):,} differ", tuple(_differences(check.differing)))
    pretended = " (pretended)" if check.how == "pretended" else ""
    line = f"{check.outcome}{pretended}: {plural(len(check.outcomes), 'check')}; exit code {check.exit_code}"
    yield Chapter("", (Paragraph(Span(line, _STYLES[check.outcome])),))


def _rows(check: DeviceCheck) -> Iterator[GridRow]:
    for kind, text in KINDS.items():
        counts = Counter(each.result for each in check.outcomes if each.kind == kind)
        if counts:
            bad = Span(f"{counts['differs']:,}", "strong bad" if counts["differs"] else "faint")
            unseen = Span(f"{counts['not seen']:,}", "faint")
            yield GridRow((GridCell(text), GridCell(f"{counts['holds']:,}"), GridCell(bad), GridCell(unseen)))


def _differences(differing: tuple[CheckOutcome, ...]) -> Iterator[Paragraph]:
    for each in differing[:SHOWN]:
        yield Paragraph((Span(f"{each.kind}: ", "faint"), Span(each.name, "strong")))
        yield Paragraph((Span("  got       ", "faint"), each.got))
        yield Paragraph((Span("  expected  ", "faint"), each.expected))
    if len(differing) > SHOWN:
        yield Paragraph(Span(f"The file has {len(differing) - SHOWN:,} more.", "faint"))
