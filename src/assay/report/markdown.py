"""The report as Markdown: headings, tables, one sentence a plot."""

from __future__ import annotations

import re

from assay.report import text
from assay.report.plain import Cell
from assay.report.report import Report, Section, Table


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
        parts.append(_values(section))
    for table in section.shown_tables():
        parts += [f"### {escape(table.name)}", _table(table.columns, table.rows)]
        parts += [escape(table.note)] if table.note else []
    parts += [f"**{escape(plot.name)}**: {escape(plot.summary())}" for plot in section.plots]
    return parts


def _values(section: Section) -> str:
    """The headline numbers; columns that would be empty are left out."""
    rows: list[tuple[Cell, ...]] = [
        (v.name, v.value, text.interval(v.lower, v.upper) or None, v.count, v.note or None) for v in section.values
    ]
    names = ("metric", "value", "interval", "n", "note")
    used = [i for i in range(len(names)) if i < 2 or any(row[i] is not None for row in rows)]
    columns = tuple(names[i] for i in used)
    return _table(columns, tuple(tuple("" if row[i] is None else row[i] for i in used) for row in rows))


def _table(columns: tuple[str, ...], rows: tuple[tuple[Cell, ...], ...]) -> str:
    table = Table("", columns, rows)
    sides = [":--" if not rows or isinstance(rows[0][i], str) else "--:" for i in range(len(columns))]
    lines = [map(escape, table.columns), sides, *(map(escape, map(text.cell, row)) for row in table.rows)]
    first, second, *rest = (list(line) for line in lines)
    return "\n".join([_row(first), "|" + "|".join(second) + "|", *map(_row, rest)])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(content: str) -> str:
    """Text that Markdown and the HTML behind it leave as it is."""
    content = text.clean(content).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~$!])", r"\\\1", content)
