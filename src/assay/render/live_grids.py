"""The rows of a long grid as compact JSON: a page shows the first of them, and its script the others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from assay._records import CellValue
from assay.render.document import DataGrid, GridCell, GridRow, spans
from assay.render.text import clean

SHOWN = 50
"""Rows that stand in the page itself; of a longer grid, the script shows as many at a time."""


def page_parts(grid: DataGrid) -> tuple[DataGrid, DataGrid | None]:
    """The rows that a page shows, the highest rank first, and those that it folds, if there are any."""
    rows = sorted(grid.rows, key=lambda row: -row.rank)
    folded = tuple(row for row in rows if row.is_folded)
    shown = replace(grid, rows=tuple(row for row in rows if not row.is_folded))
    return shown, replace(grid, rows=folded, name="", notes=()) if folded else None


def grid_json(grid: DataGrid) -> dict[str, Any]:
    """All rows, column by column; what is empty in all rows of a column is left out.

    Returns:
        Of each column ``text`` (strings, or lists of style and string), ``value`` (what it sorts by), ``below``,
        ``mark``, ``at`` (ends and value of an interval, as drawn), ``verdict`` and ``link``; of rows ``style`` and
        ``title``.

    Example:
        >>> from assay.render.document import GridColumn
        >>> grid = DataGrid((GridColumn("n", "number"),), (GridRow((GridCell("1,200", 1200),)),))
        >>> grid_json(grid)
        {'columns': [{'text': ['1,200'], 'value': [1200]}], 'rows': {}}
    """
    columns = [
        _filled(
            text=[_line(cell) for cell in cells],
            value=[_value(cell.value) for cell in cells],
            below=[clean(cell.below) for cell in cells],
            mark=[clean(cell.mark) for cell in cells],
            at=[whisker(cell) for cell in cells],
            verdict=[int(cell.verdict) for cell in cells],
            link=[cell.link for cell in cells],
        )
        for cells in ([row.cells[i] for row in grid.rows] for i in range(len(grid.columns)))
    ]
    rows = _filled(style=[row.style for row in grid.rows], title=[clean(row.title) for row in grid.rows])
    return {"columns": columns, "rows": rows}


def _filled(**lists: Sequence[Any]) -> dict[str, Any]:
    return {
        name: each
        for name, each in lists.items()
        if any(value is not None and value != "" and value != 0 for value in each)
    }


def _line(cell: GridCell) -> Any:
    parts = spans(cell.content)
    if all(not part.style for part in parts):
        return clean("".join(part.text for part in parts))
    return [*chain.from_iterable((part.style, clean(part.text)) for part in parts)]


def _value(value: CellValue) -> Any:
    """What a column sorts by: numbers of nine digits; text sorts as it is shown."""
    if value is None or isinstance(value, str):
        return ""
    return value if isinstance(value, int) and abs(value) < 2**53 else _float(float(value))


def _float(value: float) -> Any:
    return float(f"{value:.9g}") if math.isfinite(value) else repr(value)


def whisker(cell: GridCell) -> list[float] | None:
    """Where to draw an interval and its value on a line of 100 units with 0 in the middle; None without interval.

    Each has a scale of its own, as differences of an accuracy and of a price do not share one, unless its cell has a
    reach.

    Example:
        >>> whisker(GridCell(span=(-0.1, 0.3, 0.1)))
        [34.0, 98.0, 66.0]
    """
    reach = (cell.reach or max(map(abs, cell.span))) if cell.span else 0.0
    if not cell.span or not reach or not all(map(math.isfinite, cell.span)):
        return None
    return [round(50 + 48 * value / reach, 2) for value in cell.span]


def tones(rows: Sequence[GridRow]) -> Iterator[str]:
    """The style of the verdict of each row."""
    for row in rows:
        verdicts = (spans(cell.content)[0].style for cell in row.cells if cell.verdict)
        yield next(verdicts, "")
