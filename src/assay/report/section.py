"""What was measured on one thing, a part of a report: values, tables, plots, samples and slices."""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from assay._records import OPTIONAL, CellValue, Record
from assay.errors import ConfigError, ShapeError, describe, plural
from assay.render.plots import Plot
from assay.render.text import number
from assay.report.grouped import GroupedValues
from assay.report.origin import SectionCounts
from assay.report.per_sample.resampling import Resampling
from assay.report.per_sample.samples import Samples
from assay.report.slices import Slice, spaced
from assay.report.value import Value
from assay.report.worst_queries import WorstQueries


class Table(Record):
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
    rows: tuple[tuple[CellValue, ...], ...]
    note: str = ""

    def _check(self) -> None:
        for i, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                expected = f"{len(self.columns)} cells, one a column"
                do = "Use None for an empty cell"
                raise ShapeError(describe(f"Table.rows[{i}]", f"{len(row)} cells", expected, do))


class Section(Record):
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
        resampling: which samples the replicates of the values rest on.
        worst_queries: the worst queries of a ranking metric, with their documents.
        stopped: whether the run ended early, by what its samples showed: intervals and tests of one look do not hold.
        counts: what was counted, from which the values can be computed again.
        by: for each column of many values that was asked for, the metrics of each value.

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
    resampling: Resampling | None = None
    worst_queries: WorstQueries | None = None
    stopped: bool = field(default=False, metadata=OPTIONAL)
    counts: SectionCounts | None = field(default=None, metadata=OPTIONAL)
    by: tuple[GroupedValues, ...] = field(default=(), metadata=OPTIONAL)

    def _check(self) -> None:
        check_unique("Section.slices", [each.name for each in self.slices])
        for value in self.values:
            value.check_terms(self.samples)
        for each in self.slices:
            each.check_samples(self.samples)

    def __repr__(self) -> str:
        """One line: the name, the values, and how many slices there are."""
        shown = [f"{value.name} {number(value.value)}" for value in self.values[:4]] + ["…"] * (len(self.values) > 4)
        slices = f"; {plural(len(self.slices), 'slice')}" if self.slices else ""
        return f"<Section {self.name!r}: {', '.join(shown) or 'no values'}{slices}>"

    def of_slice(self, name: str) -> Section | None:
        """One slice as a section of its own; None where there is no slice of this name."""
        part = next((each for each in self.slices if each.name == name), None)
        part = part or next((each for each in self.slices if spaced(each.name) == spaced(name)), None)
        if part is None:
            return None
        known = None if part.members is None else self.samples
        samples = None if known is None or part.members is None else known.where(part.members.values)
        return Section(self.name, part.values, samples=samples, resampling=part.resampling, stopped=self.stopped)


def check_unique(what: str, names: list[str]) -> None:
    """Raise where a name comes twice."""
    for name, times in Counter(names).items():
        if times > 1:
            part = what.rpartition(".")[2].removesuffix("s")
            got = f"{name!r} {times} times"
            raise ConfigError(describe(what, got, "unique names", f"Give each {part} a name of its own"))
