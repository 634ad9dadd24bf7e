"""An audit as a document: findings by file and line with the line itself, then a grid of rules and devices."""

from __future__ import annotations

import linecache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from assay.audit.findings.finding import Finding
from assay.audit.findings.judge import relative
from assay.audit.findings.rulebook import rules
from assay.audit.watching.observations import Unrun
from assay.errors import plural
from assay.render import Bullets, Chapter, DataGrid, Document, GridCell, GridColumn, GridRow, KeyValues, Notes, Span
from assay.render.document import Paragraph, lines_of
from assay.render.text import first_names

if TYPE_CHECKING:
    from assay.audit.findings.result import Audit

STYLES = {"error": "strong bad", "warning": "warn", "note": "info"}
MAX_NAMES = 3  # metrics that a finding names; of the others it says how many
MAX_ORIGINS = 4  # lines that a finding comes from
MAX_PARTS = 12  # parts that were known not to run; the JSON has all
AFTER = "seen in a second run, in which the hard-coded device was taken for the one there is"


def audit_document(audit: Audit, *, notes: bool) -> Document:
    """What is shown of an audit."""
    shown = [finding for finding in audit.open if notes or finding.severity != "note"]
    shown.sort(key=lambda finding: (finding.file, finding.line))
    chapters = [
        Chapter(relative(file, Path.cwd()) if file else "no line of Python", tuple(map(_finding, group)))
        for file, group in groupby(shown, lambda finding: finding.file)
    ]
    if audit.table():
        chapters.append(Chapter("", (_grid(audit),)))
    for known in (False, True):
        if parts := [part for part in audit.unrun if part.known == known]:
            chapters.append(_unrun(parts, known=known))
    return Document(f"Audit of {audit.target}", (*chapters, _end(audit, len(audit.open) - len(shown))))


def _finding(finding: Finding) -> KeyValues:
    where = "; ".join(", ".join(part) for part in (finding.devices, finding.usages) if part)
    head = (
        Span(f"{finding.line}", "strong"),
        "  ",
        Span(finding.severity, STYLES[finding.severity]),
        "  ",
        Span(finding.rule, "strong"),
        Span(f"  {where}", "faint"),
    )
    rows = [*lines_of("", finding.code, "good"), *lines_of("what", finding.what), ("why", f"{finding.why}.")]
    for origin in finding.origins[:MAX_ORIGINS]:
        rows.append(("from", f"{origin.what} at {relative(origin.file, Path.cwd())}:{origin.line}"))
        rows.append(("", Span(linecache.getline(origin.file, origin.line).strip(), "good")))
    if len(finding.origins) > MAX_ORIGINS:
        rows.append(("", Span(f"and {len(finding.origins) - MAX_ORIGINS} more lines (--json names all)", "faint")))
    rows += [("when", AFTER)] if finding.replaced else []
    rows.append(("fix", f"{finding.fix}."))
    if finding.subjects and finding.subjects != (finding.file,):
        rows.append(("in", Span(first_names(finding.subjects, MAX_NAMES), "faint")))
    return KeyValues(tuple(rows), head)


def _grid(audit: Audit) -> DataGrid:
    counts = audit.table()
    devices = list(dict.fromkeys([*audit.devices, *(device for count in counts.values() for device in count)]))
    rows = [
        GridRow(
            (
                GridCell(Span(name, STYLES[rules()[name].severity])),
                *(GridCell(str(count[device]) if count[device] else "·", count[device]) for device in devices),
                GridCell(Span(rules()[name].title, "faint")),
            )
        )
        for name, count in counts.items()
    ]
    numbers = [GridColumn(device or "any", "number") for device in devices]
    return DataGrid((GridColumn("lines", "word"), *numbers, GridColumn("")), tuple(rows))


def _unrun(parts: list[Unrun], *, known: bool) -> Chapter:
    listed = parts[:MAX_PARTS] if known else parts
    lines = [Span(str(part), "faint" if known else "") for part in listed]
    if len(parts) > len(listed):
        lines.append(Span(f"and {len(parts) - MAX_PARTS} more (--json names all)", "faint"))
    return Chapter(f"Left out, {len(parts)}" if known else "Not audited", (Bullets(tuple(lines)),))


def _end(audit: Audit, hidden: int) -> Chapter:
    explained = len(audit.findings) - len(audit.open)
    failed = not audit.open and audit.exit_code() != 0  # a part could not be audited
    count = plural(len({(count.file, count.line, count.rule) for count in audit.open}), "finding")
    verdict = count if audit.open else "not audited" if failed else "no finding"
    summary = f"{verdict}: {plural(audit.subjects, 'target')} on {', '.join(audit.devices)}, in {audit.seconds:.0f} s"
    notes = [f"Devices are pretended, by the rules of torch {audit.torch}; values are the CPU's."]
    notes += [f"{plural(explained, 'finding')} explained by comments (assay: allow)."] if explained else []
    notes += [f"{plural(hidden, 'note')} not printed (--notes)."] if hidden else []
    style = "strong" if audit.open or failed else "strong good"
    return Chapter("", (Paragraph(Span(summary, style)), Notes(tuple(notes))))
