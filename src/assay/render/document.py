"""The document model: what is shown, as plain data, before it becomes lines of a terminal, Markdown or a page.

A document has chapters, and a chapter has blocks: paragraphs, headline numbers, grids, figures. Text is a `Line`:
a string, a `Span` (a string with a style), or several of them. A style is a word or more of `STYLES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from assay._records import CellValue
from assay.render import text
from assay.render.pictures import Picture
from assay.render.plots import Drawing
from assay.render.token_strips import UNLIKELY, VERY_UNLIKELY, TokenStrip

STYLES = ("strong", "faint", "good", "bad", "warn", "info")


@dataclass(frozen=True)
class Span:
    """A part of a line in a style."""

    text: str
    style: str = ""


Line: TypeAlias = str | Span | tuple[str | Span, ...]


def spans(line: Line) -> tuple[Span, ...]:
    """The parts of a line, each with its style."""
    parts = line if isinstance(line, tuple) else (line,)
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


@dataclass(frozen=True)
class Paragraph:
    """A line of text, wrapped where it is too long."""

    content: Line


@dataclass(frozen=True)
class Notes:
    """Small print: how numbers were found, what could not be done."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: tuple[Line, ...]


@dataclass(frozen=True)
class KeyValues:
    """Short names, each with a line of text; a name is empty where the line belongs to the one above.

    Args:
        rows: names and lines.
        title: a line above.
    """

    rows: tuple[tuple[str, Line], ...]
    title: Line = ""


@dataclass(frozen=True)
class Number:
    """A headline number: its name, the number, its interval, how many samples it rests on, and a note."""

    name: str
    value: float
    interval: str = ""
    count: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Numbers:
    """Headline numbers, the most important first."""

    numbers: tuple[Number, ...]

    def grid(self) -> DataGrid:
        """A row a number, for a page of many."""
        rows = [
            GridRow(
                (
                    GridCell(each.name, each.name),
                    GridCell(text.number(each.value), each.value),
                    GridCell(each.interval),
                    GridCell("" if each.count is None else f"{each.count:,}", each.count),
                    GridCell(each.note),
                )
            )
            for each in self.numbers
        ]
        columns = (GridColumn("metric"), *(GridColumn(name, "number") for name in ("value", "interval", "n")))
        return DataGrid((*columns, GridColumn("note")), tuple(rows))


@dataclass(frozen=True)
class GridColumn:
    """A column of a grid.

    Args:
        name: its heading.
        kind: ``"text"`` may wrap, ``"word"`` does not, ``"number"`` does not and stands to the right.
        room: ``"wide"`` where it is left out of narrow terminals, ``"page"`` where only the page has it.
    """

    name: str
    kind: str = "text"
    room: str = ""


@dataclass(frozen=True)
class GridCell:
    """A cell of a grid.

    Args:
        content: what it says.
        value: the number behind it, by which a page sorts, in full precision.
        below: a fainter second line: an interval.
        mark: a word before the content, which stands out: ``"worst"``.
        span: the two ends of an interval and a value in it; a page draws them around zero.
        reach: the largest number on the scale of that drawing; by default the largest of the span.
        verdict: whether the style of the content is a verdict, which Markdown shows by a coloured dot.
        link: the sheet of the page that a click on it shows.
    """

    content: Line = ""
    value: CellValue = None
    below: str = ""
    mark: str = ""
    span: tuple[float, float, float] | None = None
    reach: float = 0.0
    verdict: bool = False
    link: str = ""


@dataclass(frozen=True)
class GridRow:
    """A row of a grid.

    Args:
        cells: as many as there are columns.
        style: of the whole row.
        matters: shown also where there is room for few rows.
        title: what a page says of the row on hover.
        rank: a page shows rows of a higher rank first; those of equal rank in their order.
        is_folded: whether a page shows it under a click.
    """

    cells: tuple[GridCell, ...]
    style: str = ""
    matters: bool = False
    title: str = ""
    rank: float = 0.0
    is_folded: bool = False


