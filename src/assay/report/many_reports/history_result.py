"""What many reports show over time, as a plain value: the values of each metric, run by run, and what changed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import groupby

from assay._records import OPTIONAL, Record
from assay.errors import plural
from assay.render import (
    Block,
    Bullets,
    Chapter,
    DataGrid,
    Document,
    Figures,
    GridCell,
    GridColumn,
    GridRow,
    Line,
    Span,
    Viewable,
    text,
)
from assay.render.trends import Trend, TrendPoint, sparkline
from assay.report.comparing.comparison import Delta, Run
from assay.report.comparing.comparison_view import VERDICT_STYLES, ends_of, how_tested, interval, signed
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


_RUNS = 10  # that a terminal shows of each metric
_CHANGES = ("better", "worse", "differs")


def history_document(history: History) -> Document:
    """What is shown of a history."""
    first, last = (text.moment(run.created) for run in (history.runs[0], history.runs[-1]))
    facts = (plural(len(history.runs), "run"), first if first == last else f"{first} to {last}")
    chapters = [
        Chapter(section, tuple(_section(history, list(metrics))))
        for section, metrics in groupby(history.metrics, key=lambda metric: metric.section)
    ]
    if history.not_comparable:
        chapters.append(Chapter("Not comparable", (Bullets(history.not_comparable),)))
    if history.not_read:
        chapters.append(Chapter("Not read", (Bullets(history.not_read),)))
    footer = tuple((run.name, *filter(None, (run.title, text.moment(run.created), run.device))) for run in history.runs)
    title = "History" if len(history.runs) > 1 else f"History of {history.runs[0].name}"
    return Document(title, tuple(chapters), facts, tuple(_notes(history)), footer, level=3)


def _notes(history: History) -> Iterator[Line]:
    if len(history.runs) == 1:
        yield "There is one report: changes are shown from the second one on."
        return
    level = f"{100 * history.confidence_level:g} %"
    yield (
        f"Changes against the run before on the same samples; intervals of {level}; p corrected over the metrics of a "
        f"section in a run ({history.correction})"
        + (", and over all runs, however many will come." if history.sequential else ".")
    )
    if history.not_comparable or history.not_read:
        parts = plural(len(history.not_comparable), "run") + " on other samples" if history.not_comparable else ""
        files = plural(len(history.not_read), "file") + " not read" if history.not_read else ""
        yield Span(f"{'; '.join(filter(None, (parts, files)))}: see below.", "warn")


def _section(history: History, metrics: list[HistoryMetric]) -> Iterator[Block]:
    names = tuple(run.name for run in history.runs)
    if len(names) > 1:
        columns = ("metric", "last", "change", "", "trend")
        kinds = ("text", "number", "number", "word", "word")
        yield DataGrid(tuple(map(GridColumn, columns, kinds)), tuple(map(_last, metrics)))
        yield Figures(tuple(trend_of(metric, names) for metric in metrics), on_page_only=True)
    created = {run.name: text.moment(run.created) for run in history.runs}
    for metric in metrics:
        yield _runs(metric, created, len(names) > 1)


def _last(metric: HistoryMetric) -> GridRow:
    value = metric.values[-1]
    line = sparkline([each.value for each in metric.values if each.data == value.data])
    below = text.interval(value.lower, value.upper)
    return GridRow(
        (
            GridCell(metric.name, metric.name),
            GridCell(Span(text.number(value.value), "strong"), value.value, below),
            *_change(value),
            GridCell(Span(line, "faint")),
        )
    )


def _change(value: HistoryValue) -> tuple[GridCell, GridCell]:
    delta = value.change
    if delta is None:
        return GridCell(), GridCell()
    verdict = GridCell(Span(delta.verdict, VERDICT_STYLES[delta.verdict]), delta.verdict, verdict=True)
    return GridCell(signed(delta.difference), delta.difference), verdict


def trend_of(metric: HistoryMetric, names: tuple[str, ...]) -> Trend:
    lines: dict[int, list[TrendPoint]] = {}
    for each in metric.values:
        verdict = "" if each.change is None else each.change.verdict
        change = verdict if verdict in _CHANGES else ""
        point = TrendPoint(names.index(each.run), each.value, each.lower, each.upper, change)
        lines.setdefault(each.data, []).append(point)
    return Trend(metric.name, names, tuple(map(tuple, lines.values())))


def _runs(metric: HistoryMetric, created: dict[str, str], has_changes: bool) -> DataGrid:
    """A row a run, the last one first; those that changed are shown wherever there is room for few."""
    sets = len({each.data for each in metric.values})
    columns = [GridColumn("run"), GridColumn("value", "number")]
    columns += [GridColumn("change", "number"), GridColumn("", "word")] if has_changes else []
    columns += [GridColumn("interval", "word"), GridColumn("p", "number")] if has_changes else []
    columns += [GridColumn("data", "number")] if sets > 1 else []
    columns += [GridColumn("n", "number", "wide"), GridColumn("made", "word", "wide")]
    columns += [GridColumn("compared with", "text", "page")] if has_changes else []
    rows, reach = [], _reach([each.change for each in metric.values])
    for each in reversed(metric.values):
        delta = each.change
        below = text.interval(each.lower, each.upper)
        cells = [GridCell(each.run, each.run), GridCell(text.number(each.value), each.value, below)]
        if has_changes:
            ends, shown = (None, "") if delta is None else (ends_of(delta), interval(delta))
            p = GridCell() if delta is None else GridCell(text.p_value(delta.corrected), delta.corrected)
            cells += [*_change(each), GridCell(Span(shown, "faint"), span=ends, reach=reach), p]
        cells += [GridCell(str(each.data), each.data)] if sets > 1 else []
        cells += [GridCell("" if each.count is None else f"{each.count:,}", each.count), GridCell(created[each.run])]
        cells += [GridCell(each.previous)] if has_changes else []
        rows.append(GridRow(tuple(cells), matters=delta is not None and delta.verdict in _CHANGES))
    notes = how_tested([each.change for each in metric.values if each.change is not None])
    more = f"{max(0, len(rows) - _RUNS):,} earlier runs"
    return DataGrid(tuple(columns), tuple(rows), f"{metric.name}, run by run", notes, _RUNS, more)


def _reach(deltas: Sequence[Delta | None]) -> float:
    """The end of the intervals of one metric that is furthest from 0."""
    ends = [end for delta in deltas if delta is not None for end in (delta.lower, delta.upper) if end is not None]
    return max((abs(end) for end in ends if math.isfinite(end)), default=0.0)
