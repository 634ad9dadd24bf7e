"""Plots as charts of Vega-Lite: one description that a page shows as a picture, and draws again with hover and zoom.

A chart is plain JSON. Names from data are values in it, never names of fields or parts of expressions, so no text can
become code. Colours are CSS variables of the page, so charts follow it, light or dark.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from assay.render.chart_parts import (
    HEIGHT,
    HOVER,
    WIDTH,
    Json,
    data_of,
    diagonal,
    ink,
    line_styles,
    number_axis,
    of_rows,
    plain,
    pointed,
    row_names,
    rows_axis,
    rule_at,
    share_axis,
    tooltip,
    zoom_by,
)
from assay.render.matrices import ConfusionDifference, ConfusionPlot, MatrixPlot
from assay.render.matrix_charts import difference_chart, matrix_chart
from assay.render.plots import (
    Bars,
    Curves,
    Distribution,
    Dots,
    Drawing,
    Reliability,
    Residuals,
)
from assay.render.points import Points
from assay.render.text import number, shorten
from assay.render.trends import Trend

_CHANGES = {"better": "triangle-up", "worse": "triangle-down", "differs": "diamond"}
_TONES = {"better": "line2", "worse": "warm", "differs": "ink"}
_CONFIG: Json = {
    "aria": False,  # the picture as a whole has a name
    "font": "sans-serif",  # which text is measured by; the page says which it is shown in
    "view": {"stroke": None},
    "axis": {
        **dict.fromkeys(("labelColor", "titleColor"), "var(--faint)"),
        "gridColor": "var(--grid)",
        "domain": False,
        "ticks": False,
        "labelPadding": 6,
        "labelFontSize": 11,
        "labelLimit": 260,
        "labelOverlap": True,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    },
    "axisQuantitative": {"tickCount": 6},
    "text": {"fontSize": 10, "color": "var(--ink)"},
}


def chart(plot: Drawing) -> Json:
    """A plot as a chart of Vega-Lite.

    Args:
        plot: what to draw.

    Returns:
        The chart. ``usermeta.zoom`` says by which layer and axes it can be zoomed.

    Example:
        >>> bars = chart(Bars("recall", ("cat", "dog"), (0.5, 0.75)))
        >>> [(row["label"], row["value"]) for row in bars["data"]["values"]]
        [('cat', 0.5), ('dog', 0.75)]
    """
    drawn = next(draw for kinds, draw in _CHARTS if isinstance(plot, kinds))(plot)
    size = {"width": WIDTH, "height": HEIGHT, "autosize": {"type": "fit", "contains": "padding"}}
    return {**size, "background": None, "config": _CONFIG, **drawn}


def still(drawn: Json) -> Json:
    """A chart without what only a live one needs."""
    return {**drawn, "layer": [each for each in drawn["layer"] if each.get("name") != HOVER]}


def _curves(plot: Curves) -> Json:
    rows = [
        {"line": i, "name": each.name, "x": each.x, "y": each.y, "k": list(range(len(each.x)))}
        for i, each in enumerate(plot.curves)
    ]
    x, y = plot.axes
    place: Json = {"x": share_axis("x", x), "y": share_axis("y", y)}
    lines = {
        "mark": {"type": "line", "strokeWidth": 1.8, "strokeJoin": "round"},
        "encoding": {**place, **line_styles(len(rows)), "order": {"field": "k"}, "detail": {"field": "line"}},
    }
    tips = tooltip(("name", "curve"), ("x", x, ".4f"), ("y", y, ".4f"))
    hover = pointed(tips, ("line", "k"), **place, color=line_styles(len(rows))["color"])
    under = [diagonal(**place)] if plot.kind in ("roc", "reliability") else []
    flat = [{"flatten": ["x", "y", "k"]}]
    zoom = zoom_by(len(under), "x", "y")
    return {"data": data_of(rows), "transform": flat, "layer": [*under, lines, hover], "usermeta": zoom}


def _reliability(plot: Reliability) -> Json:
    total = max(1, sum(plot.counts))
    bins = zip(plot.edges, plot.edges[1:], plot.confidence, plot.accuracy, plot.counts, strict=False)
    rows = [
        {
            "from": left,
            "to": right - 0.08 * (right - left),
            "middle": (left + right) / 2,
            "bin": f"{left:.4g} to {right:.4g}",
            "confidence": confidence,
            "accuracy": accuracy,
            "low": min(confidence, accuracy),
            "n": count,
            "share": f"{100 * count / total:.0f}%" if count / total >= 0.005 else "<1%",
        }
        for left, right, confidence, accuracy, count in bins
        if math.isfinite(confidence + accuracy)
    ]
    tips = tooltip(
        ("bin", "bin"), ("confidence", "confidence", ".4f"), ("accuracy", "accuracy", ".4f"), ("n", "samples", ",d")
    )
    x = share_axis("from", "Confidence (below: share of the samples)")
    y = {**share_axis("accuracy", "Accuracy"), "scale": {"domain": [-0.08, 1.02], "nice": False}}
    bars: Json = {"x": x, "x2": {"field": "to"}, "tooltip": tips}
    layers: list[Json] = [
        {"mark": {"type": "rect", "color": ink("heat"), "opacity": 0.55}}
        | {"encoding": {**bars, "y": {**y, "field": "low"}, "y2": {"datum": 0}}},
        {"mark": {"type": "rect", "color": ink("warm"), "opacity": 0.5}}
        | {"encoding": {**bars, "y": {**y, "field": "confidence"}, "y2": {"field": "accuracy"}}},
        diagonal(x, y),
        {"mark": {"type": "point", "filled": True, "opacity": 1, "color": ink("ink")}}
        | {"encoding": {"x": {**x, "field": "confidence"}, "y": y, "tooltip": tips}},
        {"mark": {"type": "text", "color": ink("faint"), "fontSize": 8}}
        | {"encoding": {"x": {**x, "field": "middle"}, "y": {"datum": -0.045}, "text": {"field": "share"}}},
    ]
    return {"data": data_of(rows), "layer": layers, "usermeta": zoom_by(0, "x", "y")}


def _residuals(plot: Residuals) -> Json:
    preds, residuals = plot.finite()
    rows = [{"x": x, "y": y, "target": x - y} for x, y in zip(preds.tolist(), residuals.tolist(), strict=True)]
    place: Json = {
        "x": number_axis("x", "Predicted", scale={"zero": False}),
        "y": number_axis("y", "Residual (predicted − target)"),
    }
    tips = tooltip(("x", "predicted", ",.5~g"), ("target", "target", ",.5~g"), ("y", "residual", ",.5~g"))
    mark = {"type": "circle", "color": ink("line0"), "opacity": 0.6, "size": 40 if len(rows) < 300 else 14}
    zero = rule_at("faint", y={"datum": 0})
    points: Json = {"mark": mark, "encoding": {**place, "tooltip": tips}}
    return {"data": data_of(rows), "layer": [zero, points], "usermeta": zoom_by(1, "x", "y")}


def _distribution(plot: Distribution) -> Json:
    """Shares of each group, so that a rare group is seen beside a frequent one."""
    rows = [
        {"line": i, "name": each.name, "from": left, "to": right, "n": count, "y": count / max(1, sum(each.counts))}
        for i, each in enumerate(plot.series)
        for left, right, count in zip(plot.edges, plot.edges[1:], each.counts, strict=False)
    ]
    of = "Share of each group" if len(plot.series) > 1 else "Share of the samples"
    tips = tooltip(("name", "group"), ("from", "from", ",.5~g"), ("to", "to", ",.5~g"), ("n", "samples", ",d"))
    tips += tooltip(("y", "share", ".2%"))
    encoding = {
        "x": number_axis("from", shorten(plot.axis, 60), scale={"zero": False, "nice": False}),
        "x2": {"field": "to"},
        "y": number_axis("y", of),
        "y2": {"datum": 0},
        "color": line_styles(len(plot.series))["color"],
        "tooltip": tips,
    }
    mark = {"type": "rect", "fillOpacity": 0.25, "strokeWidth": 1}
    return {"data": data_of(rows), "layer": [{"mark": mark, "encoding": encoding}], "usermeta": zoom_by(0, "x")}


def _bars(plot: Bars) -> Json:
    none = (math.nan,) * len(plot.values)
    lower, upper = plot.lower or none, plot.upper or none
    rows = [
        {"label": label, "value": value, "lower": low, "upper": high, "shown": number(value), "of": name}
        | {"end": max(each for each in (value, high, 0.0) if math.isfinite(each))}
        for label, name, value, low, high in zip(
            row_names(plot.labels, 22), plot.labels, plot.values, lower, upper, strict=True
        )
    ]
    tips = tooltip(("of", "of"), ("shown", "value"))
    if plot.lower:
        tips += tooltip(("lower", "from", ",.5~g"), ("upper", "to", ",.5~g"))
    y = rows_axis()
    x = number_axis("value")
    layers: list[Json] = [
        {"mark": {"type": "bar", "color": ink("heat"), "opacity": 0.7, "height": {"band": 0.7}}}
        | {"encoding": {"x": x, "y": y, "tooltip": tips}},
        {"mark": {"type": "text", "align": "left", "dx": 6}}
        | {"encoding": {"x": {**x, "field": "end"}, "y": y, "text": {"field": "shown"}}},
    ]
    if plot.lower:
        ends: Json = {"x": {**x, "field": "lower"}, "x2": {"field": "upper"}, "y": y, "tooltip": tips}
        layers.insert(1, {"mark": {"type": "rule", "color": ink("ink")}, "encoding": ends})
    return {"data": data_of(rows), **of_rows(len(rows)), "layer": layers, "usermeta": zoom_by(0, "x")}


def _dots(plot: Dots) -> Json:
    """A dot and its interval a slice; the worst in the colour of errors, those too small to say faint."""
    names = [
        f"{name}  n={dot.count:,}"
        for name, dot in zip(row_names([d.name for d in plot.dots], 22), plot.dots, strict=True)
    ]
    rows = [
        {"label": label, "of": dot.name, "n": dot.count, "value": dot.value, "ink": dot.ink, "shown": number(dot.value)}
        | {"lower": dot.lower, "upper": dot.upper}
        for label, dot in zip(names, plot.dots, strict=True)
    ]
    inks = sorted({dot.ink for dot in plot.dots})
    tips = tooltip(("of", "slice"), ("shown", "value"), ("lower", "from", ",.5~g"), ("upper", "to", ",.5~g"))
    tips += tooltip(("n", "samples", ",d"))
    base: Json = {
        "y": rows_axis(),
        "tooltip": tips,
        "color": {
            "field": "ink",
            "type": "nominal",
            "legend": None,
            "scale": {"domain": inks, "range": [*map(ink, inks)]},
        },
    }
    x = number_axis("value", scale={"zero": False})
    layers: list[Json] = [
        {"mark": {"type": "rule", "strokeWidth": 1.8}}
        | {"encoding": {**base, "x": {**x, "field": "lower"}, "x2": {"field": "upper"}}},
        {"mark": {"type": "point", "filled": True, "opacity": 1, "size": 45}, "encoding": {**base, "x": x}},
    ]
    if plot.overall is not None:
        layers.append(rule_at("ink", (3, 2), x={"datum": plain(plot.overall)}))
    return {"data": data_of(rows), **of_rows(len(rows)), "layer": layers, "usermeta": zoom_by(1, "x")}


def _trend(plot: Trend) -> Json:
    """A line with its intervals for each set of data; changes that are more than noise are marked."""
    names = row_names(plot.runs, 16)
    rows = [
        {"label": names[each.run], "of": plot.runs[each.run], "line": i, "value": each.value, "change": each.change}
        | {"lower": each.lower, "upper": each.upper, "shown": number(each.value)}
        for i, line in enumerate(plot.lines)
        for each in line
    ]
    labels = {"labelAngle": -30 if sum(map(len, names)) > 60 else 0, "labelOverlap": True, "grid": False}
    x = {**rows_axis(), "axis": labels, "scale": {"domain": names}}
    y = number_axis("value", scale={"zero": False})
    styles = line_styles(len(plot.lines))
    tips = tooltip(("of", "run"), ("shown", "value"), ("lower", "from", ",.5~g"), ("upper", "to", ",.5~g"))
    tips += tooltip(("change", "change"))
    ends: Json = {"x": x, "y": {**y, "field": "lower"}, "y2": {"field": "upper"}, "color": styles["color"]}
    shapes = {"domain": ["", *_CHANGES], "range": ["circle", *_CHANGES.values()]}
    tones = {"condition": [{"test": f"datum.change === '{name}'", "value": ink(tone)} for name, tone in _TONES.items()]}
    points: Json = {
        "x": x,
        "y": y,
        "shape": {"field": "change", "type": "nominal", "legend": None, "scale": shapes},
        "size": {"condition": {"test": "datum.change !== ''", "value": 110}, "value": 40},
        "color": {**styles["color"], **tones},
        "tooltip": tips,
    }
    layers: list[Json] = [
        {"mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.3}, "encoding": ends},
        {"mark": {"type": "line", "strokeWidth": 1.6}, "encoding": {"x": x, "y": y, **styles}},
        {"mark": {"type": "point", "filled": True, "opacity": 1}, "encoding": points},
    ]
    return {"data": data_of(rows), "height": 300, "layer": layers, "usermeta": zoom_by(1, "y")}


def _points(plot: Points) -> Json:
    """A dot a thing with its name, its interval, and a line through those that nothing is better than."""
    best = plot.best()
    rows = [
        {"name": each.name, "short": shorten(each.name, 24), "x": each.x, "y": each.y, "best": each in best}
        | {"lower": None if each.lower is not None and each.lower <= 0 and plot.is_log else each.lower}
        | {"upper": each.upper}
        | {"right": f"{number(each.x)} ({plot.x})", "up": f"{number(each.y)} ({plot.y})"}
        for each in plot.drawable()
    ]
    scale = {"type": "log", "nice": True} if plot.is_log and rows else {"zero": False}
    place: Json = {
        "x": number_axis("x", plot.x, scale={"zero": False, "padding": 30}),
        "y": number_axis("y", plot.y, scale=scale),
    }
    place["y"]["axis"] = {"format": "~g"}
    tips = tooltip(("name", "name"), ("right", "x"), ("up", "y"))

    def tone(yes: str, no: str) -> Json:
        return {"condition": {"test": "datum.best", "value": ink(yes)}, "value": ink(no)}

    layers: list[Json] = [
        {"transform": [{"filter": "datum.best"}], "mark": {"type": "line", "color": ink("heat"), "opacity": 0.6}}
        | {"encoding": place},
        {"transform": [{"filter": "isValid(datum.lower) && isValid(datum.upper)"}]}
        | {"mark": {"type": "rule", "color": ink("faint")}}
        | {"encoding": {**place, "y": {**place["y"], "field": "lower"}, "y2": {"field": "upper"}}},
        {"mark": {"type": "point", "filled": True, "opacity": 1, "size": 50}}
        | {"encoding": {**place, "color": tone("line0", "warm"), "tooltip": tips}},
        {"mark": {"type": "text", "align": "left", "dx": 6, "dy": -6}}
        | {"encoding": {**place, "text": {"field": "short"}, "color": tone("ink", "faint"), "tooltip": tips}},
    ]
    return {"data": data_of(rows), "layer": layers, "usermeta": zoom_by(2, "x", "y")}


_CHARTS: tuple[tuple[Any, Callable[[Any], Json]], ...] = (
    (ConfusionPlot | MatrixPlot, matrix_chart),
    (ConfusionDifference, difference_chart),
    (Curves, _curves),
    (Reliability, _reliability),
    (Residuals, _residuals),
    (Distribution, _distribution),
    (Points, _points),
    (Dots, _dots),
    (Trend, _trend),
    (Bars, _bars),
)