@dataclass(frozen=True)
class DataGrid:
    """Rows under columns.

    Args:
        columns: the columns.
        rows: the rows.
        name: the heading; empty for none.
        notes: lines below it.
        limit: how many rows a terminal shows, and Markdown without a click; all by default.
        more: what a terminal says of the others; how many they are by default.
        header: whether a terminal shows the names of the columns.
        lead: how many first columns stand in each part of a grid that is too wide for a terminal.
        folded: what a page says of the rows that it folds, after how many they are.
    """

    columns: tuple[GridColumn, ...]
    rows: tuple[GridRow, ...]
    name: str = ""
    notes: tuple[str, ...] = ()
    limit: int | None = None
    more: str = ""
    header: bool = True
    lead: int = 1
    folded: str = "more"

    @classmethod
    def of(
        cls, columns: Sequence[str], rows: Sequence[Sequence[CellValue]], name: str = "", **options: Any
    ) -> DataGrid:
        """A grid of strings, counts and numbers; the numbers of a column in one format."""
        kinds = ["text" if any(isinstance(row[i], str) for row in rows) else "number" for i in range(len(columns))]
        shown = text.rows(rows)
        cells = [tuple(map(_grid_cell, *pair)) for pair in zip(shown, rows, strict=True)]
        return cls(tuple(map(GridColumn, columns, kinds)), tuple(map(GridRow, cells)), name, **options)

    def first(self) -> tuple[GridRow, ...]:
        """At most about ``limit`` rows, in their order: those that matter, and the first of the others."""
        if self.limit is None:
            return self.rows
        others = iter(range(max(0, self.limit - sum(row.matters for row in self.rows))))
        return tuple(row for row in self.rows if row.matters or next(others, None) is not None)

    def select(self, *rooms: str) -> DataGrid:
        """The grid with the columns that everything shows, and those of these rooms."""
        used = [i for i, column in enumerate(self.columns) if column.room in ("", *rooms)]
        rows = tuple(replace(row, cells=tuple(row.cells[i] for i in used)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[i] for i in used), rows=rows)


def _grid_cell(shown: str, value: CellValue) -> GridCell:
    is_bits = isinstance(value, str) and value.startswith(("0x", "-0x"))
    return GridCell(Span(shown, "info") if is_bits else shown, value)


@dataclass(frozen=True)
class Figures:
    """Plots beside each other; where nothing can be drawn, what each shows in a sentence.

    Args:
        plots: the plots.
        on_page_only: whether a grid says the same, so that only a page shows them.
    """

    plots: tuple[Drawing, ...]
    on_page_only: bool = False


@dataclass(frozen=True)
class Tile:
    """A picture, and what is said of it: names with values."""

    picture: Picture
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Gallery:
    """Pictures beside each other, on pages only: a grid says the same without them.

    Args:
        tiles: the pictures.
        name: the heading.
        notes: lines below it.
    """

    tiles: tuple[Tile, ...]
    name: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TokenStrips:
    """Text whose tokens are shaded by their loss; elsewhere than on pages, tokens of a large loss are marked.

    Args:
        strips: the texts.
        name: the heading.
        notes: lines below it.
    """

    strips: tuple[TokenStrip, ...]
    name: str = ""
    notes: tuple[str, ...] = ()


def strip_line(strip: TokenStrip) -> Line:
    """A strip as a line with marks.

    Example:
        >>> strip_line(TokenStrip("7", ("the", " f", "ox"), (0.2, 9.0, 7.0), 5.4))
        (Span(text='the ', style=''), Span(text='fox', style='bad strong'))
    """
    parts: list[Span] = []
    for piece, loss in zip(strip.pieces, strip.losses, strict=True):
        style = "bad strong" if loss >= VERY_UNLIKELY else "warn" if loss >= UNLIKELY else ""
        word = piece.lstrip()
        for content, each in ((piece[: len(piece) - len(word)], ""), (word, style)):
            if content and parts and parts[-1].style == each:
                parts[-1] = Span(parts[-1].text + content, each)
            elif content:
                parts.append(Span(content, each))
    return tuple(parts)


@dataclass(frozen=True)
class Fold:
    """Details under a title: folded in Markdown, on a page unless ``is_open``.

    Args:
        title: the title.
        intro: a sentence.
        blocks: the details.
        is_open: whether they stand open on a page; those that do not are on pages only.
    """

    title: str
    intro: str
    blocks: tuple[DataGrid, ...]
    is_open: bool = True


Block: TypeAlias = Paragraph | Notes | Bullets | KeyValues | Numbers | DataGrid | Figures | Gallery | TokenStrips | Fold


@dataclass(frozen=True)
class Chapter:
    """A part of a document.

    Args:
        title: its heading; empty for none.
        blocks: what it says.
        note: a line below the heading.
    """

    title: str
    blocks: tuple[Block, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Document:
    """All that is shown.

    Args:
        title: the title; empty for none.
        chapters: the parts, in order.
        facts: short facts on one line below the title.
        notes: what a reader must know of the whole.
        footer: lines of facts at the end of a page.
        level: the level of the title in Markdown.
        origin: what made it, on pages only: names and lines.
    """

    title: str
    chapters: tuple[Chapter, ...] = ()
    facts: tuple[str, ...] = ()
    notes: tuple[Line, ...] = ()
    footer: tuple[tuple[str, ...], ...] = ()
    level: int = 1
    origin: tuple[tuple[str, str], ...] = ()


def lines_of(name: str, content: str, style: str = "") -> list[tuple[str, Line]]:
    """Rows of `KeyValues` for a text of several lines, the first of them under a name."""
    return [("" if i else name, Span(line, style)) for i, line in enumerate(content.splitlines())]
