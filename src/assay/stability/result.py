"""What a check of stability found: one row for each thing that was changed, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, Self, TypeAlias

from assay._records import Record
from assay.errors import plural
from assay.render import Document, Viewable
from assay.render.document import (
    Bullets,
    Chapter,
    DataGrid,
    GridCell,
    GridColumn,
    GridRow,
    Line,
    Notes,
    Paragraph,
    Span,
)

StabilityVerdict: TypeAlias = Literal["same bits", "rounding", "depends", "not checked"]
_STYLES = {"same bits": "good", "rounding": "good", "depends": "strong bad", "not checked": "warn"}
_OUTCOME_STYLES = {"stable": "good", "depends": "strong bad", "not enough evidence": "warn"}
_EXIT_CODES = {"stable": 0, "depends": 1, "not enough evidence": 2}


class StabilityCheck(Record):
    """One comparison: the outputs for the same samples, with one thing changed.

    Args:
        what: what was changed, such as ``"batch size"``.
        compared: what was compared, such as ``"batches of 7 with batches of 64"``.
        verdict: ``"same bits"``; ``"rounding"``: no more than the rounding of the dtype explains; ``"depends"``; or
            ``"not checked"``.
        largest: the largest absolute difference of an output.
        ulps: the largest difference in units of the last place of the largest output of its sample.
        samples: how many samples were compared.
        flips: how many of them have another decision (argmax); None where outputs are no scores of classes.
        sample: the place of the sample with the largest difference; None where no output differs.
        where: the first operator whose result differs, and the module that it is in; empty where unknown.
        cause: the likely cause, or why this was not checked.
        is_needed: whether the verdict of all checks is open without this one.
    """

    what: str
    compared: str
    verdict: StabilityVerdict
    largest: float = 0.0
    ulps: float = 0.0
    samples: int = 0
    flips: int | None = None
    sample: int | None = None
    where: str = ""
    cause: str = ""
    is_needed: bool = False


class Stability(Record, Viewable, schema="assay.stability/1"):
    """What a check of stability found.

    Args:
        outcome: ``"depends"`` where a check says so; ``"not enough evidence"`` where one that is needed was not made;
            else ``"stable"``.
        checks: the comparisons.
        title: the name of the model.
        notes: how differences were judged, and what was left out.
    """

    outcome: str
    checks: tuple[StabilityCheck, ...]
    title: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, title: str, checks: Iterable[StabilityCheck], notes: Iterable[str] = ()) -> Self:
        """The verdict of comparisons."""
        checks = tuple(checks)
        depends = any(each.verdict == "depends" for each in checks)
        is_open = not checks or any(each.is_needed and each.verdict == "not checked" for each in checks)
        outcome = "depends" if depends else "not enough evidence" if is_open else "stable"
        return cls(outcome, checks, title, tuple(notes))

    @property
    def exit_code(self) -> int:
        """0 for a stable model, 1 for one that depends on what should not matter, 2 for not enough evidence."""
        return _EXIT_CODES[self.outcome]

    @property
    def causes(self) -> tuple[str, ...]:
        """The likely causes of what depends, each once."""
        return tuple(dict.fromkeys(each.cause for each in self.checks if each.verdict == "depends"))

    def __repr__(self) -> str:
        """One line: the verdict, and of how many checks."""
        return f"<Stability {self.title!r}: {self.outcome}; {plural(len(self.checks), 'check')}>"

    def to_document(self) -> Document:
        """What is shown: a row a check, the causes and the places, then the verdict."""
        names = ("", "changed", "compared", "difference", "decisions")
        grid = DataGrid(tuple(map(GridColumn, names)), tuple(map(_row, self.checks)))
        line = f"{self.outcome}: {plural(len(self.checks), 'check')}; exit code {self.exit_code}"
        verdict = Paragraph(Span(line, _OUTCOME_STYLES[self.outcome]))
        about = Bullets(tuple(_reasons(self.checks)))
        notes = Notes(self.notes)
        chapter = Chapter("", (grid, about, notes, verdict) if about.items else (grid, notes, verdict))
        return Document(f"{self.title}: {self.outcome}", (chapter,), level=3)


def _row(check: StabilityCheck) -> GridRow:
    is_compared = check.samples > 0
    flips = "" if check.flips is None else f"{check.flips:,} of {check.samples:,}"
    difference = f"{check.largest:.3g}" + (f" ({check.ulps:.2g} ulps)" if check.largest else "")
    return GridRow(
        (
            GridCell(Span(check.verdict, _STYLES[check.verdict]), verdict=True),
            GridCell(check.what),
            GridCell(Span(check.compared, "faint")),
            GridCell(difference if is_compared else "", check.largest if is_compared else None),
            GridCell(flips if is_compared else ""),
        )
    )


def _reasons(checks: tuple[StabilityCheck, ...]) -> Iterator[Line]:
    """Each cause with the checks that have it: what depends first."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for check in sorted(checks, key=lambda each: each.verdict != "depends"):
        text = "; ".join(filter(None, (check.cause, check.where)))
        if text:
            found.setdefault((check.verdict, text), {})[check.what] = None
    for (verdict, text), names in found.items():
        yield Span(f"{', '.join(names)}: ", _STYLES[verdict]), Span(text, "" if verdict == "depends" else "faint")
