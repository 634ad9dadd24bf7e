"""Plots drawn as SVG to stand inside a page: text stays text, and colours follow the page, light or dark.

Matplotlib draws with stand-in colours, each the number of a name in `INKS`; afterwards they are replaced by the CSS
variable of that name, which the page sets twice, for light and for dark. No global state of pyplot is touched.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from importlib import resources
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from assay.errors import needing
from assay.render.plots import (
    Bars,
    ConfusionPlot,
    Curves,
    Distribution,
    Dots,
    Drawing,
    MatrixPlot,
    Reliability,
    Residuals,
)
from assay.render.points import Points
from assay.render.text import clean, number, shorten, shorten_each
from assay.render.trends import Trend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = 10
"""How many lines of a plot are distinguished by colour; further ones are dashed."""

INKS = ("ink", "faint", "grid", "heat", "on-heat", "warm", *(f"line{i}" for i in range(COLOURS)))

_STAND_IN = "#0a5c{:02x}"
_LABELLED_CLASSES = 30  # beyond, a cell is too small for its count, and the matrix becomes one image

_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "assay",  # the same report gives the same bytes
    "text.parse_math": False,  # a class may be called "$x^"
    "axes.formatter.use_mathtext": False,
    "axes.formatter.useoffset": False,
    "axes.unicode_minus": True,
    "font.family": "sans-serif",
    "font.size": 10.0,
}


_palette: ContextVar[Mapping[str, str] | None] = ContextVar("palette", default=None)


def ink(name: str) -> str:
    """The colour for a name in `INKS`: a stand-in, or where `to_axes` draws the one of light pages."""
    palette = _palette.get()
    return _STAND_IN.format(INKS.index(name)) if palette is None else palette[name]


def to_axes(plot: Drawing, axes: Axes | None = None) -> Axes:
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
        css = resources.files("assay.render").joinpath("page", "page.css").read_text(encoding="utf-8")
        light = css.partition("@media")[0]
        token = _palette.set(dict(re.findall(r"--([\w-]+): (#\w+);", light)))
        try:
            _prepare(axes)
            draw(axes, plot)
            axes.set_title(clean(plot.name), color=ink("ink"), fontsize=11)
            _add_legend(axes, plot)
        finally:
            _palette.reset(token)
    return axes


def _add_legend(axes: Axes, plot: Drawing) -> None:
    """Name the lines where there are several; a page does so below the plot."""
    names = [each.name for each in plot.curves] if isinstance(plot, Curves) else []
    if isinstance(plot, Distribution):
        names = [each.name for each in plot.series]
    if len(names) > 1:
        from matplotlib.lines import Line2D

        styles = map(line_style, range(len(names)))
        lines = [Line2D([], [], color=ink(colour), linestyle=dashes) for colour, dashes in styles]  # type: ignore[arg-type]
        axes.legend(lines, [clean(name) for name in names], frameon=False, fontsize=8)


def line_style(index: int) -> tuple[str, str]:
    """Name of the ink and dash pattern of the line ``index``."""
    return f"line{index % COLOURS}", ("solid", "dashed", "dotted")[index // COLOURS % 3]


def to_svg(plot: Drawing, key: str) -> str:
    """Draw a plot.

    Args:
        plot: what to draw.
        key: letters and digits that no other plot of the page has; keeps its references apart from theirs.

    Returns:
        An ``<svg>`` element that fills the width it is given, with its summary as accessible name.
    """
    with needing("matplotlib", "plots", "plots"):
        from matplotlib import rc_context
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

    draw, size = _drawing(plot)
    with rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # the page's fonts will have it
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots()
        _prepare(axes)
        draw(axes, plot)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return _for_page(buffer.getvalue(), key, f"{plot.name}: {plot.summary()}")


def _drawing(plot: Drawing) -> tuple[Callable[[Any, Any], None], tuple[float, float]]:
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
    if isinstance(plot, Dots):
        return _draw_dots, (5.2, 0.8 + 0.27 * len(plot.dots))
    if isinstance(plot, Trend):
        return _draw_trend, (5.2, 3.2)
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


def _draw_dots(axes: Axes, plot: Dots) -> None:
    """A dot and its interval a slice; the worst in the colour of errors, those too small to say faint."""
    for i, dot in enumerate(plot.dots):
        colour = ink(dot.ink)
        if dot.lower is not None and dot.upper is not None and np.isfinite([dot.lower, dot.upper]).all():
            axes.plot([dot.lower, dot.upper], [i, i], color=colour, linewidth=1.6, solid_capstyle="round")
        axes.plot([dot.value], [i], "o", color=colour, markersize=5)
    if plot.overall is not None:
        axes.axvline(plot.overall, color=ink("ink"), linewidth=1, linestyle=(0, (3, 2)))
    names = shorten_each([dot.name for dot in plot.dots], 22)
    labels = [f"{name}  n={dot.count:,}" for name, dot in zip(names, plot.dots, strict=True)]
    axes.set_yticks(range(len(plot.dots)), labels)
    axes.set_ylim(len(plot.dots) - 0.4, -0.6)
    axes.grid(False, axis="y")


_RUN_LABELS = 8
_CHANGES = {"worse": ("warm", "X", 8.0), "better": ("line2", "P", 8.0), "differs": ("ink", "D", 5.5)}


def _draw_trend(axes: Axes, plot: Trend) -> None:
    """A line with its intervals for each set of data; changes that are more than noise are marked."""
    for i, line in enumerate(plot.lines):
        colour, dashes = line_style(i)
        places, values = [point.run for point in line], [point.value for point in line]
        lower, upper = (np.array([getattr(each, end) for each in line], float) for end in ("lower", "upper"))
        axes.fill_between(places, lower, upper, color=ink(colour), alpha=0.15, linewidth=0)
        axes.vlines(places, lower, upper, color=ink(colour), alpha=0.5, linewidth=1.2)
        axes.plot(places, values, color=ink(colour), linestyle=dashes, linewidth=1.6)
        for point in line:
            tone, marker, size = _CHANGES.get(point.change, (colour, "o", 4.5))
            axes.plot([point.run], [point.value], marker, color=ink(tone), markersize=size)
    step = max(1, -(-len(plot.runs) // _RUN_LABELS))
    ticks = range(len(plot.runs) - 1, -1, -step)[::-1]
    shown = shorten_each(plot.runs, 14)
    is_long = sum(len(shown[i]) + 2 for i in ticks) > 60
    axes.set_xticks(
        list(ticks), [shown[i] for i in ticks], rotation=30 if is_long else 0, ha="right" if is_long else "center"
    )
    axes.set_xlim(-0.5, len(plot.runs) - 0.5)
    axes.margins(y=0.12)


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


def _for_page(svg: str, key: str, label: str) -> str:
    """Matplotlib's file as an element of a page: small, with references of its own and with the page's inks."""
    root = ElementTree.fromstring(svg)
    for parent in root.iter():
        parent.tag = parent.tag.partition("}")[2]
        for child in [c for c in parent if c.tag.endswith(("}metadata", "}style"))]:
            parent.remove(child)
    text = " ".join(value for element in root.iter() for value in element.attrib.values())
    referred = set(re.findall(r"#([\w-]+)", text))
    for element in root.iter():
        element.attrib = _attributes(element.attrib, key, referred)
        element.tail = None
        if element.tag != "text":
            element.text = None
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": clean(label)}
    return ElementTree.tostring(root, encoding="unicode")


def _attributes(attributes: dict[str, str], key: str, referred: set[str]) -> dict[str, str]:
    """The attributes of one element, renamed for the page; only attributes, so that no label is ever touched."""
    safe = {}
    for name, value in attributes.items():
        name = name.partition("}")[2] or name  # xlink:href is called href today
        if name == "id":
            if value in referred:
                safe[name] = f"{key}-{value}"
            continue
        value = re.sub(r"#0a5c([0-9a-f]{2})", lambda match: f"var(--{INKS[int(match[1], 16)]})", value)
        value = value.replace("url(#", f"url(#{key}-")
        value = re.sub(r"font-family:[^;]*;\s*", "", value)  # the page says which
        if name == "href":
            value = f"#{key}-{value[1:]}" if value.startswith("#") else "".join(value.split())
        safe[name] = " ".join(value.split())
    return safe
