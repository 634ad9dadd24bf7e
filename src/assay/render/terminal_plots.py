"""Plots in a terminal: a shaded matrix, bars made of characters, and grids where points would be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from assay.render import text
from assay.render.document import DataGrid
from assay.render.matrices import ConfusionPlot
from assay.render.plots import Bars, Distribution, Drawing, Reliability, Residuals
from assay.render.points import Points

_MAX_CLASSES = 16  # a matrix of more does not fit the width of a terminal
_BAR = 24
_RIGHT, _WRONG = (38, 104, 210), (196, 88, 32)  # what the page uses for the same
_BACKGROUND = (30, 33, 40)


def draw(plot: Drawing, full: str) -> Iterator[RenderableType | DataGrid]:
    """What a terminal shows of a plot; ``full`` is the character that bars are made of."""
    if isinstance(plot, ConfusionPlot):
        yield _matrix(plot) if len(plot.labels) <= _MAX_CLASSES else _confusions(plot)
    elif isinstance(plot, Reliability):
        used = [i for i, count in enumerate(plot.counts) if count]
        labels = [f"{plot.edges[i]:.2f} to {plot.edges[i + 1]:.2f}" for i in used]
        notes = [f"n = {plot.counts[i]:,}" for i in used]
        yield _bars(labels, [plot.accuracy[i] for i in used], full, notes, top=1.0)
    elif isinstance(plot, Residuals):
        _, residuals = plot.finite()
        counts, edges = np.histogram(residuals, bins=9) if len(residuals) else (np.zeros(0, int), np.zeros(1))
        yield _bars([f"{low:.4g} to {high:.4g}" for low, high in pairwise(edges)], counts.tolist(), full)
    elif isinstance(plot, Points):
        yield DataGrid.of(plot.columns(), plot.rows())
    elif isinstance(plot, Distribution):
        for each in plot.series:
            yield Text(text.clean(each.name), "dim")
            yield _histogram(plot.edges, each.counts, full)
    elif isinstance(plot, Bars):
        yield _bars(plot.labels, plot.values, full)


def _matrix(plot: ConfusionPlot) -> Table:
    """Rows are targets, columns are predictions; the shade is the share of the row."""
    longest = max((len(label) for label in plot.labels), default=0)
    room = min(longest, 48 // max(1, len(plot.labels)))
    width = max([4, room, *(len(str(count)) for row in plot.counts for count in row)])
    grid = Table.grid()
    grid.add_column(justify="right")
    grid.add_column(width=1)
    for _ in plot.labels:
        grid.add_column(width=width + 2, no_wrap=True)
    grid.add_row("", "", *(Text(label.rjust(width + 1), "dim") for label in text.shorten_each(plot.labels, width)))
    names = text.shorten_each(plot.labels, 16)
    for i, row in enumerate(plot.counts):
        total = max(1, sum(row))
        grid.add_row(
            Text(names[i], "dim"), "", *(_shade(count, width, count / total, i == j) for j, count in enumerate(row))
        )
    return grid


def _shade(count: int, width: int, share: float, is_right: bool) -> Text:
    if not count:
        return Text("·".rjust(width + 1), "dim")
    strength = 0.25 + 0.75 * share**0.6  # rare errors stay visible
    colour = _RIGHT if is_right else _WRONG
    mixed = (round(b + (c - b) * strength) for b, c in zip(_BACKGROUND, colour, strict=True))
    return Text(f"{count:>{width + 1}} ", f"white on rgb({','.join(map(str, mixed))})")


def _confusions(plot: ConfusionPlot) -> DataGrid:
    return DataGrid.of(("target", "predicted", "times"), plot.confusions(8), "Most frequent errors")


def _histogram(edges: Sequence[float], counts: Sequence[int], full: str) -> Table:
    """A histogram in at most ten bars: neighbouring bins are taken together."""
    step = max(1, -(-len(counts) // 10))
    starts = range(0, len(counts), step)
    labels = [f"{edges[i]:.4g} to {edges[min(i + step, len(counts))]:.4g}" for i in starts]
    return _bars(labels, [sum(counts[i : i + step]) for i in starts], full)


def _bars(
    labels: Sequence[str],
    values: Sequence[float],
    full: str,
    notes: Sequence[str] = (),
    top: float | None = None,
) -> Table:
    finite = [abs(value) for value in values if np.isfinite(value)]
    scale = top or max(finite, default=1.0) or 1.0
    table = Table.grid(padding=(0, 1, 0, 0))
    for justify in ("right", "left", "right", "left"):
        table.add_column(justify=justify)
    for label, value, note in zip(text.shorten_each(labels, 24), values, notes or [""] * len(values), strict=True):
        length = round(_BAR * min(1.0, abs(value) / scale)) if np.isfinite(value) else 0
        bar = Text(full * length, "blue").append(" " * (_BAR - length))
        table.add_row(Text(label, "dim"), bar, Text(text.cell(value)), Text(note, "dim"))
    return table
