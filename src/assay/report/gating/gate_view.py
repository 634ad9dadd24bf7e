"""What a gate found as a document: a row a rule, then the outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.errors import plural
from assay.render import text
from assay.render.document import Chapter, DataGrid, Document, GridCell, GridColumn, GridRow, Paragraph, Span

if TYPE_CHECKING:
    from assay.report.gating.gate_result import Gate, GateCheck

ASSUMPTION = (
    "Intervals hold at any number of looks, if samples are added in an order that does not depend on what they show, "
    "and models and rules stay the same."
)
_STYLES = {"pass": "good", "fail": "strong bad", "not enough evidence": "warn"}
_SIGNS = {
    "min": "≥",
    "max": "≤",
    "max-drop": "drops by ≤",
    "max-rise": "rises by ≤",
    "min-ratio": "of the baseline ≥",
    "max-ratio": "of the baseline ≤",
    "worst-slice": "≥",
    "worst-slice-max": "≤",
}
_COLUMNS = (GridColumn(""), GridColumn("rule"), GridColumn("found", "number"), GridColumn(""))


def gate_document(gate: Gate) -> Document:
    """What is shown of a gate."""
    grid = DataGrid(_COLUMNS, tuple(map(_row, gate.checks)), header=False)
    outcome = Paragraph(Span(summary(gate), _STYLES[gate.outcome]))
    notes = (ASSUMPTION,) if gate.sequential else ()
    if gate.rules_sha256:
        notes = (*notes, f"Rules of a file with SHA-256 {gate.rules_sha256}.")
    return Document(f"{gate.report}: {gate.outcome}", (Chapter("", (grid, outcome)),), notes=notes, level=3)


def _row(check: GateCheck) -> GridRow:
    mark = "FAIL" if check.outcome == "fail" else check.outcome
    number = "" if check.value is None else text.number(check.value)
    return GridRow(
        (
            GridCell(Span(mark, _STYLES[check.outcome]), verdict=True),
            GridCell(condition(check)),
            GridCell(Span(number, "strong"), check.value),
            GridCell(Span(because(check), "faint")),
        )
    )


def condition(check: GateCheck) -> str:
    """What had to hold, of what."""
    return f"{check.where or check.rule.metric} {_SIGNS[check.rule.kind]} {check.rule.bound:g}"


def because(check: GateCheck) -> str:
    """The interval, how it was found, and the reason."""
    parts = [text.interval(check.lower, check.upper), check.method, check.reason]
    return "; ".join(part for part in parts if part)


def summary(gate: Gate) -> str:
    """The outcome in a sentence.

    Example:
        >>> from assay.report import Gate
        >>> summary(Gate("pass", (), 0.95, False, "digits"))
        'pass: 0 rules, by intervals of 95 %; exit code 0'
    """
    by = "by the numbers alone" if gate.point else f"by intervals of {100 * gate.confidence_level:g} %"
    by += " that hold at any number of looks" if gate.sequential else ""
    return f"{gate.outcome}: {plural(len(gate.checks), 'rule')}, {by}; exit code {gate.exit_code}"
