"""A report as a document: headline numbers, plots, slices, the worst errors and tables of each section."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.render import text
from assay.render.document import (
    Block,
    Chapter,
    DataGrid,
    Document,
    Figures,
    Fold,
    Gallery,
    GridCell,
    GridColumn,
    GridRow,
    Notes,
    Number,
    Numbers,
    Tile,
    TokenStrips,
)
from assay.report.grouped_view import grouped_blocks
from assay.report.section import Section, Table
from assay.report.value import Value, methods
from assay.report.worst import MOST_PICTURES, worst_errors
from assay.report.worst_queries_view import worst_queries_blocks
from assay.report.worst_slices import Slices, dots_of, slices_of

if TYPE_CHECKING:
    from assay.report.report import Report

_ERRORS = 10
_ERRORS_ON_PAGE = 1000
_SLICES = 40
_SUMMARY_SLICES = 12
_STRIPS = "Of the windows with the largest mean loss, the tokens that cost the most. 3 nats are a probability of 5 %."


def report_document(report: Report, *, verbose: bool = True) -> Document:
    """What is shown of a report.

    Args:
        report: the report.
        verbose: whether to show every table and plot; else a summary: values, slices and notes.
    """
    facts = [report.device] if report.device else []
    facts.append(text.moment(report.created))
    facts += [] if report.duration_s is None else [text.seconds(report.duration_s)]
    has_sections = len(report.sections) > 1
    chapters = tuple(
        Chapter(
            section.name if verbose or has_sections else "",
            tuple(_blocks(section) if verbose else _summary(section)),
            section.note if verbose else "",
        )
        for section in report.sections
    )
    versions = tuple(f"{name} {version}" for name, version in sorted(report.environment.items()))
    origin = () if report.origin is None else report.origin.lines()
    return Document(report.title, chapters, tuple(facts), report.notes, (versions,), origin=origin)


def _blocks(section: Section) -> Iterator[Block]:
    yield from _values(section)
    if section.plots:
        yield Figures(section.plots)
    if slices := slices_of(section):
        yield _slices(slices, _SLICES, [slices.note(), *methods(slices.values())])
        if dots := dots_of(section):
            yield Figures(dots, on_page_only=True)
    for table in section.by:
        yield from grouped_blocks(table)
    if worst := worst_errors(section):
        if gallery := _gallery(section, worst):
            yield gallery
        yield table_grid(worst, _ERRORS)
        if (more := worst_errors(section, _ERRORS_ON_PAGE)) and len(more.rows) > len(worst.rows):
            yield Fold(
                f"More of the worst errors: {more.note}", "", (table_grid(replace(more, name="", note="")),), False
            )
    if section.worst_queries is not None:
        yield from worst_queries_blocks(section.worst_queries)
    if section.samples is not None and section.samples.strips:
        yield TokenStrips(section.samples.strips, "Text that was predicted worst", (_STRIPS,))
    yield from map(table_grid, section.tables)
    if lines := tuple(dict.fromkeys(value.signature for value in section.values if value.signature)):
        yield Notes(("Signatures of the values:", *lines))


def _summary(section: Section) -> Iterator[Block]:
    yield from _values(section)
    if slices := slices_of(section):
        yield _slices(slices, _SUMMARY_SLICES, [slices.note()])
    for table in section.by:
        yield from grouped_blocks(table)


def _values(section: Section) -> Iterator[Block]:
    """The headline numbers; how their intervals were found stands below."""
    if section.values:
        yield Numbers(tuple(map(_number, section.values)))
        if lines := methods(section.values):
            yield Notes(lines)


def _number(value: Value) -> Number:
    interval = text.interval(value.lower, value.upper)
    return Number(value.name, value.value, interval, value.count, "" if interval else value.note)


def _slices(slices: Slices, limit: int, notes: list[str]) -> DataGrid:
    """A row a slice, with the interval of each number; the worst of a metric is marked."""
    names = ("slice", "n", *slices.metrics)
    rows = tuple(
        GridRow(
            (
                GridCell(row.name, row.name),
                GridCell(f"{row.count:,}", row.count),
                *map(_slice_value, row.values, row.is_worst),
            ),
            "faint" if row.is_small else "",
            any(row.is_worst),
            f"fewer than {slices.least} samples" if row.is_small else "",
        )
        for row in slices.rows
    )
    columns = tuple(GridColumn(name, "number" if i else "text") for i, name in enumerate(names))
    more = f"{len(rows) - limit:,} more slices, which the page and the Markdown show"
    return DataGrid(columns, rows, "Slices", tuple(filter(None, notes)), limit, more, lead=2)


def _slice_value(value: Value | None, is_worst: bool) -> GridCell:
    if value is None:
        return GridCell(text.UNDEFINED, float("nan"))
    below = text.interval(value.lower, value.upper)
    return GridCell(text.number(value.value), value.value, below, "worst" if is_worst else "")


def _gallery(section: Section, worst: Table) -> Gallery | None:
    """The pictures of the worst errors, each with its row of their table."""
    pictures = {} if section.samples is None else {each.id: each for each in section.samples.pictures}
    tiles = []
    rows = worst.rows[:MOST_PICTURES]
    for (name, *_), shown in zip(rows, text.rows(rows), strict=True):
        picture = pictures.get(str(name))
        if picture is not None:
            drawn = ("target", "prediction") if picture.boxes else ()
            lines = [line for line in zip(worst.columns, shown, strict=True) if line[0] not in drawn]
            tiles.append(Tile(picture, tuple(lines)))
    if not tiles:
        return None
    notes = dict.fromkeys(tile.picture.note for tile in tiles)
    scale = "Values of an image that are not all between 0 and 1 are scaled from its least to its largest."
    return Gallery(tuple(tiles), "Pictures of the worst errors", (*filter(None, notes), scale))


def table_grid(table: Table, limit: int | None = None) -> DataGrid:
    """A table of a report as a grid."""
    return DataGrid.of(table.columns, table.rows, table.name, notes=(table.note,) if table.note else (), limit=limit)
