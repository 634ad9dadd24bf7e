"""What charts are made of: data, axes, colours and tooltips, as the JSON of Vega-Lite."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from assay.render.text import clean, shorten_each

Json: TypeAlias = dict[str, Any]

COLOURS = 10
"""How many lines of a plot are distinguished by colour; further ones are dashed."""

INKS = ("ink", "faint", "grid", "heat", "on-heat", "warm", *(f"line{i}" for i in range(COLOURS)))
"""The colours of charts: variables of the page."""

WIDTH, HEIGHT, ROW = 520, 400, 22
"""The size of a chart in pixels, and of one of its rows."""

ROWS = "rows"
"""The name of a chart whose height is that of its rows."""

HOVER = "hover"
"""The name of the layer that only a live chart has."""

_DASHES = ([1, 0], [5, 3], [1.5, 3])


def ink(name: str) -> str:
    """The colour of a name in `INKS`, as the page knows it."""
    return f"var(--{name})"


def line_style(index: int) -> tuple[str, str]:
    """Name of the ink and dash pattern of the line ``index``."""
    return f"line{index % COLOURS}", ("solid", "dashed", "dotted")[index // COLOURS % 3]


def data_of(rows: Iterable[Json]) -> Json:
    """Rows as the data of a chart."""
    return {"values": [{key: plain(value) for key, value in row.items()} for row in rows]}


def plain(value: Any) -> Any:
    """A value of JSON: text that can be shown, numbers of six digits, null for what is not finite."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def number_axis(field: str, title: str = "", **more: Any) -> Json:
    """An axis of numbers."""
    return {"field": field, "type": "quantitative", "title": clean(title) or None, **more}


def rows_axis(**more: Any) -> Json:
    """The axis of rows, in the order of the data."""
    return {"field": "label", "type": "nominal", "sort": None, "title": None, "axis": {"grid": False}, **more}


def tooltip(*fields: tuple[str, str] | tuple[str, str, str]) -> list[Json]:
    """What a tooltip says: fields with titles, and a format for those that are numbers."""
    return [
        {"field": field, "title": title, **({"type": "quantitative", "format": form[0]} if form else {})}
        for field, title, *form in fields
    ]


def row_names(labels: Sequence[str], width: int) -> list[str]:
    """Labels that fit; those that are the same differ by what is not seen, as rows are told apart by their names."""
    seen: dict[str, int] = {}
    names = []
    for label in shorten_each(labels, width):
        names.append(label + "\u200b" * seen.get(label, 0))
        seen[label] = seen.get(label, 0) + 1
    return names


def line_styles(count: int) -> Json:
    """Colours and dashes of so many lines, which the field ``line`` numbers."""
    numbers = list(range(count))
    colours = [ink(line_style(i)[0]) for i in numbers]
    dashes = [_DASHES[i // COLOURS % 3] for i in numbers]
    line = {"field": "line", "type": "nominal", "legend": None}
    return {
        "color": {**line, "scale": {"domain": numbers, "range": colours}},
        "strokeDash": {**line, "scale": {"domain": numbers, "range": dashes}},
    }


def pointed(tips: list[Json], fields: Sequence[str], **encoding: Json) -> Json:
    """The layer that shows and names the point of a line below the pointer; these fields tell points apart."""
    shown = {"condition": {"param": "pointed", "empty": False, "value": 1}, "value": 0}
    select = {"type": "point", "fields": fields, "on": "pointerover", "clear": "pointerout"}
    return {
        "name": HOVER,
        "params": [{"name": "pointed", "select": select}],
        "mark": {"type": "point", "filled": True, "size": 120},
        "encoding": {**encoding, "opacity": shown, "tooltip": tips},
    }


def rule_at(color: str, dashes: Sequence[float] = (2, 3), **encoding: Json) -> Json:
    """A dashed line across the chart at a number."""
    mark = {"type": "rule", "color": ink(color), "strokeDash": [*dashes]}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": encoding}


def diagonal(x: Json, y: Json) -> Json:
    """A line from 0 to 1 on these axes."""
    ends = {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]}
    mark = {"type": "line", "color": ink("faint"), "strokeWidth": 1, "strokeDash": [2, 3]}
    return {"data": ends, "mark": mark, "encoding": {"x": {**x, "field": "x"}, "y": {**y, "field": "y"}}}


def of_rows(count: int) -> Json:
    """The height of a chart of rows, which is the same on a phone."""
    return {"height": 40 + ROW * max(1, count), "name": ROWS}


def zoom_by(layer: int, *encodings: str) -> Json:
    """By which layer a live chart is zoomed, and on which axes."""
    return {"zoom": {"layer": layer, "encodings": encodings}}


def share_axis(field: str, title: str) -> Json:
    """An axis from 0 to 1."""
    ticks = {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".3~f"}
    return number_axis(field, title, scale={"domain": [-0.01, 1.01], "nice": False}, axis=ticks)
