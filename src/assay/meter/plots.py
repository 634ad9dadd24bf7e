"""The values of metrics as plots: curves, matrices, diagrams, and bars of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from assay.metrics.base import Metric, named_numbers
from assay.render.matplotlib_axes import to_axes
from assay.render.matrices import ConfusionPlot, MatrixPlot
from assay.render.plots import Bars, Curve, Curves, Plot, Reliability, choose_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CURVES = {"roc": (0, 1), "pr": (1, 0), "det": (0, 1)}
"""Which entries of the value of a curve are x and y, by its kind."""


def drawn(
    metrics: Mapping[str, Metric], values: Mapping[str, Any], name: str, axes: Axes | None, classes: Sequence[str]
) -> Axes:
    """Draw one of the values; see `assay.meter.Meter.plot`."""
    plots = plots_of(metrics, values, classes)
    return to_axes(choose_plot(plots, "" if name in metrics else name), axes)


def plots_of(
    metrics: Mapping[str, Metric], values: Mapping[str, Any], classes: Sequence[str] = ()
) -> list[Plot | MatrixPlot]:
    """What can be drawn of values, one plot a metric; then bars of all single numbers.

    Args:
        metrics: which have pictures, by name.
        values: what a meter computes, by the names of the metrics.
        classes: the names of the classes; their numbers where there are none.
    """
    plots: list[Plot | MatrixPlot] = []
    numbers: dict[str, float] = {}
    for name, value in values.items():
        picture = metrics[name].picture
        if picture in _CURVES:
            plots.append(curves(name, picture, value, classes))
        elif picture == "reliability":
            plots.append(reliability(name, value))
        elif picture == "matrix" and value.ndim == 2:
            kind = MatrixPlot if value.is_floating_point() else ConfusionPlot  # of shares or weights, or of counts
            plots.append(kind(name, _names(classes, len(value)), tuple(map(tuple, value.tolist()))))
        elif isinstance(value, Tensor) and value.ndim == 1 and len(value):
            plots.append(Bars(name, _names(classes, len(value)), tuple(value.double().tolist())))
        else:
            numbers |= dict(named_numbers(name, value))
    if numbers:
        plots.append(Bars("values", tuple(numbers), tuple(numbers.values())))
    return plots


def curves(title: str, kind: str, points: Any, classes: Sequence[str], areas: Sequence[float] | None = None) -> Curves:
    """Curves of the second of two classes, or of each class."""
    x, y = _CURVES[kind]
    single = isinstance(points[0], Tensor) and points[0].ndim == 1
    lines = [tuple(points)] if single else list(zip(*points, strict=True))
    names = tuple(classes[1:]) if single and len(classes) == 2 else _names(classes, len(lines))
    shown = areas or (None,) * len(lines)
    each = (Curve.thinned(n, line[x], line[y], area) for n, line, area in zip(names, lines, shown, strict=True))
    return Curves(title, kind, tuple(each))


def reliability(title: str, bins: Any, error: float | None = None) -> Reliability:
    """How often predictions made with some confidence are right."""
    edges, confidence, accuracy, counts = (
        tuple(each.tolist()) for each in (bins.edges, bins.confidence, bins.accuracy, bins.counts)
    )
    return Reliability(title, edges, confidence, accuracy, counts, error)


def _names(classes: Sequence[str], count: int) -> tuple[str, ...]:
    return tuple(classes) if len(classes) == count else tuple(map(str, range(count)))
