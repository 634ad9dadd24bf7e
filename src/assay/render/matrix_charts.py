"""Confusion matrices as charts of Vega-Lite."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from assay.render.chart_parts import HEIGHT, HOVER, WIDTH, Json, data_of, ink, row_names, rows_axis, tooltip
from assay.render.matrices import ConfusionDifference, ConfusionPlot, MatrixPlot
from assay.render.pictures import to_png

_LABELLED_CLASSES = 30  # beyond, a cell is too small for its count, and the matrix becomes one image
_POINTED_CELLS = 1000  # of such an image, that say on hover what they are


def matrix_chart(plot: ConfusionPlot | MatrixPlot) -> Json:
    """Shades by the share of the target's row; colour for what is right, another for errors."""
    share_NN = _shares(plot.counts)

    def cell(i: int, j: int) -> Json:
        count, share = plot.counts[i][j], float(share_NN[i, j])
        shown = (f"{count:,}" if isinstance(count, int) else f"{count:.3g}") if count else ""
        return {"count": shown, "share": share, "shade": share**0.6, "tone": "heat" if i == j else "warm"}

    tips = tooltip(("count", "count"), ("share", "share of the target", ".2%"))
    return _cells(plot.labels, share_NN, cell, tips)


def difference_chart(plot: ConfusionDifference) -> Json:
    """Shades by the change of the share of the target's row; colour for what got better, another for what got worse."""
    before, now = (_shares(counts) for counts in (plot.before, plot.now))
    change_NN = now - before
    reach = max(float(np.abs(change_NN).max(initial=0.0)), 1e-12)

    def cell(i: int, j: int) -> Json:
        was, is_now = plot.before[i][j], plot.now[i][j]
        change = float(change_NN[i, j])
        better = change > 0 if i == j else change < 0
        counts = {"count": f"{is_now - was:+,}".replace("-", "−") if was != is_now else "", "was": was, "now": is_now}
        shade = min(1.0, abs(change) / reach) ** 0.6
        return {**counts, "share": change, "shade": shade, "tone": "line2" if better else "warm"}

    tips = tooltip(("was", "before", ",d"), ("now", "now", ",d"), ("share", "change of the share", "+.2%"))
    return _cells(plot.labels, np.abs(change_NN), cell, tips)


def _shares(counts: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    counts_NN = np.array(counts, dtype=np.float64).reshape(len(counts), len(counts))
    total_N1 = counts_NN.sum(axis=1, keepdims=True)
    return counts_NN / np.where(total_N1 > 0, total_N1, 1)


def _cells(
    labels: Sequence[str], shade_NN: NDArray[np.float64], cell: Callable[[int, int], Json], tips: list[Json]
) -> Json:
    """A square of cells; of many classes one image, whose darkest cells say what they are."""
    n = len(labels)
    names = row_names(labels, 12)
    is_image = n > _LABELLED_CLASSES
    places = list(np.ndindex(n, n))
    if is_image:
        order = np.argsort(-shade_NN, axis=None, kind="stable")[:_POINTED_CELLS]
        places = [(int(k) // n, int(k) % n) for k in order]
    rows = [
        {"target": labels[i], "pred": labels[j], "label": names[i], "column": names[j], **cell(i, j)} for i, j in places
    ]
    every = max(1, -(-n // _LABELLED_CLASSES))
    upright = max(map(len, names), default=0) * n > 55
    axis = {"grid": False, "values": names[::every]}
    y = {**rows_axis(), "title": "Target", "scale": {"domain": names, "paddingInner": 0 if is_image else 0.06}}
    x = {**y, "field": "column", "title": "Predicted", "axis": {**axis, "labelAngle": -90 if upright else 0}}
    y["axis"] = axis
    tips = tooltip(("target", "target"), ("pred", "predicted")) + tips
    tones = ["heat", "warm", "line2"]
    color = {
        "field": "tone",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": tones, "range": [*map(ink, tones)]},
    }
    place = {"x": x, "y": y}
    shade = {"field": "shade", "type": "quantitative", "legend": None, "scale": {"domain": [0, 1], "range": [0, 1]}}
    if is_image:
        picture = base64.b64encode(to_png(_image(shade_NN))).decode()
        mark = {"type": "image", "url": f"data:image/png;base64,{picture}", "aspect": False, "smooth": False}
        whole = {"x": {"value": 0}, "x2": {"value": "width"}, "y": {"value": 0}, "y2": {"value": "height"}}
        pointed = {"name": HOVER, "mark": {"type": "rect", "opacity": 0}, "encoding": {**place, "tooltip": tips}}
        axes = {"mark": {"type": "rect", "opacity": 0}, "encoding": place, "transform": [{"filter": "false"}]}
        layers = [axes, {"data": {"values": [{}]}, "mark": mark, "encoding": whole}, pointed]
    else:
        under = {
            "mark": {"type": "rect", "color": ink("grid"), "opacity": 0.45},
            "encoding": {**place, "tooltip": tips},
        }
        over = {"mark": "rect", "encoding": {**place, "color": color, "opacity": shade, "tooltip": tips}}
        readable = {"condition": {"test": "datum.shade > 0.8", "value": ink("on-heat")}, "value": ink("ink")}
        words = {"mark": {"type": "text", "fontSize": min(10.0, 95.0 / max(1, n))}}
        layers = [under, over, words | {"encoding": {**place, "text": {"field": "count"}, "color": readable}}]
    return {"data": data_of(rows), "height": HEIGHT if n < 5 else WIDTH - 40, "layer": layers}


def _image(shade_NN: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Cells by the million as one picture, whose two colours read on white and on black."""
    image = np.zeros((*shade_NN.shape, 4), np.uint8)
    image[..., :3] = (217, 107, 46)
    image[np.eye(len(shade_NN), dtype=bool), :3] = (64, 120, 217)
    image[..., 3] = np.round(255 * np.minimum(shade_NN, 1) ** 0.6)
    return image
