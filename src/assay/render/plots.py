"""Plots as data: what a plot shows, in numbers, never as a picture.

Each renderer (terminal, HTML) draws them in its own way, and a stored report can be resampled, compared, or read by
another program. ``summary()`` says in a sentence what the plot shows: the caption, and what a screen reader reads out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay._records import Record
from assay.errors import ConfigError, ShapeError, describe
from assay.render.matrices import ConfusionDifference, ConfusionPlot, MatrixPlot
from assay.render.points import Points
from assay.render.text import number
from assay.render.trends import Trend

Floats: TypeAlias = NDArray[np.float64]

MAX_POINTS = 400
"""Points kept of one curve: more than a screen shows, few enough for a page of many curves to stay small."""


class Curve(Record):
    """One line of a plot: its points and the area under it.

    Args:
        name: what the line is for, mostly a class.
        x: the abscissas, in the order in which the line runs.
        y: as many ordinates.
        area: the area under the whole curve, as the metric gave it (not computed from the points kept here).
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    area: float | None = None

    def _check(self) -> None:
        _same_length("Curve", x=self.x, y=self.y)

    @classmethod
    def thinned(cls, name: str, x: ArrayLike, y: ArrayLike, area: float | None = None, limit: int = MAX_POINTS) -> Self:
        """A curve of at most ``limit`` points, evenly spread along its length; the first and the last stay.

        Example:
            >>> Curve.thinned("step", [0.0, 0.0, 0.5, 1.0], [0.0, 1.0, 1.0, 1.0], limit=3).x
            (0.0, 0.0, 1.0)
        """
        xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if len(xs) > limit:
            length = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(xs)) + np.abs(np.diff(ys)))])
            inner = np.searchsorted(length, np.linspace(0.0, length[-1], limit)[:-1])
            keep = np.unique(np.append(inner, len(xs) - 1))  # the last point, also if its step rounds to no length
            xs, ys = xs[keep], ys[keep]
        return cls(name, tuple(xs.tolist()), tuple(ys.tolist()), area)


_AXES = {
    "reliability": ("Confidence", "Accuracy"),
    "roc": ("False positive rate", "True positive rate"),
    "pr": ("Recall", "Precision"),
    "det": ("False positive rate", "False negative rate"),
}
"""What the axes of each kind of curve are."""


class Curves(Record, tag="curves"):
    """ROC, precision-recall, detection error tradeoff or reliability curves, one a class or a run.

    Args:
        name: the title.
        kind: ``"roc"`` (x: false positive rate, y: true positive rate), ``"pr"`` (x: recall, y: precision), ``"det"``
            (x: false positive rate, y: false negative rate) or ``"reliability"`` (x: confidence, y: accuracy).
        curves: the lines.

    Raises:
        ConfigError: another kind.
    """

    name: str
    kind: str
    curves: tuple[Curve, ...]

    def _check(self) -> None:
        if self.kind not in _AXES:
            expected = "'roc', 'pr', 'det' or 'reliability'"
            raise ConfigError(describe("Curves.kind", repr(self.kind), expected, "Pass kind='roc'"))

    @property
    def axes(self) -> tuple[str, str]:
        """What the two axes are."""
        return _AXES[self.kind]

    @property
    def measure(self) -> str:
        """What the area under a curve is called; of reliability, the calibration error."""
        return {"roc": "AUROC", "reliability": "ECE"}.get(self.kind, "AP")

    def summary(self) -> str:
        areas = [(c.area, c.name) for c in self.curves if c.area is not None and math.isfinite(c.area)]
        if not areas:
            return f"{len(self.curves)} {'curve' if len(self.curves) == 1 else 'curves'}."
        if len(areas) == 1:
            return f"{self.measure} {areas[0][0]:.4f}."
        (low, worst), (high, best) = min(areas), max(areas)
        return f"{self.measure} from {low:.4f} ({worst}) to {high:.4f} ({best})."


class Reliability(Record, tag="reliability"):
    """How often predictions made with some confidence are right.

    Args:
        name: the title.
        edges: the B + 1 edges of the bins of confidence, rising.
        confidence: the mean confidence in each of the B bins; NaN where a bin is empty.
        accuracy: the share of right predictions in each bin; NaN where a bin is empty.
        counts: the samples in each bin.
        error: the expected calibration error, as the metric gave it.

    Raises:
        ShapeError: the series do not belong together.
    """

    name: str
    edges: tuple[float, ...]
    confidence: tuple[float, ...]
    accuracy: tuple[float, ...]
    counts: tuple[int, ...]
    error: float | None = None

    def _check(self) -> None:
        _same_length("Reliability", confidence=self.confidence, accuracy=self.accuracy, counts=self.counts)
        if len(self.edges) != len(self.counts) + 1:
            expected = f"{len(self.counts) + 1} edges for {len(self.counts)} bins"
            raise ShapeError(describe("Reliability.edges", len(self.edges), expected, "Give both ends of each bin"))

    def summary(self) -> str:
        error = "" if self.error is None or math.isnan(self.error) else f" Expected calibration error {self.error:.4f}."
        return f"{sum(self.counts):,} samples in {len(self.counts)} bins of confidence.{error}"


