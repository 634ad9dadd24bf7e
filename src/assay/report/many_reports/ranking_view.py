"""A ranking as a document: for each metric the runs with their places and groups, and how far they are behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.errors import plural
from assay.render import text
from assay.render.document import Chapter, DataGrid, Document, Figures, GridCell, GridColumn, GridRow, Span
from assay.render.plots import Bars

if TYPE_CHECKING:
    from assay.report.many_reports.ranking_result import MetricRanking, RankedRun, RunRanking

_COLUMNS = (
    GridColumn("place", "word"),
    GridColumn("run"),
    GridColumn("value", "number"),
    GridColumn("group", "word"),
    GridColumn("against the first", "number"),
    GridColumn("interval", "word"),
)


def ranking_document(ranking: RunRanking) -> Document:
    """What is shown of a ranking."""
    level = f"{100 * ranking.confidence_level:g} %"
    fact = f"Runs of one group cannot be told apart; the places and intervals of a metric hold together at {level}."
    footer = tuple((run.name, *filter(None, (run.title, text.moment(run.created), run.device))) for run in ranking.runs)
    chapters = tuple(map(_chapter, ranking.metrics))
    return Document(f"{len(ranking.runs)} runs, ranked", chapters, (fact,), ranking.notes, footer, level=3)


def _chapter(metric: MetricRanking) -> Chapter:
    untested = f"; {metric.untested:,} could not be tested, and count as not told apart" if metric.untested else ""
    told = f"{metric.apart:,} of {plural(metric.pairs, 'pair')} told apart, corrected by Holm{untested}."
    grid = DataGrid(_COLUMNS, tuple(map(_row, metric.places)), notes=(told, *metric.methods))
    better = "higher" if metric.higher_is_better else "lower"
    return Chapter(f"{metric.section}/{metric.metric} ({better} is better)", (grid, Figures((behind(metric),), True)))


def _row(place: RankedRun) -> GridRow:
    ends = None if place.lower is None or place.upper is None else (place.lower, place.upper, place.behind)
    where = f"{place.best}" if place.best == place.worst else f"{place.best}-{place.worst}"
    return GridRow(
        (
            GridCell(where, place.best),
            GridCell(Span(place.run, "strong"), place.run),
            GridCell(text.number(place.value), place.value),
            GridCell(" ".join(place.groups)),
            GridCell(("+" if place.behind > 0 else "") + text.number(place.behind), place.behind),
            GridCell(Span(text.interval(place.lower, place.upper), "faint"), span=ends),
        )
    )


def behind(metric: MetricRanking) -> Bars:
    """How far runs are from the first, with intervals where all others have one."""
    others = [(place.behind if place.lower is None else place.lower, place.upper) for place in metric.places[1:]]
    is_known = all(place.lower is not None and place.upper is not None for place in metric.places[1:])
    lower = (0.0, *(low for low, _ in others)) if is_known else ()
    upper = (0.0, *(high for _, high in others if high is not None)) if is_known else ()
    labels = tuple(f"{place.run} ({', '.join(place.groups)})" for place in metric.places)
    values = tuple(place.behind for place in metric.places)
    return Bars(f"{metric.section}, {metric.metric}", labels, values, lower, upper)
