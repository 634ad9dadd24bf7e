"""A ranking of many reports, as a plain value: places with ties, and groups that cannot be told apart."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from assay._records import Record
from assay.errors import plural
from assay.render import Chapter, DataGrid, Document, Figures, GridCell, GridColumn, GridRow, Span, Viewable, text
from assay.render.plots import Bars, choose_plot
from assay.report.comparing.comparison import Run
from assay.report.report import now

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class RankedRun(Record):
    """Where one run stands by a metric.

    Args:
        run: the name of the run.
        value: its value.
        best: the best place that it may have, from 1 on.
        worst: the worst place.
        groups: the groups that it is in, as letters; runs of one group cannot be told apart.
        behind: its value minus that of the first run.
        lower: the lower end of the interval of that difference, or None.
        upper: the upper end.
    """

    run: str
    value: float
    best: int
    worst: int
    groups: tuple[str, ...]
    behind: float = 0.0
    lower: float | None = None
    upper: float | None = None


class MetricRanking(Record):
    """The places of runs by a metric.

    Args:
        section: where the metric stands in the reports.
        metric: its name.
        higher_is_better: whether higher values are better.
        places: those of the runs, the best value first.
        pairs: how many pairs of runs were compared.
        apart: how many of these are told apart.
        untested: how many could not be tested.
        methods: how differences were judged.
    """

    section: str
    metric: str
    higher_is_better: bool
    places: tuple[RankedRun, ...]
    pairs: int
    apart: int
    untested: int = 0
    methods: tuple[str, ...] = ()


class RunRanking(Record, Viewable, schema="assay.ranking/1"):
    """Runs by their values, with ties.

    Args:
        runs: the runs, as they were given.
        metrics: the places by each metric.
        confidence_level: all places and all intervals of a metric hold together with this probability.
        notes: what is assumed, and what was not ranked, in sentences.
        created: when this was made.
    """

    runs: tuple[Run, ...]
    metrics: tuple[MetricRanking, ...]
    confidence_level: float = 0.95
    notes: tuple[str, ...] = ()
    created: str = field(default_factory=now)

    def __repr__(self) -> str:
        """One line: how many runs, by which metrics."""
        return f"<RunRanking of {len(self.runs)} runs by {', '.join(each.metric for each in self.metrics)}>"

    def plot(self, name: str = "", axes: Axes | None = None) -> Axes:
        """Draw how far runs are behind the first with Matplotlib, as bars with their intervals.

        Args:
            name: by which metric, `section, metric`; the first by default.
            axes: where to draw; by default on axes of a new figure of pyplot.

        Returns:
            The axes.

        Raises:
            ConfigError: there is no such metric.
        """
        from assay.render.matplotlib_axes import to_axes

        return to_axes(choose_plot([behind(each) for each in self.metrics], name), axes)

    def to_document(self) -> Document:
        """What is shown: for each metric a grid with a row for each run, the best first, and a plot."""
        return ranking_document(self)


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
