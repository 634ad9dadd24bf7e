"""Points as SVG: a dot a thing with its name, its interval, and a line through those that nothing is better than."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.report.points import Points
from assay.report.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes


def draw(axes: Axes, plot: Points, ink: Callable[[str], str]) -> None:
    """Draw points.

    Args:
        axes: where to.
        plot: what to draw.
        ink: gives the colour of a name.
    """
    best = plot.best()
    if plot.is_log and best:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, place: f"{value:g}")  # Matplotlib's own writes TeX
        axes.yaxis.set_minor_formatter(lambda value, place: "")
        axes.tick_params(which="minor", length=0)
    axes.plot([p.x for p in best], [p.y for p in best], color=ink("heat"), linewidth=1.4, alpha=0.6)
    for point in plot.drawable():
        if point.lower is not None and point.upper is not None and (point.lower > 0 or not plot.is_log):
            axes.vlines(point.x, point.lower, point.upper, color=ink("faint"), linewidth=1.2)
        is_best = point in best
        axes.plot([point.x], [point.y], "o", color=ink("line0" if is_best else "warm"), markersize=5.5)
        axes.annotate(
            shorten(point.name, 24),
            (point.x, point.y),
            xytext=(6, 5),
            textcoords="offset points",
            fontsize=8,
            color=ink("ink" if is_best else "faint"),
        )
    axes.margins(x=0.18, y=0.12)
    axes.set_xlabel(plot.x, color=ink("faint"))
    axes.set_ylabel(plot.y, color=ink("faint"))
