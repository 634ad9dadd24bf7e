"""The values of metrics as plots: curves, matrices, diagrams, and bars of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from assay.metrics.base import named_numbers
from assay.metrics.classification.detection_curves import ErrorTradeoff
from assay.metrics.classification.probabilities import ReliabilityDiagram
from assay.metrics.classification.ranking import PRCurve, ROCCurve
from assay.metrics.retrieval.curves import RetrievalCurve
from assay.render.plots import Bars, ConfusionPlot, Curve, Curves, MatrixPlot, Plot, Reliability

_CURVES: Mapping[type, tuple[str, int, int]] = {
    ROCCurve: ("roc", 0, 1),
    PRCurve: ("pr", 1, 0),
    RetrievalCurve: ("pr", 1, 0),
    ErrorTradeoff: ("det", 0, 1),
}
"""The kind of curve that a value is, and which of its entries are x and y."""


def plots_of(values: Mapping[str, Any], matrices: set[str], classes: Sequence[str]) -> list[Plot | MatrixPlot]:
    """What can be drawn of values, one plot a metric; then bars of all single numbers.

    Args:
        values: what a meter computes, by the names of the metrics.
        matrices: which of them are confusion matrices.
        classes: the names of the classes; their numbers where there are none.
    """
    plots: list[Plot | MatrixPlot] = []
    numbers: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, tuple(_CURVES)):
            plots.append(curves(name, value, classes))
        elif isinstance(value, ReliabilityDiagram):
            plots.append(reliability(name, value))
        elif name in matrices and isinstance(value, Tensor) and value.ndim == 2:
            kind = MatrixPlot if value.is_floating_point() else ConfusionPlot  # of shares or weights, or of counts
            plots.append(kind(name, _names(classes, len(value)), tuple(map(tuple, value.tolist()))))
        elif isinstance(value, Tensor) and value.ndim == 1 and len(value):
            plots.append(Bars(name, _names(classes, len(value)), tuple(value.double().tolist())))
        else:
            numbers |= dict(named_numbers(name, value))
    if numbers:
        plots.append(Bars("values", tuple(numbers), tuple(numbers.values())))
    return plots


def curves(title: str, points: Any, classes: Sequence[str], areas: Sequence[float] | None = None) -> Curves:
    """Curves of the second of two classes, or of each class."""
    kind, x, y = _CURVES[type(points)]
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
