"""What many reports show over time, as a plain value: the values of each metric, run by run, and what changed."""

from __future__ import annotations

from dataclasses import field

from assay._records import OPTIONAL, Record
from assay.errors import plural
from assay.render import Document, Viewable
from assay.report.comparing.comparison import Delta, Run
from assay.report.many_reports.history_view import history_document
from assay.report.report import now


class HistoryValue(Record):
    """A metric in one run.

    Args:
        run: the name of the run.
        value: its value.
        lower: the lower end of its interval, if there is one.
        upper: the upper end.
        count: how many samples it rests on.
        data: which set of samples it was measured on, from 1; runs on one set can be compared.
        previous: the run before it on the same samples, or empty.
        change: the difference from that run; None without such a run, or if it lacks this metric.
    """

    run: str
    value: float
    lower: float | None = None
    upper: float | None = None
    count: int | None = None
    data: int = 1
    previous: str = ""
    change: Delta | None = None


class HistoryMetric(Record):
    """A metric over runs.

    Args:
        section: where it stands in the reports.
        name: its name.
        higher_is_better: whether higher values are better; None where that is not known.
        values: those of the runs that have it, in order.
    """

    section: str
    name: str
    higher_is_better: bool | None
    values: tuple[HistoryValue, ...]


class History(Record, Viewable, schema="assay.history/1"):
    """The values of metrics over runs.

    Args:
        runs: the runs by the time when they were made.
        metrics: the metrics by section, in the order of the reports.
        not_comparable: which runs were measured on other samples, and how these differ.
        not_read: which files could not be read, and why.
        confidence_level: of the intervals of changes; there is a change where the corrected p is below 1 - this.
        correction: how p-values were corrected, over the metrics of a section in a run.
        created: when this was made.
        sequential: whether the level holds over all runs together, however many will come.
    """

    runs: tuple[Run, ...]
    metrics: tuple[HistoryMetric, ...] = ()
    not_comparable: tuple[str, ...] = ()
    not_read: tuple[str, ...] = ()
    confidence_level: float = 0.95
    correction: str = "holm"
    created: str = field(default_factory=now)
    sequential: bool = field(default=False, metadata=OPTIONAL)

    def __repr__(self) -> str:
        """One line: how many runs, and of which metrics."""
        names = ", ".join(dict.fromkeys(each.name for each in self.metrics))
        return f"<History of {plural(len(self.runs), 'run')}: {names or 'no metrics'}>"

    def to_document(self) -> Document:
        """What is shown: for each section the last values and how they came about, then every run."""
        return history_document(self)
