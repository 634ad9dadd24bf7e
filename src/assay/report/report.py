"""The report: what was measured, as a plain value that can be stored, compared and drawn.

Nothing here needs torch. `Report.to_document` gives what `assay.render` draws: terminal, Markdown, HTML.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from assay._atomic import Location
from assay._records import Record
from assay.errors import ConfigError, MissingDependencyError, describe
from assay.render import Document, Viewable
from assay.render.plots import Bars, Plot, choose_plot
from assay.render.text import number
from assay.report.environment import environment
from assay.report.report_view import report_document
from assay.report.section import Section, check_unique

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCHEMA = "assay.report/6"
"""The first entry of every stored report."""


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _exactly_now() -> str:
    """To the microsecond: two evaluations whose values agree are not the same report."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, eq=False)
class Report(Record, Viewable, schema=SCHEMA):
    """All that one evaluation found.

    Args:
        title: the title.
        sections: what was measured, in the order in which to show it.
        device: where it ran, as text (``"cpu"``, ``"cuda:0 (NVIDIA H100)"``); empty where that is not known.
        notes: what a reader must know of the whole.
        duration_s: how long it took, in seconds.
        created: when, ISO 8601 with the time zone; now by default.
        environment: the versions of what was used; those of this process by default.

    Raises:
        ConfigError: two sections have the same name.

    Example:
        >>> from assay.report.value import Value
        >>> report = Report("digits", [Section("test", values=[Value("accuracy", 0.94, count=450)])])
        >>> Report.from_json(report.to_json()) == report
        True
    """

    title: str
    sections: tuple[Section, ...] = ()
    device: str = ""
    notes: tuple[str, ...] = ()
    duration_s: float | None = None
    created: str = field(default_factory=_exactly_now)
    environment: dict[str, str] = field(default_factory=environment)

    def _check(self) -> None:
        check_unique("Report.sections", [section.name for section in self.sections])

    def to_json(self) -> str:
        """It as JSON; with its samples, unless it is to be saved and they are in a file beside it."""
        from assay.report.sample_files import without_temporary_files

        return Record.to_json(without_temporary_files(self))

    def save(self, path: str | os.PathLike[str]) -> Location:
        """Write it as JSON, to a path or a URL; the file is whole or not there.

        More than `MOST_SAMPLES` samples are written to an Arrow file beside it, which the JSON names with its digest.
        That of a report which was there under this name is removed once the new report is whole.

        Args:
            path: the file, or a folder that is there, in which it is ``report.json``; or a URL.
        """
        from assay.report.sample_files import named_files, remove_files, with_sample_files

        file = self._file_at(path)
        before = named_files(file)
        written = Record.save(with_sample_files(self, file), file)
        if before:
            remove_files(before - named_files(file), file)
        return written

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; the samples in files beside it are read when they are needed.

        Args:
            path: the file, or a folder that holds it as ``report.json``; or a URL.

        Raises:
            StateError: the file was cut short or changed, is of another kind, or of another version.
        """
        from assay.report.sample_files import with_attached_files

        file = cls._file_at(path)
        return with_attached_files(super().load(file), file.parent)

    def to_document(self, *, verbose: bool = True) -> Document:
        """What is shown: values, plots, slices and tables.

        Args:
            verbose: whether to show every table and plot; else values, slices and notes.
        """
        return report_document(self, verbose=verbose)

    def show(self, *, verbose: bool = True) -> None:
        """Print the report to the terminal; plain text where the output is not one.

        Args:
            verbose: whether to print every table and plot; else values, slices and notes.
        """
        from assay.render.terminal import show

        show(self.to_document(verbose=verbose))

    def of_slice(self, name: str) -> Report:
        """What was measured on one slice, as a report: two slices of one model can be compared like two models.

        Slices of different samples are compared with unpaired tests. Where slices share samples these tests are too
        cautious.

        Raises:
            ConfigError: no section has a slice of this name.

        Example:
            >>> from assay.report import Value, compare
            >>> from assay.report.slices import Slice
            >>> day, night = Slice("day", 400, [Value("accuracy", 0.9)]), Slice("night", 120, [Value("accuracy", 0.8)])
            >>> report = Report("street signs", [Section("test", [Value("accuracy", 0.88)], slices=[day, night])])
            >>> round(compare(report.of_slice("day"), report.of_slice("night")).delta("accuracy").difference, 3)
            -0.1
        """
        sections = [part for section in self.sections if (part := section.of_slice(name)) is not None]
        if not sections:
            names = dict.fromkeys(each.name for section in self.sections for each in section.slices)
            expected = f"one of {', '.join(map(repr, names))}" if names else "a report with slices"
            raise ConfigError(describe("slice", repr(name), expected, "Correct the name, or evaluate with --slice"))
        return replace(self, title=f"{self.title}: {name}", sections=tuple(sections))

    def plot(self, name: str = "", axes: Axes | None = None) -> Axes:
        """Draw one of the report's plots with Matplotlib.

        Args:
            name: the title of the plot; by default the first one of all sections, or bars of the values where there is
                none.
            axes: where to draw; by default on axes of a new figure of pyplot.

        Returns:
            The axes.

        Raises:
            ConfigError: there is no such plot.
        """
        from assay.render.svg import to_axes

        plots: list[Plot] = [plot for section in self.sections for plot in section.plots]
        return to_axes(choose_plot(plots + [_bars(section) for section in self.sections if section.values], name), axes)

    def to_dataframe(self) -> Any:
        """The values as a pandas DataFrame, one row a value, also those of slices.

        Returns:
            Columns `section`, `slice` (empty for all samples), `metric`, `value`, `lower`, `upper`, `confidence_level`,
            `count`, `higher_is_better` and `note`.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise MissingDependencyError("pandas", extra="pandas", purpose="Report.to_dataframe") from error
        columns = ("value", "lower", "upper", "confidence_level", "count", "higher_is_better", "note")
        rows = [
            (section.name, name, value.name, *(getattr(value, column) for column in columns))
            for section in self.sections
            for name, values in (("", section.values), *((each.name, each.values) for each in section.slices))
            for value in values
        ]
        return DataFrame(rows, columns=["section", "slice", "metric", *columns])

    def __str__(self) -> str:
        """The summary: values with their intervals, slices and notes."""
        from assay.render.terminal import to_text

        return to_text(self.to_document(verbose=False), 80).strip("\n")

    def __repr__(self) -> str:
        """One line: the title, the sections, and the values of the first one."""
        values = self.sections[0].values if self.sections else ()
        shown = [f"{value.name} {number(value.value)}" for value in values[:4]] + ["…"] * (len(values) > 4)
        return f"<Report {self.title!r}: {len(self.sections)} section(s); {', '.join(shown)}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What a notebook shows: the summary."""
        printer.text(str(self))


def _bars(section: Section) -> Bars:
    """The values of a section, with intervals where all have one."""
    values = section.values
    ends = [(each.lower, each.upper) for each in values]
    lower, upper = zip(*ends, strict=True) if all(None not in each for each in ends) else ((), ())
    return Bars(section.name, tuple(each.name for each in values), tuple(each.value for each in values), lower, upper)