class Residuals(Record, tag="residuals"):
    """What a regression leaves: prediction minus target, over the prediction.

    Args:
        name: the title.
        preds: predictions, in the unit of the target.
        residuals: as many differences, prediction minus target.
        total: how many samples there were; more than the points shown where these are a sample.

    Raises:
        ShapeError: as many residuals as predictions are needed.
    """

    name: str
    preds: tuple[float, ...]
    residuals: tuple[float, ...]
    total: int

    def _check(self) -> None:
        _same_length("Residuals", preds=self.preds, residuals=self.residuals)

    @classmethod
    def sampled(cls, name: str, preds: ArrayLike, target: ArrayLike, limit: int = 1000) -> Self:
        """The residuals of ``preds`` and ``target``, thinned evenly to at most ``limit`` points.

        Example:
            >>> Residuals.sampled("rent", [10.0, 12.0], [11.0, 12.0]).residuals
            (-1.0, 0.0)
        """
        preds_N, target_N = np.asarray(preds, dtype=np.float64).ravel(), np.asarray(target, dtype=np.float64).ravel()
        _same_length("Residuals", preds=preds_N, target=target_N)
        step = max(1, math.ceil(len(preds_N) / limit))
        shown = preds_N[::step]
        return cls(name, tuple(shown.tolist()), tuple((shown - target_N[::step]).tolist()), len(preds_N))

    def finite(self) -> tuple[Floats, Floats]:
        """The points that can be drawn."""
        preds, residuals = np.asarray(self.preds), np.asarray(self.residuals)
        drawable = np.isfinite(preds) & np.isfinite(residuals)
        return preds[drawable], residuals[drawable]

    def summary(self) -> str:
        shown = "" if len(self.preds) == self.total else f", {len(self.preds):,} of them shown"
        _, residuals = self.finite()
        if not len(residuals):
            return f"{self.total:,} samples{shown}."
        low, middle, high = np.quantile(residuals, [0.05, 0.5, 0.95])
        spread = f"Median {middle:.4g}, nine tenths between {low:.4g} and {high:.4g}."
        return f"{self.total:,} samples{shown}. {spread}"


class Bars(Record, tag="bars"):
    """One bar a label, with an interval where there is one.

    Args:
        name: the title.
        labels: what each bar is for.
        values: as many lengths.
        lower: as many lower ends of the intervals, or none.
        upper: as many upper ends, or none.

    Raises:
        ShapeError: the series do not belong together.
    """

    name: str
    labels: tuple[str, ...]
    values: tuple[float, ...]
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()

    def _check(self) -> None:
        _same_length("Bars", labels=self.labels, values=self.values)
        if self.lower or self.upper:
            _same_length("Bars", values=self.values, lower=self.lower, upper=self.upper)

    def summary(self) -> str:
        finite = [(value, label) for value, label in zip(self.values, self.labels, strict=True) if math.isfinite(value)]
        if not finite:
            return f"{len(self.values)} bars."
        (low, least), (high, most) = min(finite), max(finite)
        return f"From {low:.4g} ({least}) to {high:.4g} ({most})."


class Series(Record):
    """One of the histograms of a `Distribution`.

    Args:
        name: which samples: ``"positives"``.
        counts: how many of them lie in each bin.
    """

    name: str
    counts: tuple[int, ...]


