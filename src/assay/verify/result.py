"""What a verification found: checks with their outcomes, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Self, TypeAlias

from assay._records import Record
from assay.errors import plural
from assay.render import Document, Viewable
from assay.render.document import Chapter, DataGrid, GridCell, GridColumn, GridRow, Paragraph, Span
from assay.report.gating.gate_result import EXIT_CODES

Level: TypeAlias = Literal["file", "recount", "rerun"]
Outcome: TypeAlias = Literal["pass", "fail", "not checked"]
_STYLES = {"pass": "good", "fail": "strong bad", "not checked": "warn", "not enough evidence": "warn"}


class VerificationCheck(Record):
    """One thing that was checked.

    Args:
        level: how: ``"file"``, ``"recount"`` or ``"rerun"``.
        what: what was checked.
        outcome: ``"pass"``, ``"fail"`` or ``"not checked"``.
        found: what was found, or why it was not checked.
        is_needed: whether the verdict is open as long as no level has checked it.
    """

    level: Level
    what: str
    outcome: Outcome
    found: str = ""
    is_needed: bool = False


class Verification(Record, Viewable, schema="assay.verification/1"):
    """What a verification found.

    Args:
        outcome: ``"fail"`` where a check failed; ``"not enough evidence"`` where a value was checked at no level; else
            ``"pass"``.
        checks: what was checked.
        report: the title of the report, or its file where it could not be read.
    """

    outcome: str
    checks: tuple[VerificationCheck, ...]
    report: str

    @classmethod
    def of(cls, report: str, checks: Iterable[VerificationCheck]) -> Self:
        """The verdict of checks; what a later level checked is no longer open."""
        checks = tuple(checks)
        failed = any(each.outcome == "fail" for each in checks)
        made_again = any(each.level != "file" and each.outcome == "pass" for each in checks)
        is_open = any(each.is_needed and not (made_again and each.level == "file") for each in checks)
        return cls("fail" if failed else "not enough evidence" if is_open else "pass", checks, report)

    @property
    def exit_code(self) -> int:
        """0 for a pass, 1 for a failure, 2 for not enough evidence."""
        return EXIT_CODES[self.outcome]

    def __repr__(self) -> str:
        """One line: the verdict, and of how many checks."""
        return f"<Verification {self.report!r}: {self.outcome}; {plural(len(self.checks), 'check')}>"

    def to_document(self) -> Document:
        """What is shown: a row a check, then the verdict."""
        columns = (GridColumn(""), GridColumn("level"), GridColumn("what"), GridColumn(""))
        grid = DataGrid(columns, tuple(map(_row, self.checks)), header=False)
        line = f"{self.outcome}: {plural(len(self.checks), 'check')}; exit code {self.exit_code}"
        verdict = Paragraph(Span(line, _STYLES[self.outcome]))
        return Document(f"{self.report}: {self.outcome}", (Chapter("", (grid, verdict)),), level=3)


def _row(check: VerificationCheck) -> GridRow:
    mark = "FAIL" if check.outcome == "fail" else check.outcome
    return GridRow(
        (
            GridCell(Span(mark, _STYLES[check.outcome]), verdict=True),
            GridCell(check.level),
            GridCell(check.what),
            GridCell(Span(check.found, "faint")),
        )
    )
