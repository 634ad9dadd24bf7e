"""A ranking of many reports, as a plain value: places with ties, and groups that cannot be told apart."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from assay._records import Record
from assay.render import Document, Viewable
from assay.render.plots import choose_plot
from assay.report.comparing.comparison import Run
from assay.report.many_reports.ranking_view import behind, ranking_document
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
