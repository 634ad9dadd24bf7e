"""Trends: a value of each of several runs, in their order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from assay.render.text import number

_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class TrendPoint:
    """A value of one run.

    Args:
        run: the place of the run among all.
        value: the value.
        lower: the lower end of its interval, if there is one.
        upper: the upper end.
        change: ``"better"``, ``"worse"`` or ``"differs"`` than the run before, where that is more than noise.
    """

    run: int
    value: float
    lower: float | None = None
    upper: float | None = None
    change: str = ""


@dataclass(frozen=True)
class Trend:
    """The values of a metric over runs; each line joins those that were measured on the same data.

    Args:
        name: the title.
        runs: the names of all runs, in order.
        lines: the points of each line, in order.

    Example:
        >>> points = [TrendPoint(0, 0.5), TrendPoint(1, 0.75, change="better")]
        >>> Trend("accuracy", ("main", "new"), (tuple(points),)).summary()
        'From 0.5000 (main) to 0.7500 (new). Better: new.'
    """

    name: str
    runs: tuple[str, ...]
    lines: tuple[tuple[TrendPoint, ...], ...]

    def summary(self) -> str:
        points = sorted((point for line in self.lines for point in line), key=lambda point: point.run)
        if not points:
            return "No values."
        ends = [f"{number(point.value)} ({self.runs[point.run]})" for point in (points[0], points[-1])]
        text = f"From {ends[0]} to {ends[1]}." if len(points) > 1 else f"{ends[0]}."
        for change in ("worse", "better", "differs"):
            if names := [self.runs[point.run] for point in points if point.change == change]:
                text += f" {change.capitalize()}: {', '.join(names[-6:])}{' and before' * (len(names) > 6)}."
        return text


def sparkline(values: Sequence[float], width: int = 16) -> str:
    """The last values as a line of bars, from the least to the largest of them.

    Example:
        >>> sparkline([0.5, 0.75, 1.0, math.nan, 0.5])
        '▁▅█ ▁'
    """
    values = values[-width:]
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    low, size = min(finite), max(finite) - min(finite)
    places = [(value - low) / size if size else 0.5 for value in values]
    return "".join(_BARS[round(7 * place)] if math.isfinite(place) else " " for place in places)
