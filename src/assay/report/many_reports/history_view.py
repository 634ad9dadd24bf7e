"""A history as a document: the last value of each metric and how it came about, then every run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from assay.errors import plural
from assay.render import text
from assay.render.document import (
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
)
from assay.render.trends import Trend, TrendPoint, sparkline
from assay.report.comparing.comparison_view import VERDICT_STYLES, ends_of, how_tested, interval, signed

if TYPE_CHECKING:
    from assay.report.comparing.comparison import Delta
    from assay.report.many_reports.history_result import History, HistoryMetric, HistoryValue

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
