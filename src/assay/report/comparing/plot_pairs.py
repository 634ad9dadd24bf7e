"""Plots of two reports in one: curves over each other, and how confusion matrices differ."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

from assay.render.matrices import ConfusionDifference, ConfusionPlot
from assay.render.plots import Curve, Curves, Reliability
from assay.report.section import Section

PairedPlot: TypeAlias = Curves | ConfusionDifference

MOST_CLASSES = 4
"""Classes whose curves are shown: those whose areas changed most."""
_MOST_POINTS = 200  # of each curve
_MOST_LABELS = 100  # of a matrix: a comparison stays small


def plot_pairs(a: Section, b: Section, names: tuple[str, str]) -> Iterator[PairedPlot]:
    """The plots that two sections both have, by their titles.

    Args:
        a: the section of the baseline.
        b: that of the run.
        names: what to call the two.

    Example:
        >>> def roc(area):
        ...     return Section("test", plots=[Curves("ROC", "roc", [Curve("", [0, 0.5, 1], [0, area, 1], area)])])
        >>> [pair] = plot_pairs(roc(0.5), roc(0.75), ("main", "new"))
        >>> [(curve.name, curve.area) for curve in pair.curves]
        [('main', 0.5), ('new', 0.75)]
    """
    others = {(type(plot), plot.name): plot for plot in b.plots}
    for plot in a.plots:
        other = others.get((type(plot), plot.name))
        if isinstance(plot, Curves) and isinstance(other, Curves) and plot.kind == other.kind:
            yield from _curves(plot, other, names)
        elif isinstance(plot, Reliability) and isinstance(other, Reliability):
            curves = (_reliability(each, name) for each, name in zip((plot, other), names, strict=True))
            yield Curves(plot.name, "reliability", tuple(curves))
        elif isinstance(plot, ConfusionPlot) and isinstance(other, ConfusionPlot):
            yield from _confusions(plot, other)


def _curves(a: Curves, b: Curves, names: tuple[str, str]) -> Iterator[Curves]:
    """A plot for each class that both have, those whose areas changed most first."""
    others = {curve.name: curve for curve in b.curves}
    pairs = [(curve, others[curve.name]) for curve in a.curves if curve.name in others]
    for pair in sorted(pairs, key=lambda pair: -_change(*pair))[:MOST_CLASSES]:
        title = f"{a.name}: {pair[0].name}" if len(a.curves) > 1 and pair[0].name else a.name
        curves = (
            Curve.thinned(name, each.x, each.y, each.area, _MOST_POINTS) for each, name in zip(pair, names, strict=True)
        )
        yield Curves(title, a.kind, tuple(curves))


def _confusions(a: ConfusionPlot, b: ConfusionPlot) -> Iterator[ConfusionDifference]:
    if a.labels == b.labels and len(a.labels) <= _MOST_LABELS:
        yield ConfusionDifference(a.name, a.labels, a.counts, b.counts)


def _change(a: Curve, b: Curve) -> float:
    change = 0.0 if a.area is None or b.area is None else abs(b.area - a.area)
    return change if math.isfinite(change) else 0.0


def _reliability(plot: Reliability, name: str) -> Curve:
    points = [pair for pair in zip(plot.confidence, plot.accuracy, strict=True) if math.isfinite(sum(pair))]
    return Curve(name, tuple(x for x, _ in points), tuple(y for _, y in points), plot.error)
