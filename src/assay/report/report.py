"""The report: what was measured, as a plain value that can be stored, compared and drawn.

Nothing here needs torch. Drawing (terminal, Markdown, HTML) lives in the modules beside this one, imported when needed.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from assay._atomic import write_text
from assay.errors import ConfigError, ShapeError, StateError, describe
from assay.report.environment import environment
from assay.report.plain import Cell, Plain, encode
from assay.report.plots import Plot

SCHEMA = "assay.report/1"
"""The first entry of every stored report. Its number changes when a reader of the old form would misread the new."""


@dataclass(frozen=True, eq=False)
class Value(Plain):
    """One number with its name.

    Args:
        name: what was measured.
        value: the number, in full precision; NaN where it is undefined.
        lower: the lower end of an interval that goes with it, if there is one.
        upper: the upper end.
        count: how many samples it rests on.
        note: what a reader must know: what the interval is, why the value is undefined.

    Example:
        >>> Value("accuracy", 0.94, count=450).value
        0.94
    """

    name: str
    value: float
    lower: float | None = None
    upper: float | None = None
    count: int | None = None
    note: str = ""


@dataclass(frozen=True, eq=False)
class Table(Plain):
    """Rows of text, counts and numbers under named columns.

    Args:
        name: the title.
        columns: the N names of the columns.
        rows: rows of N cells each: text, int, float, or None for nothing.
        note: a line below the table.

    Raises:
        ShapeError: a row is longer or shorter than the columns.

    Example:
        >>> Table("per class", ("class", "recall"), [("cat", 0.8), ("dog", 0.9)]).rows[0]
        ('cat', 0.8)
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def _check(self) -> None:
        for i, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                expected = f"{len(self.columns)} cells, one a column"
                do = "Use None for an empty cell"
                raise ShapeError(describe(f"Table.rows[{i}]", f"{len(row)} cells", expected, do))


@dataclass(frozen=True, eq=False)
class Section(Plain):
    """What was measured on one thing: a model, a data set, a slice.

    Args:
        name: the title; unique in a report.
        values: the headline numbers, the most important first.
        tables: details as tables.
        plots: details as plots.
        note: a line below the title.
    """

    name: str
    values: tuple[Value, ...] = ()
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()
    note: str = ""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, eq=False)
class Report(Plain):
    """All that one evaluation found.

    Args:
        title: the title.
        sections: what was measured, in the order in which to show it.
        device: where it ran, as text (``"cpu"``, ``"cuda:0 (NVIDIA H100)"``); empty where that is not known.
        notes: what a reader must know of the whole.
        duration_s: how long it took, in seconds.
        created: when, ISO 8601 with the time zone; now unless given.
        environment: the versions of what was used; those of this process unless given.

    Raises:
        ConfigError: two sections have the same name.

    Example:
        >>> report = Report("digits", [Section("test", values=[Value("accuracy", 0.94, count=450)])])
        >>> Report.from_json(report.to_json()) == report
        True
    """

    title: str
    sections: tuple[Section, ...] = ()
    device: str = ""
    notes: tuple[str, ...] = ()
    duration_s: float | None = None
    created: str = field(default_factory=_now)
    environment: dict[str, str] = field(default_factory=environment)

    def _check(self) -> None:
        names = [section.name for section in self.sections]
        for name in names:
            if names.count(name) > 1:
                got, do = f"{name!r} {names.count(name)} times", "Give each section a name of its own"
                raise ConfigError(describe("Report.sections", got, "unique names", do))

    def to_json(self) -> str:
        """The report as JSON, schema ``assay.report/1``, with every digit.

        NaN and infinities, which JSON lacks, are the strings ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``; in the
        cells of tables, which may be text too, they are ``{"number": "NaN"}``.
        """
        text = json.dumps({"schema": SCHEMA} | encode(self), indent=1, allow_nan=False)
        # A series of numbers belongs on one line. Strings hold no line break (it is written \\n): only lists match.
        return re.sub(r"\[\n[^\[\]{}\"]*\]", lambda series: " ".join(series[0].split()), text) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str = "report") -> Self:
        """The report that `to_json` wrote.

        Args:
            text: what `to_json` gave.
            where: what to call it in messages, mostly the name of the file.

        Raises:
            StateError: the text was cut short, is not a report, or has another schema.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            got = f"JSON that ends or breaks at character {getattr(error, 'pos', 0):,} of {len(text):,}"
            do = "The file was cut short or changed: write the report again"
            raise StateError(describe(where, got, "a whole report", do)) from error
        found = data.pop("schema", None) if isinstance(data, dict) else None
        if found != SCHEMA:
            do = "Read it with the version of assay that wrote it, or write the report again"
            raise StateError(describe(where, f"schema {found!r:.80}", f"schema {SCHEMA!r}", do))
        return cls.from_data(data, where)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report as JSON; the file is whole or not there.

        Args:
            path: where to, mostly ``*.json``.
        """
        return write_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Raises:
            StateError: the file was cut short, is not a report, or has another schema.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            do = "Name a file that Report.save wrote"
            raise StateError(describe(os.fspath(path), "bytes that are not UTF-8", "a report in JSON", do)) from error
        return cls.from_json(text, os.fspath(path))

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the report as one HTML page that needs nothing else: no network, no script from elsewhere."""
        from assay.report.html import to_html

        return write_text(path, to_html(self))

    def to_markdown(self) -> str:
        """The report as Markdown, for a pull request or a model card."""
        from assay.report.markdown import to_markdown

        return to_markdown(self)

    def show(self) -> None:
        """Print the report to the terminal; plain text where the output is not one."""
        from assay.report.terminal import show

        show(self)