class Distribution(Record, tag="distribution"):
    """How a number is spread in one group of samples or more: scores of positives and of negatives.

    Args:
        name: the title.
        edges: the B + 1 edges of the bins, rising; a bin holds its lower edge, the last one both.
        series: one histogram a group, on these edges.
        axis: what the number is.

    Raises:
        ShapeError: a series has more or fewer counts than there are bins.
        ConfigError: the edges do not rise.

    Example:
        >>> scores = Distribution.of("scores", {"positive": [0.7, 0.9], "negative": [0.1]}, bins=2, axis="score")
        >>> scores.edges, [series.counts for series in scores.series]
        ((0.1, 0.5, 0.9), [(0, 2), (1, 0)])
        >>> scores.summary()
        '2 positive, 1 negative in 2 bins of score.'
    """

    name: str
    edges: tuple[float, ...]
    series: tuple[Series, ...]
    axis: str = ""

    def _check(self) -> None:
        for each in self.series:
            if len(each.counts) + 1 != len(self.edges):
                expected = f"{len(each.counts) + 1} edges for {len(each.counts)} bins of {each.name!r}"
                do = "Give both ends of each bin"
                raise ShapeError(describe("Distribution.edges", len(self.edges), expected, do))
        if not np.isfinite(self.edges).all() or not _rise(self.edges):
            got = f"{self.edges!r:.60}"
            raise ConfigError(describe("Distribution.edges", got, "finite numbers that rise", "Sort them"))

    @classmethod
    def of(
        cls,
        name: str,
        values: Mapping[str, ArrayLike],
        bins: int | Sequence[float] = 20,
        axis: str = "",
    ) -> Self:
        """Histograms of values on edges that they share.

        Args:
            name: the title.
            values: the numbers of each group; what is not finite is left out.
            bins: how many bins between the least and the largest value of all, or their edges; values beyond the
                edges are left out.
            axis: what the number is.
        """
        arrays = {key: np.asarray(each, dtype=np.float64).ravel() for key, each in values.items()}
        finite = {key: each[np.isfinite(each)] for key, each in arrays.items()}
        edges = _edges(np.concatenate([np.zeros(0), *finite.values()]), bins)
        series = tuple(Series(key, np.histogram(each, edges)[0].tolist()) for key, each in finite.items())
        return cls(name, tuple(edges.tolist()), series, axis)

    def summary(self) -> str:
        counts = ", ".join(f"{sum(each.counts):,} {each.name}" for each in self.series) or "Nothing"
        return f"{counts} in {max(0, len(self.edges) - 1)} bins{f' of {self.axis}' if self.axis else ''}."


@dataclass(frozen=True)
class Dot:
    """One row of a `Dots`: a name, how many samples it rests on, a value with its interval, and the ink of the dot."""

    name: str
    count: int
    value: float
    lower: float | None
    upper: float | None
    ink: str


@dataclass(frozen=True)
class Dots:
    """A value of each of several groups of samples, as a dot with its interval; a line is the value of all of them.

    Args:
        name: the title.
        dots: the groups.
        overall: the value on all samples, or None.
        total: how many groups there are, where only the worst are shown.
    """

    name: str
    dots: tuple[Dot, ...]
    overall: float | None
    total: int

    def summary(self) -> str:
        shown = f"{self.total:,} slices"
        if len(self.dots) < self.total:
            shown = f"The {len(self.dots)} worst slices of {self.total:,}"
        ends = (f(self.dots, key=lambda dot: dot.value) for f in (min, max))
        overall = "" if self.overall is None else f"; the line is all samples, {number(self.overall)}"
        return f"{shown}, from {' to '.join(f'{number(dot.value)} ({dot.name})' for dot in ends)}{overall}."


Plot: TypeAlias = ConfusionPlot | Curves | Reliability | Residuals | Bars | Distribution | Points
Drawing: TypeAlias = Plot | MatrixPlot | ConfusionDifference | Dots | Trend
"""What can be drawn: plots that reports hold, and those that are made of other parts of them."""


def choose_plot(plots: Sequence[Plot | MatrixPlot], name: str) -> Plot | MatrixPlot:
    """The plot with a title; the first one for an empty name.

    Raises:
        ConfigError: there is no such plot.
    """
    for plot in plots:
        if name in ("", plot.name):
            return plot
    if not plots:
        expected = "numbers, a curve, or a confusion matrix"
        do = "Add a metric with such a value, or print what there is"
        raise ConfigError(describe("plot", "no value that can be drawn", expected, do))
    there = ", ".join(repr(plot.name) for plot in plots)
    raise ConfigError(describe("name", repr(name), f"one of {there}", "Pass the title of a plot"))


def _edges(values: Floats, bins: int | Sequence[float]) -> Floats:
    """Edges of bins over all values; one bin where floats are too coarse or too far apart for more."""
    if not isinstance(bins, int):
        return np.asarray(bins, dtype=np.float64)
    if bins < 1:
        raise ConfigError(describe("bins", bins, "an integer above 0, or edges", "Pass bins=20"))
    least, most = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    largest = np.finfo(np.float64).max
    with np.errstate(over="ignore", invalid="ignore"):
        if least == most:
            least, most = min(least - 0.5, np.nextafter(least, -largest)), max(most + 0.5, np.nextafter(most, largest))
        edges = np.linspace(least, most, bins + 1)
    return edges if _rise(edges) else np.array([least, most])


def _rise(edges: ArrayLike) -> bool:
    array = np.asarray(edges, dtype=np.float64)
    return bool((array[1:] > array[:-1]).all())


def _same_length(owner: str, **series: Any) -> None:
    lengths = {name: len(values) for name, values in series.items()}
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise ShapeError(describe(owner, got, "as many of each", "Give one entry of each series per point"))
