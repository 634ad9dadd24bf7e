"""The report as Markdown: headings, tables, one sentence a plot."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.report import text
from assay.report.plain import Cell
from assay.report.report import Report, Section
from assay.report.sliced import Slices, slices_of
from assay.report.value import Value, methods
from assay.report.worst import worst_errors


def to_markdown(report: Report) -> str:
    r"""Write a report for a pull request, a model card or a log.

    Example:
        >>> from assay.report import Value
        >>> section = Section("test", [Value("accuracy", 0.94172)])
        >>> print(to_markdown(Report("digits", [section], "cpu", created="today")))
        # digits
        <BLANKLINE>
        cpu · today
        <BLANKLINE>
        ## test
        <BLANKLINE>
        | metric | value |
        |:--|--:|
        | accuracy | 0.9417 |
        <BLANKLINE>
    """
    facts = [escape(fact) for fact in (report.device, report.created) if fact]
    if report.duration_s is not None:
        facts.append(text.seconds(report.duration_s))
    parts = [f"# {escape(report.title)}", " · ".join(facts), *map(escape, report.notes)]
    for section in report.sections:
        parts += _section(section)
    return "\n\n".join(parts) + "\n"


def _section(section: Section) -> list[str]:
    parts = [f"## {escape(section.name)}"]
    if section.note:
        parts.append(escape(section.note))
    if section.values:
        parts += [_values(section), *map(escape, methods(section.values))]
    if slices := slices_of(section):
        parts += _slices(slices)
    worst = worst_errors(section)
    for table in (*([worst] if worst else []), *section.tables):
        parts += [f"### {escape(table.name)}", _table(table.columns, table.rows, text.rows(table.rows))]
        parts += [escape(table.note)] if table.note else []
    parts += [f"**{escape(plot.name)}**: {escape(plot.summary())}" for plot in section.plots]
    return parts


def _values(section: Section) -> str:
    """The headline numbers; columns that would be empty are left out, and what is said below the table."""
    rows: list[tuple[Cell, ...]] = []
    for value in section.values:
        interval = text.interval(value.lower, value.upper) or None
        rows.append((value.name, value.value, interval, value.count, None if interval else value.note or None))
    names = ("metric", "value", "interval", "n", "note")
    used = [i for i in range(len(names)) if i < 2 or any(row[i] is not None for row in rows)]
    columns = tuple(names[i] for i in used)
    cells = tuple(tuple("" if row[i] is None else row[i] for i in used) for row in rows)
    return _table(columns, cells, [[text.cell(cell) for cell in row] for row in cells])


def _slices(slices: Slices) -> list[str]:
    """The slices with the interval beside each number; the worst of a metric is bold."""
    lines = [["slice", "n", *map(escape, slices.metrics)], [":--", *["--:"] * (1 + len(slices.metrics))]]
    for row in slices.rows:
        cells = [_slice_value(value, worst) for value, worst in zip(row.values, row.is_worst, strict=True)]
        lines.append([escape(row.name), f"{row.count:,}", *cells])
    head, sides, *rows = lines
    table = "\n".join([_row(head), "|" + "|".join(sides) + "|", *map(_row, rows)])
    said = [escape(slices.note()), *map(escape, methods(slices.values()))]
    return ["### Slices", table, *[" ".join(part for part in said if part)]]


def _slice_value(value: Value | None, is_worst: bool) -> str:
    if value is None:
        return text.UNDEFINED
    number = f"**{escape(text.number(value.value))}** worst" if is_worst else escape(text.number(value.value))
    return f"{number} {escape(text.interval(value.lower, value.upper))}".rstrip()


def _table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], shown: Sequence[Sequence[str]]) -> str:
    """A table of cells as they are shown; columns of numbers stand to the right."""
    sides = [":--" if not rows or isinstance(rows[0][i], str) else "--:" for i in range(len(columns))]
    lines = [map(escape, columns), sides, *(map(escape, row) for row in shown)]
    first, second, *rest = (list(line) for line in lines)
    return "\n".join([_row(first), "|" + "|".join(second) + "|", *map(_row, rest)])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(content: str) -> str:
    """Text that Markdown and the HTML behind it leave as it is."""
    content = text.clean(content).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~$!])", r"\\\1", content)
