"""The metrics by the values of a column as a reader sees them: how much they differ, and the worst of them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from assay.errors import plural
from assay.render import text
from assay.render.document import DataGrid, GridCell, GridColumn, GridRow
from assay.report.grouped import GroupedMetric, GroupedValues

MOST = 200
"""Groups on a page; JSON has all of them."""
_IN_TERMINAL = 8
_SPREAD = (
    "I² is the share of the spread of the values that is more than chance; SD is the standard deviation of what they "
    "would be with any number of samples, on the scale of the mean; p is the probability of so much spread by chance."
)
_WORST = (
    "The first are those that chance explains least. \u201cworse\u201d marks those that are worse than all samples "
    "beyond chance, by Bonferroni's correction for all of them."
)


def grouped_blocks(table: GroupedValues) -> Iterator[DataGrid]:
    """A grid of the metrics, and one of the worst groups."""
    if any(metric.spread is not None for metric in table.metrics):
        yield _spreads(table)
    yield _worst(table)


def _spreads(table: GroupedValues) -> DataGrid:
    names = ("metric", "all", "least", "median", "largest", "I²", "SD", "p", "worse beyond chance")
    rows = tuple(map(_spread, table.metrics))
    columns = tuple(GridColumn(name, "number" if k else "text") for k, name in enumerate(names))
    title = f"By {table.name}: {len(table):,} groups"
    return DataGrid(columns, rows, title, (_SPREAD,))


def _spread(metric: GroupedMetric) -> GridRow:
    values = metric.values
    known = values[~np.isnan(values)]
    ends = np.quantile(known, (0, 0.5, 1)).tolist() if len(known) else [math.nan] * 3
    spread = metric.spread
    differs = [math.nan] * 2 if spread is None else [spread.i2, spread.deviation]
    numbers = [GridCell(text.number(each), each) for each in (metric.value, *ends, *differs)]
    p = math.nan if spread is None else spread.p
    numbers.append(GridCell(text.p_value(p), p))
    worse = int(metric.is_worse.sum())
    is_known = not np.isnan(metric.tails).all()
    cell = GridCell(f"{worse:,}", worse) if is_known else GridCell(text.UNDEFINED, math.nan)
    return GridRow((GridCell(metric.name, metric.name), *numbers, cell))


def _worst(table: GroupedValues) -> DataGrid:
    by = next((each for each in table.metrics if each.higher_is_better is not None), table.metrics[0])
    order = table.order(by.name)[:MOST]
    groups, counts = table.groups.values[order], table.counts.values[order]
    cells = [_cells(metric, order) for metric in table.metrics]
    rows = tuple(
        GridRow((GridCell(str(group), str(group)), GridCell(f"{count:,}", int(count)), *(each[k] for each in cells)))
        for k, (group, count) in enumerate(zip(groups, counts, strict=True))
    )
    names = (table.name, "n", *(each.name for each in table.metrics))
    columns = tuple(GridColumn(name, "number" if k else "text") for k, name in enumerate(names))
    shown = f"The worst of {plural(len(table), 'group')} by {table.name}, by {by.name}"
    more = f"{len(rows) - _IN_TERMINAL:,} more, which the page shows; the report has all {len(table):,}"
    return DataGrid(columns, rows, shown, (_WORST,), _IN_TERMINAL, more, lead=2)


def _cells(metric: GroupedMetric, order: np.ndarray) -> list[GridCell]:
    values, is_worse = metric.values[order].tolist(), metric.is_worse[order].tolist()
    ends = [(None, None)] * len(values)
    if metric.ends is not None:
        pairs = zip(*(each[order].tolist() for each in metric.ends), strict=True)
        ends = [(None, None) if math.isnan(lower) else (lower, upper) for lower, upper in pairs]
    return [
        GridCell(text.number(value), value, text.interval(*pair), "worse" if worse else "")
        for value, pair, worse in zip(values, ends, is_worse, strict=True)
    ]
