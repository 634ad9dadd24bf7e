"""The report: what was measured, as a plain value that can be stored, compared and drawn.

Nothing here needs torch. `Report.to_document` gives what `assay.render` draws: terminal, Markdown, HTML.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from assay._atomic import Location
from assay._lazy import LateAttributeError
from assay._records import OPTIONAL, Record
from assay.errors import ConfigError, describe
from assay.render import Document, Viewable
from assay.render.plots import Bars, Plot, choose_plot
from assay.render.text import number
from assay.report.data_frames import data_frame
from assay.report.environment import environment
from assay.report.origin import ReportOrigin
from assay.report.per_sample.samples import Samples
from assay.report.report_view import report_document
from assay.report.section import Section, check_unique
from assay.report.slices import written
from assay.report.value import Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Source: TypeAlias = "Report | str | os.PathLike[str]"
"""A report, or its path or URL."""

SCHEMA = "assay.report/7"
"""The first entry of every stored report."""

OLDER = ("assay.report/6",)
"""Those that are read, too: they lack counts, signatures and what made them."""


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _exactly_now() -> str:
    """To the microsecond: two evaluations whose values agree are not the same report."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class Report(Record, Viewable, schema=SCHEMA, older=OLDER):
    """All that one evaluation found.

    Args:
        title: the title.
        sections: what was measured, in the order in which to show it.
        device: where it ran, as text (``"cpu"``, ``"cuda:0 (NVIDIA H100)"``); empty where that is not known.
        notes: what a reader must know of the whole.
        duration_s: how long it took, in seconds.
        created: when, ISO 8601 with the time zone; now by default.
        environment: the versions of what was used; those of this process by default.
        origin: what made it: the call, its options, the commit, digests of the model and the data.

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
    origin: ReportOrigin | None = field(default=None, metadata=OPTIONAL)

    def _check(self) -> None:
        check_unique("Report.sections", [section.name for section in self.sections])

    def to_json(self) -> str:
        """It as JSON; with its samples, unless it is to be saved and they are in a file beside it."""
        from assay.report.per_sample.sample_files import without_temporary_files

        return Record.to_json(without_temporary_files(self))

    def save(self, path: str | os.PathLike[str]) -> Location:
        """Write it as JSON, to a path or a URL; the file is whole or not there.

        More than `MOST_SAMPLES` samples are written to an Arrow file beside it, which the JSON names with its digest.
        That of a report which was there under this name is removed once the new report is whole.

        Args:
            path: the file, or a folder, in which it is ``report.json``; or a URL. A folder is one that is there, or a
                path that ends in ``/``. Folders that are missing are made.
        """
        from assay.report.per_sample.sample_files import named_files, remove_files, with_sample_files

        file = self._file_at(path)
        before = named_files(file)
        written = Record.save(with_sample_files(self, file), file)
        if before:
            remove_files(before - named_files(file), file)
        return written

    @classmethod
    def of(cls, source: Source) -> Report:
        """A report, or what lies at a path or URL.

        Raises:
            ConfigError: it is neither.
            StateError: see `load`.
        """
        if isinstance(source, str | os.PathLike):
            return cls.load(source)
        if isinstance(source, Report):
            return source
        raise ConfigError(describe("report", type(source).__name__, "a Report, or its path", "Pass one of them"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; the samples in files beside it are read when they are needed.

        Args:
            path: the file, or a folder that holds it as ``report.json``; or a URL.

        Raises:
            StateError: the file was cut short or changed, is of another kind, or of another version.
        """
        from assay.report.per_sample.sample_files import with_attached_files

        file = cls._file_at(path)
        return with_attached_files(super().load(file), file.parent)

    def to_document(self, *, verbose: bool = True) -> Document:
        """What is shown: values, plots, slices and tables.

        Args:
            verbose: whether to show every table and plot; else values, slices and notes.
        """
        return report_document(self, verbose=verbose)

    def __getitem__(self, name: str) -> Value:
        """The value of a metric on all samples: `value(name)`.

        Example:
            >>> from assay.report.value import Value
            >>> report = Report("digits", [Section("test", values=[Value("accuracy", 0.94, lower=0.91, upper=0.96)])])
            >>> report["accuracy"]
            <Value accuracy 0.9400 [0.9100, 0.9600]>
            >>> float(report["accuracy"]), "F1" in report
            (0.94, False)
        """
        return self.value(name)

    def __contains__(self, name: object) -> bool:
        """Whether a section has a value of this name."""
        return any(value.name == name for section in self.sections for value in section.values)

    __iter__ = None  # a report is no sequence, although it has __getitem__

    if not TYPE_CHECKING:  # for type checkers, a report has what its class says

        def __getattr__(self, name: str) -> Any:
            """Raise for what a report does not have; what to write instead is named."""

            def about() -> str:
                said = f"; write report[{name!r}]" if "sections" in vars(self) and name in self else ""
                names = [each for each in dir(type(self)) if not each.startswith("_")]
                close = [] if name.startswith("_") else get_close_matches(name, names, 1, 0.5)
                said = said or (f"; did you mean {close[0]}?" if close else "")
                return f"'Report' object has no attribute {name!r}{said}"

            raise LateAttributeError(about)

    def value(self, metric: str, section: str | None = None, slice: str | Mapping[str, object] = "") -> Value:
        """The value of one metric.

        Args:
            metric: its name.
            section: where it stands; may be left out where only one section has it.
            slice: on which slice, as the report shows it: ``"sex = f"``, ``"sex=f, age=old"``, or as the value of each
                column: ``{"sex": "f"}``; all samples by default.

        Raises:
            ConfigError: none fits, or several do.
        """
        slice = written(slice)
        on = [
            (each.name, value)
            for each in self.sections
            for value in (each.of_slice(slice) or Section(each.name) if slice else each).values
        ]
        fit = [value for name, value in on if value.name == metric and section in (None, name)]
        if len(fit) == 1:
            return fit[0]
        if slice and not on:
            self.of_slice(slice)
        there = ", ".join(f"{name}/{value.name}" for name, value in on) or "none"
        close = get_close_matches(metric, [value.name for _, value in on], 1)
        do = "Name metric and section" if len(fit) > 1 else f"Write {close[0]!r}" if close else "Correct the name"
        where = f"value {metric!r}" + (f" in {slice!r}" if slice else "")
        raise ConfigError(describe(where, f"{len(fit)} that fit", f"one of {there}", do))

    @property
    def samples(self) -> Samples:
        """What each sample contributed to the metrics, where one section kept samples.

        Raises:
            ConfigError: no section kept samples, or several did.
        """
        kept = {section.name: section.samples for section in self.sections if section.samples is not None}
        if len(kept) == 1:
            return next(iter(kept.values()))
        got = f"{len(kept)} sections with samples" + (f" ({', '.join(map(repr, kept))})" if kept else "")
        do = "Read samples of an element of report.sections" if kept else "Evaluate with keep_samples=True"
        raise ConfigError(describe("Report.samples", got, "one", do))

    def show(self, *, verbose: bool = True) -> None:
        """Print the report to the terminal; plain text where the output is not one.

        Args:
            verbose: whether to print every table and plot; else values, slices and notes.
        """
        from assay.render.terminal import show

        show(self.to_document(verbose=verbose))

    def of_slice(self, name: str | Mapping[str, object]) -> Report:
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
        name = written(name)
        sections = [part for section in self.sections if (part := section.of_slice(name)) is not None]
        if not sections:
            names = dict.fromkeys(each.name for section in self.sections for each in section.slices)
            expected = f"one of {', '.join(map(repr, names))}" if names else "a report with slices"
            raise ConfigError(describe("slice", repr(name), expected, "Correct the name, or pass slices= (--slice)"))
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
        from assay.render.matplotlib_axes import to_axes

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
        columns = ("value", "lower", "upper", "confidence_level", "count", "higher_is_better", "note")
        rows = [
            (section.name, name, value.name, *(getattr(value, column) for column in columns))
            for section in self.sections
            for name, values in (("", section.values), *((each.name, each.values) for each in section.slices))
            for value in values
        ]
        return data_frame(rows, ("section", "slice", "metric", *columns), "Report.to_dataframe")

    def __str__(self) -> str:
        """The summary: values with their intervals, slices and notes."""
        from assay.render.terminal import to_text

        return to_text(self.to_document(verbose=False), 80).strip("\n")

    def __repr__(self) -> str:
        """One line: the title, the sections, and the values of the first one."""
        values = self.sections[0].values if self.sections else ()
        shown = [f"{value.name} {number(value.value)}" for value in values[:4]] + ["…"] * (len(values) > 4)
        return f"<Report {self.title!r}: {len(self.sections)} section(s); {', '.join(shown)}>"


def _bars(section: Section) -> Bars:
    """The values of a section, with intervals where all have one."""
    values = section.values
    ends = [(each.lower, each.upper) for each in values]
    lower, upper = zip(*ends, strict=True) if all(None not in each for each in ends) else ((), ())
    return Bars(section.name, tuple(each.name for each in values), tuple(each.value for each in values), lower, upper)
