"""A collection of reports as a document: the runs, metrics over time, comparisons, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from assay.errors import plural
from assay.render import text
from assay.render.document import Bullets, Chapter, DataGrid, Document, Figures, GridCell, GridColumn, GridRow
from assay.report.comparing.comparison_view import groups, verdicts
from assay.report.many_reports.history_result import trend_of
from assay.report.report import Report
from assay.report.value import Value

if TYPE_CHECKING:
    from assay.report.many_reports.collection import ReportCollection

_METRICS = 6  # columns of metrics in the table of runs
_TRIANGLES = (
    "A triangle is a change for the better or the worse against the run before, beyond chance; a diamond is a change."
)
_RUNS = 20  # that a terminal shows


def run_sheet(place: int) -> str:
    """The id of the sheet of a run."""
    return f"run{place}x"


def pair_sheet(a: int, b: int) -> str:
    """The id of the sheet of a comparison."""
    return f"pair{a}x{b}x"


def collection_document(collection: ReportCollection) -> Document:
    """What is shown of a collection of reports."""
    first, last = (text.moment(report.created) for _, report in (collection.reports[0], collection.reports[-1]))
    count = len(collection.reports)
    facts = (plural(count, "report"), first if first == last else f"{first} to {last}")
    chapters = [*_trends(collection), Chapter("Runs", (_runs(collection),))]
    if collection.comparisons:
        pairs = count * (count - 1) // 2
        note = "" if len(collection.comparisons) == pairs else f"{len(collection.comparisons)} of {pairs:,} pairs."
        chapters.append(Chapter("Comparisons", (_comparisons(collection),), note))
    for title, lines in (
        ("Not comparable", collection.history.not_comparable),
        ("Not read", collection.history.not_read),
    ):
        if lines:
            chapters.append(Chapter(title, (Bullets(lines),)))
    return Document("Runs", tuple(chapters), facts)


def _runs(collection: ReportCollection) -> DataGrid:
    """A row a run, the last one first."""
    metrics = collection.history.metrics[:_METRICS]
    several = len({metric.section for metric in metrics}) > 1
    names = [f"{metric.section}/{metric.name}" if several else metric.name for metric in metrics]
    commits = ["" if report.origin is None else report.origin.commit[:12] for _, report in collection.reports]
    rows = []
    for place, (name, report) in reversed([*enumerate(collection.reports)]):
        cells = [GridCell(name, name, link=run_sheet(place)), GridCell(report.title, report.title)]
        cells += [GridCell(text.moment(report.created), report.created)]
        cells += [GridCell(commits[place], commits[place])] if any(commits) else []
        cells += [_value(report, metric.section, metric.name) for metric in metrics]
        rows.append(GridRow(tuple(cells)))
    columns = [GridColumn("run"), GridColumn("title", "text", "wide"), GridColumn("made", "word")]
    columns += [GridColumn("commit", "word", "wide")] if any(commits) else []
    columns += [GridColumn(name, "number") for name in names]
    left = len(collection.history.metrics) - len(metrics)
    notes = (f"{left:,} more metrics stand in the reports.",) if left else ()
    return DataGrid(tuple(columns), tuple(rows), notes=notes, limit=_RUNS)


def _value(report: Report, section: str, metric: str) -> GridCell:
    found = next(
        (each for part in report.sections if part.name == section for each in part.values if each.name == metric), None
    )
    return GridCell() if found is None else _cell(found)


def _cell(value: Value) -> GridCell:
    return GridCell(text.number(value.value), value.value, text.interval(value.lower, value.upper))


def _trends(collection: ReportCollection) -> Iterator[Chapter]:
    names = tuple(run.name for run in collection.history.runs)
    if len(names) > 1:
        for section, metrics in groupby(collection.history.metrics, key=lambda metric: metric.section):
            figures = Figures(tuple(trend_of(metric, names) for metric in metrics), on_page_only=True)
            yield Chapter(f"{section}, run by run", (figures,), _TRIANGLES)


def _comparisons(collection: ReportCollection) -> DataGrid:
    """A row a comparison, those of the last runs first."""
    rows = [
        GridRow(
            (
                GridCell(f"{found.runs[1].name} against {found.runs[0].name}", link=pair_sheet(*pair)),
                GridCell("; ".join(f"{section}: {verdicts(deltas)}" for _, section, deltas in groups(found))),
            )
        )
        for pair, found in sorted(collection.comparisons.items(), key=lambda each: (-each[0][1], -each[0][0]))
    ]
    return DataGrid((GridColumn("comparison"), GridColumn("all samples")), tuple(rows), limit=_RUNS)
