"""Plots drawn with Matplotlib on axes of the caller, in the colours of a light page."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.errors import needing
from assay.render.chart_parts import line_style
from assay.render.matrices import ConfusionPlot, MatrixPlot
from assay.render.plots import Bars, Curves, Distribution, Plot, Reliability, Residuals
from assay.render.points import Points
from assay.render.text import clean, number, shorten, shorten_each

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABELLED_CLASSES = 30  # beyond, a cell is too small for its count, and the matrix becomes one image

_STYLE: Any = {
    "text.parse_math": False,  # a class may be called "$x^"
    "axes.formatter.use_mathtext": False,
    "axes.formatter.useoffset": False,
    "axes.unicode_minus": True,
    "font.family": "sans-serif",
    "font.size": 10.0,
}


@cache
def _palette() -> dict[str, str]:
    css = resources.files("assay.render").joinpath("page", "page.css").read_text(encoding="utf-8")
    return dict(re.findall(r"--([\w-]+): (#\w+);", css.partition("@media")[0]))


def ink(name: str) -> str:
    """The colour that light pages have under a name."""
    return _palette()[name]


def to_axes(plot: Plot | MatrixPlot, axes: Axes | None = None) -> Axes:
    """Draw a plot with Matplotlib, in the colours of a light page.

    Args:
        plot: what to draw.
        axes: where to draw; by default on axes of a new figure of pyplot.

    Returns:
        The axes.
    """
    with needing("matplotlib", "plots", "plots"):
        from matplotlib import rc_context

    draw, size = _drawing(plot)
    figure: Any = None
    if axes is None:
        from matplotlib import pyplot

        # Outside of the context: the first figure starts the backend of a notebook, whose settings must stay.
        figure = pyplot.figure(figsize=size, layout="constrained")
    with rc_context(_STYLE):
        axes = figure.subplots() if axes is None else axes
        _prepare(axes)
        draw(axes, plot)
        axes.set_title(clean(plot.name), color=ink("ink"), fontsize=11)
        _add_legend(axes, plot)
    return axes


def _add_legend(axes: Axes, plot: Plot | MatrixPlot) -> None:
    """Name the lines where there are several."""
    names = [each.name for each in plot.curves] if isinstance(plot, Curves) else []
    if isinstance(plot, Distribution):
        names = [each.name for each in plot.series]
    if len(names) > 1:
        from matplotlib.lines import Line2D

        styles = map(line_style, range(len(names)))
        lines = [Line2D([], [], color=ink(colour), linestyle=dashes) for colour, dashes in styles]  # type: ignore[arg-type]
        axes.legend(lines, [clean(name) for name in names], frameon=False, fontsize=8)


def _drawing(plot: Plot | MatrixPlot) -> tuple[Callable[[Any, Any], None], tuple[float, float]]:
    """The function that draws a kind of plot, and its size in inches."""
    if isinstance(plot, ConfusionPlot | MatrixPlot):
        return _draw_confusion, (5.2, 4.4 if len(plot.labels) < 5 else 5.0)
    if isinstance(plot, Curves):
        return _draw_curves, (5.2, 4.4)
    if isinstance(plot, Reliability):
        return _draw_reliability, (5.2, 4.4)
    if isinstance(plot, Residuals):
        return _draw_residuals, (5.2, 4.4)
    if isinstance(plot, Distribution):
        return _draw_distribution, (5.2, 4.4)
    if isinstance(plot, Points):
        return _draw_points, (5.2, 4.4)
    return _draw_bars, (5.2, 0.9 + 0.32 * max(1, len(plot.labels)))


def _prepare(axes: Axes) -> None:
    axes.tick_params(colors=ink("faint"), length=0, pad=5)
    axes.grid(color=ink("grid"), linewidth=0.8)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _name_axes(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, color=ink("faint"))
    axes.set_ylabel(y, color=ink("faint"))


def _draw_confusion(axes: Axes, plot: ConfusionPlot | MatrixPlot) -> None:
    """Shades by the share of the target's row; colour for what is right, another for errors."""
    counts_NN = np.array(plot.counts, dtype=np.float64).reshape(len(plot.labels), len(plot.labels))
    total_N1 = counts_NN.sum(axis=1, keepdims=True)
    share_NN = counts_NN / np.where(total_N1 > 0, total_N1, 1)
    axes.grid(False)
    _name_axes(axes, "Predicted", "Target")
    n = len(plot.labels)
    if n <= _LABELLED_CLASSES:
        _draw_cells(axes, plot, share_NN)
    else:
        _draw_image(axes, share_NN)
    ticks = range(0, n, max(1, -(-n // _LABELLED_CLASSES)))
    shown = shorten_each(plot.labels, 12)
    labels = [shown[i] for i in ticks]
    upright = max((len(label) for label in labels), default=0) * n > 55
    axes.set_xticks(ticks, labels, rotation=90 if upright else 0)
    axes.set_yticks(ticks, labels)
    end = max(n, 1) - 0.5
    axes.set(xlim=(-0.5, end), ylim=(end, -0.5), aspect="equal")


def _draw_cells(axes: Axes, plot: ConfusionPlot | MatrixPlot, share_NN: np.ndarray[Any, Any]) -> None:
    size = min(10.0, 95.0 / max(1, len(plot.labels)))
    for i, row in enumerate(plot.counts):
        for j, count in enumerate(row):
            _fill_cell(axes, i, j, "grid", 0.45)
            if count > 0:
                alpha = float(share_NN[i, j]) ** 0.6  # rare errors stay visible
                _fill_cell(axes, i, j, "heat" if i == j else "warm", alpha)
                text = ink("on-heat" if alpha > 0.8 else "ink")
                axes.text(
                    j,
                    i,
                    f"{count}" if isinstance(count, int) else f"{count:.3g}",
                    ha="center",
                    va="center",
                    fontsize=size,
                    color=text,
                )


def _fill_cell(axes: Axes, row: int, column: int, colour: str, alpha: float) -> None:
    from matplotlib.patches import Rectangle

    corner = (column - 0.47, row - 0.47)
    axes.add_patch(Rectangle(corner, 0.94, 0.94, facecolor=ink(colour), alpha=alpha, linewidth=0, clip_on=False))


def _draw_image(axes: Axes, share_NN: np.ndarray[Any, Any]) -> None:
    """Cells by the million as one picture, whose two colours read on white and on black."""
    image = np.zeros((*share_NN.shape, 4))
    image[..., :3] = (0.85, 0.42, 0.18)
    image[np.eye(len(share_NN), dtype=bool), :3] = (0.25, 0.47, 0.85)
    image[..., 3] = share_NN**0.6
    axes.imshow(image, interpolation="none" if len(share_NN) <= 300 else "antialiased")


def _draw_curves(axes: Axes, plot: Curves) -> None:
    if plot.kind == "roc":
        axes.plot([0, 1], [0, 1], color=ink("faint"), linewidth=1, linestyle=(0, (2, 3)))
    for i, curve in enumerate(plot.curves):
        colour, dashes = line_style(i)
        axes.plot(curve.x, curve.y, color=ink(colour), linestyle=dashes, linewidth=1.8, solid_joinstyle="round")
    _unit_square(axes)
    _name_axes(axes, *plot.axes)


def _draw_reliability(axes: Axes, plot: Reliability) -> None:
    """Accuracy as bars, the gap to the diagonal shaded, the share of the samples as a strip below."""
    edges, accuracy, confidence = (np.asarray(s, float) for s in (plot.edges, plot.accuracy, plot.confidence))
    used = np.isfinite(accuracy) & np.isfinite(confidence)
    left, width = edges[:-1][used], np.diff(edges)[used]
    low, high = np.minimum(confidence, accuracy)[used], np.maximum(confidence, accuracy)[used]
    axes.bar(left, low, width * 0.92, align="edge", color=ink("heat"), alpha=0.55, linewidth=0)
    axes.bar(left, high - low, width * 0.92, bottom=low, align="edge", color=ink("warm"), alpha=0.5, linewidth=0)
    axes.plot([0, 1], [0, 1], color=ink("faint"), linewidth=1, linestyle=(0, (2, 3)))
    axes.plot(confidence[used], accuracy[used], "o", color=ink("ink"), markersize=3.5)
    share = np.asarray(plot.counts, float)[used] / max(1, sum(plot.counts))
    for x, w, s in zip(left, width, share, strict=True):
        label = "<1%" if 0 < s < 0.005 else f"{100 * s:.0f}%"
        axes.text(x + w * 0.46, -0.045, label, ha="center", va="center", fontsize=7, color=ink("faint"))
    _unit_square(axes)
    axes.set_ylim(-0.08, 1.02)
    _name_axes(axes, "Confidence (below: share of the samples)", "Accuracy")


def _draw_residuals(axes: Axes, plot: Residuals) -> None:
    preds, residuals = plot.finite()
    axes.axhline(0, color=ink("faint"), linewidth=1, linestyle=(0, (2, 3)))
    size = 18 if len(preds) < 300 else 6
    axes.scatter(preds, residuals, s=size, color=ink("line0"), alpha=0.6, linewidth=0)
    _name_axes(axes, "Predicted", "Residual (predicted - target)".replace("-", "−"))


def _draw_distribution(axes: Axes, plot: Distribution) -> None:
    """Shares of each group, so that a rare group is seen beside a frequent one."""
    for i, each in enumerate(plot.series):
        colour, dashes = line_style(i)
        share = np.asarray(each.counts, float) / max(1, sum(each.counts))
        axes.stairs(share, plot.edges, fill=True, color=ink(colour), alpha=0.22, linewidth=0)
        axes.stairs(share, plot.edges, color=ink(colour), linestyle=dashes, linewidth=1.6, baseline=None)
    axes.set_ylim(bottom=0)
    _name_axes(axes, shorten(plot.axis, 60), "Share of each group" if len(plot.series) > 1 else "Share of the samples")


def _draw_bars(axes: Axes, plot: Bars) -> None:
    place = np.arange(len(plot.labels))
    values = np.nan_to_num(np.asarray(plot.values, float), posinf=0.0, neginf=0.0)
    axes.barh(place, values, height=0.62, color=ink("heat"), alpha=0.7, linewidth=0)
    ends = plot.upper or plot.values
    for i, (value, end) in enumerate(zip(plot.values, ends, strict=True)):
        at = float(np.nan_to_num(max(value, end, 0.0), posinf=0.0))
        axes.text(at, i, f"  {number(value)}", va="center", ha="left", color=ink("ink"), fontsize=8)
    if plot.lower:
        axes.hlines(place, plot.lower, plot.upper, color=ink("ink"), linewidth=1.2)
    axes.set_yticks(place, shorten_each(plot.labels, 22), color=ink("ink"))
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.grid(False, axis="y")


def _draw_points(axes: Axes, plot: Points) -> None:
    """A dot a thing with its name, its interval, and a line through those that nothing is better than."""
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
    _name_axes(axes, plot.x, plot.y)


def _unit_square(axes: Axes) -> None:
    ticks = [0, 0.25, 0.5, 0.75, 1]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
