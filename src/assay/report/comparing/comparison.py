"""What comparing reports found, as a plain value: differences, flips, and what could not be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from assay._records import OPTIONAL, CellValue, Record
from assay.errors import ConfigError, describe
from assay.render import Document, Viewable
from assay.render.pictures import Picture
from assay.render.plots import Bars, choose_plot
from assay.render.text import interval, number
from assay.report.comparing.comparison_view import comparison_document
from assay.report.comparing.group_changes import GroupChanges
from assay.report.comparing.plot_pairs import PairedPlot
from assay.report.data_frames import data_frame
from assay.report.origin import ReportOrigin
from assay.report.report import Report, now
from assay.report.slices import spaced, written

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VERDICTS = ("better", "worse", "differs", "no evidence", "cannot say")


class Delta(Record):
    """The difference of one metric between a run and the baseline.

    Args:
        run: the name of the run.
        section: where the metric stands in both reports.
        metric: its name.
        baseline: the value of the baseline.
        value: the value of the run.
        difference: the value of the run minus that of the baseline.
        lower: the lower end of the interval of the difference, or None.
        upper: the upper end.
        p: how likely a difference at least as large is, were there none; None where that was not tested.
        corrected: p corrected for all tests of the comparison.
        effect: the size of the difference on the scale that ``scale`` names.
        scale: what the effect size is.
        method: how p and interval were found.
        paired: whether the same samples were compared.
        counts: how many samples stand behind the two values, where that is known.
        higher_is_better: whether higher values are better; None where that is not known.
        verdict: one of ``VERDICTS``.
        note: what could not be done, and why.
        slice: on which slice of the samples; empty for all of them.
        smallest: the smallest difference that would have been found with a power of 0.8, of all samples; None where
            that is not known.
    """

    run: str
    section: str
    metric: str
    baseline: float
    value: float
    difference: float
    lower: float | None = None
    upper: float | None = None
    p: float | None = None
    corrected: float | None = None
    effect: float | None = None
    scale: str = ""
    method: str = ""
    paired: bool = False
    counts: tuple[int, ...] = ()
    higher_is_better: bool | None = None
    verdict: str = "cannot say"
    note: str = ""
    slice: str = ""
    smallest: float | None = field(default=None, metadata=OPTIONAL)

    def __repr__(self) -> str:
        """One line: the metric, the difference, its interval and the verdict."""
        of = f"{self.metric} in {self.slice!r}" if self.slice else self.metric
        shown = f"{'+' * (self.difference > 0)}{number(self.difference)} {interval(self.lower, self.upper)}".rstrip()
        return f"<Delta {of} {shown}: {self.verdict}>"

    def _check(self) -> None:
        if self.verdict not in VERDICTS:
            expected = f"one of {', '.join(VERDICTS)}"
            raise ConfigError(
                describe("Delta.verdict", repr(self.verdict), expected, "Let compare() decide the verdict")
            )


class Flips(Record):
    """The samples to which a yes-or-no metric says something else in a run than in the baseline.

    Args:
        run: the name of the run.
        section: where the metric stands.
        metric: its name.
        higher_is_better: whether yes is better than no; None where that is not known.
        up: how many samples went from no to yes.
        down: how many from yes to no.
        yes: how many are yes in both.
        no: how many are no in both.
        changed: how many decisions differ at all; None where decisions were not kept.
        ups: the first of those that went up, by id: id, target, decision of the baseline, decision of the run.
        downs: the first of those that went down, in the same way.
        slice: on which slice of the samples; empty for all of them.
    """

    run: str
    section: str
    metric: str
    higher_is_better: bool | None
    up: int
    down: int
    yes: int
    no: int
    changed: int | None
    ups: tuple[tuple[CellValue, ...], ...] = ()
    downs: tuple[tuple[CellValue, ...], ...] = ()
    slice: str = ""

    def groups(self) -> tuple[tuple[str, int, tuple[tuple[CellValue, ...], ...]], ...]:
        """The two groups, those that got worse first: what to call them, how many they are, and the first of them."""
        up, down = (self.up, self.ups), (self.down, self.downs)
        if self.higher_is_better is None:
            return ("from yes to no", *down), ("from no to yes", *up)
        worse, better = (down, up) if self.higher_is_better else (up, down)
        return ("worse", *worse), ("better", *better)


class ChangedSample(Record):
    """A sample that a run treats otherwise than the baseline.

    Args:
        id: its id.
        target: what would have been right; None where that was not kept.
        before: what the baseline predicted; likewise.
        now: what the run predicts; likewise.
        score_before: its score in the baseline: of a score its own value, of an error how much it contributes.
        score_now: that in the run.
        picture: the sample as a picture, of images; from a report that has one.
    """

    id: str
    target: CellValue
    before: CellValue
    now: CellValue
    score_before: float
    score_now: float
    picture: Picture | None = None


class Changes(Record):
    """The samples that changed most by a metric.

    Args:
        run: the name of the run.
        section: where the metric stands.
        metric: its name.
        terms: what the scores of the samples are: the metric, or what it counts, such as errors.
        worse: how many samples got worse.
        better: how many got better.
        worst: those that got worse most.
        best: those that got better most.
        worst_pictured: those that got worse most of the samples with a picture.
        best_pictured: those that got better most of them.
    """

    run: str
    section: str
    metric: str
    terms: str
    worse: int
    better: int
    worst: tuple[ChangedSample, ...] = ()
    best: tuple[ChangedSample, ...] = ()
    worst_pictured: tuple[ChangedSample, ...] = ()
    best_pictured: tuple[ChangedSample, ...] = ()


class Unmatched(Record):
    """What was not compared.

    Args:
        run: the name of the run.
        section: where it stands.
        metric: its name; empty for all metrics of a slice.
        why: what is missing, or what differs.
        slice: on which slice of the samples; empty for all of them.
    """

    run: str
    section: str
    metric: str
    why: str
    slice: str = ""


class Run(Record):
    """A report that was compared.

    Args:
        name: what it is called here; unique.
        title: its title.
        created: when it was made.
        device: where it ran.
        origin: what made it.
    """

    name: str
    title: str = ""
    created: str = ""
    device: str = ""
    origin: ReportOrigin | None = field(default=None, metadata=OPTIONAL)

    @classmethod
    def of(cls, name: str, report: Report) -> Run:
        """A report under a name."""
        return cls(name, report.title, report.created, report.device, report.origin)


class PlotPair(Record):
    """A plot of the baseline and of a run in one.

    Args:
        run: the name of the run.
        section: where the plot stands in both reports.
        plot: curves over each other, or how a confusion matrix changed.
    """

    run: str
    section: str
    plot: PairedPlot


class Comparison(Record, Viewable, schema="assay.comparison/6"):
    """Runs against a baseline.

    Args:
        runs: the baseline first, then the runs.
        deltas: the differences, by run, section, slice and metric in the order of the reports, all samples first.
        flips: the samples that changed, for each yes-or-no metric that could be paired.
        unmatched: metrics that were not compared.
        confidence_level: of the intervals; there is a difference where corrected p is below 1 - confidence_level.
        correction: how p-values were corrected, over all deltas.
        seed: where random numbers started.
        notes: further findings, in sentences.
        created: when this was made.
        changes: the samples that changed most, for metrics over all samples that are means over them.
        plots: the plots that both reports of a pair have.
        groups: the groups that changed most, of tables by a column that both have; p is corrected for each table.
    """

    runs: tuple[Run, ...]
    deltas: tuple[Delta, ...] = ()
    flips: tuple[Flips, ...] = ()
    unmatched: tuple[Unmatched, ...] = ()
    confidence_level: float = 0.95
    correction: str = "holm"
    seed: int = 0
    notes: tuple[str, ...] = ()
    created: str = field(default_factory=now)
    changes: tuple[Changes, ...] = ()
    plots: tuple[PlotPair, ...] = field(default=(), metadata=OPTIONAL)
    groups: tuple[GroupChanges, ...] = field(default=(), metadata=OPTIONAL)

    def _check(self) -> None:
        names = [run.name for run in self.runs]
        if len(names) < 2 or len(set(names)) < len(names):
            expected = "a baseline and one run or more, each with a name of its own"
            raise ConfigError(describe("Comparison.runs", names, expected, "Give each report another name"))

    def __repr__(self) -> str:
        """One line: the names of the runs, and how many differences there are."""
        baseline, *runs = (repr(run.name) for run in self.runs)
        return f"<Comparison of {', '.join(runs)} with {baseline}: {len(self.deltas)} difference(s)>"

    def __getitem__(self, metric: str) -> Delta:
        """The difference of a metric on all samples: `delta(metric)`."""
        return self.delta(metric)

    __iter__ = None  # a comparison is no sequence, although it has __getitem__

    def delta(
        self, metric: str, section: str | None = None, run: str | None = None, slice: str | Mapping[str, object] = ""
    ) -> Delta:
        """The difference of one metric.

        Args:
            metric: its name.
            section: where it stands; may be left out where only one section has it.
            run: the name of the run; may be left out where there is one.
            slice: on which slice; all samples by default.

        Raises:
            ConfigError: none fits, or several do.
        """
        slice = written(slice)
        on = [delta for delta in self.deltas if spaced(delta.slice) == spaced(slice)]
        fit = [d for d in on if d.metric == metric and section in (None, d.section) and run in (None, d.run)]
        if len(fit) == 1:
            return fit[0]
        there = ", ".join(dict.fromkeys(f"{d.section}/{d.metric}" for d in on)) or "none"
        do = "Name metric, section and run" if on or not slice else "Name a slice that both have"
        if not fit and (close := get_close_matches(metric, [delta.metric for delta in on], 1)):
            do = f"Write {close[0]!r}"
        where = f"delta {metric!r}" + (f" in {slice!r}" if slice else "")
        raise ConfigError(describe(where, f"{len(fit)} that fit", f"one of {there}", do))

    def family(self) -> int:
        """How many tests p-values were corrected for."""
        return sum(delta.p is not None for delta in self.deltas)

    def plot(self, name: str = "", axes: Axes | None = None) -> Axes:
        """Draw the differences of a run with Matplotlib, as bars with their intervals; over all samples.

        Args:
            name: which differences, `run, section`; by default those of the first run and section.
            axes: where to draw; by default on axes of a new figure of pyplot.

        Returns:
            The axes.

        Raises:
            ConfigError: there are no such differences.
        """
        from assay.render.matplotlib_axes import to_axes

        groups: dict[tuple[str, str], list[Delta]] = {}
        for delta in self.deltas:
            if not delta.slice:
                groups.setdefault((delta.run, delta.section), []).append(delta)
        bars = [_bars(f"{run}, {section}", deltas) for (run, section), deltas in groups.items()]
        return to_axes(choose_plot(bars, name), axes)

    def to_dataframe(self) -> Any:
        """The differences as a pandas DataFrame, one row a difference, also those of slices.

        Returns:
            Columns `run`, `section`, `slice` (empty for all samples), `metric`, `baseline`, `value`, `difference`,
            `lower`, `upper`, `p`, `corrected`, `effect`, `scale`, `method`, `paired`, `higher_is_better`, `verdict` and
            `note`.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        rows = ([getattr(delta, name) for name in _COLUMNS] for delta in self.deltas)
        return data_frame(rows, _COLUMNS, "Comparison.to_dataframe")

    def to_document(self) -> Document:
        """What is shown: a grid of differences for each run and section, the samples that flipped, the slices."""
        return comparison_document(self)


_COLUMNS = (
    *("run", "section", "slice", "metric", "baseline", "value", "difference", "lower", "upper", "p", "corrected"),
    *("effect", "scale", "method", "paired", "higher_is_better", "verdict", "note"),
)


def _bars(title: str, deltas: Sequence[Delta]) -> Bars:
    """Differences as bars, with intervals where all have one."""
    ends = [(each.lower, each.upper) for each in deltas]
    lower, upper = zip(*ends, strict=True) if all(None not in each for each in ends) else ((), ())
    return Bars(title, tuple(each.metric for each in deltas), tuple(each.difference for each in deltas), lower, upper)
