"""The report: what was measured, as a plain value that can be stored, compared and drawn.

Nothing here needs torch. Drawing (terminal, Markdown, HTML) lives in the modules beside this one, imported when needed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from assay._atomic import write_text
from assay.errors import ConfigError, ShapeError, describe
from assay.report.environment import environment
from assay.report.plain import Cell, Plain
from assay.report.plots import Plot
from assay.report.samples import Samples
from assay.report.slices import Slice
from assay.report.stored import read_json, read_text, to_json
from assay.report.text import number
from assay.report.value import Value

SCHEMA = "assay.report/3"
"""The first entry of every stored report. Its number changes when a reader of the old form could not read the new."""

FILE = "report.json"
"""The name of a report's file in a folder."""


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
        samples: what each sample contributed, so that reports can be compared sample by sample.
        slices: the same metrics on parts of the samples.
        min_slice_size: slices of fewer samples are shown, but say too little to be called the worst.

    Raises:
        ConfigError: two slices have the same name, or a value is not the mean of the column that it names.
        ShapeError: a slice does not fit the samples.
    """

    name: str
    values: tuple[Value, ...] = ()
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()
    note: str = ""
    samples: Samples | None = None
    slices: tuple[Slice, ...] = ()
    min_slice_size: int = 1

    def _check(self) -> None:
        _unique("Section.slices", [each.name for each in self.slices])
        for value in self.values:
            value.check_column(self.samples)
        for each in self.slices:
            each.check_samples(self.samples)


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
        _unique("Report.sections", [section.name for section in self.sections])

    def to_json(self) -> str:
        """The report as JSON, schema ``assay.report/3``, with every digit and a digest of the whole.

        NaN and infinities, which JSON lacks, are the strings ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``; in the
        cells of tables, which may be text too, they are ``{"number": "NaN"}``.
        """
        return to_json(self, SCHEMA)

    @classmethod
    def from_json(cls, text: str, where: str = "report") -> Self:
        """The report that `to_json` wrote.

        Args:
            text: what `to_json` gave.
            where: what to call it in messages, mostly the name of the file.

        Raises:
            StateError: the text was cut short or changed, is not a report, or has another schema.
        """
        return cls.from_data(read_json(text, where, SCHEMA), where)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report as JSON; the file is whole or not there.

        Args:
            path: where to, mostly ``*.json``.
        """
        return write_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Args:
            path: the file, or a folder that holds it as ``report.json``.

        Raises:
            StateError: the file was cut short or changed, is not a report, or has another schema.
        """
        file = Path(path) / FILE if Path(path).is_dir() else Path(path)
        return cls.from_json(read_text(file), os.fspath(file))

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the report as one HTML page that needs nothing else: no network, no script from elsewhere."""
        from assay.report.html import to_html

        return write_text(path, to_html(self))

    def to_markdown(self) -> str:
        """The report as Markdown, for a pull request or a model card."""
        from assay.report.markdown import to_markdown

        return to_markdown(self)

    def show(self, *, verbose: bool = True) -> None:
        """Print the report to the terminal; plain text where the output is not one.

        Args:
            verbose: whether to print every table and plot; else values, slices and notes.
        """
        from assay.report.terminal import show

        show(self, verbose=verbose)

    def __str__(self) -> str:
        """The summary: values with their intervals, slices and notes."""
        from assay.report.terminal import to_text

        return to_text(self, 80, verbose=False).strip("\n")

    def __repr__(self) -> str:
        """One line: the title, the sections, and the values of the first one."""
        values = self.sections[0].values if self.sections else ()
        shown = [f"{value.name} {number(value.value)}" for value in values[:4]] + ["…"] * (len(values) > 4)
        return f"<Report {self.title!r}: {len(self.sections)} section(s); {', '.join(shown)}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What a notebook shows: the summary."""
        printer.text(str(self))


def _unique(what: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            got = f"{name!r} {names.count(name)} times"
            part = what.rpartition(".")[2].removesuffix("s")
            raise ConfigError(describe(what, got, "unique names", f"Give each {part} a name of its own"))
