"""A document as Markdown: headings, tables, one sentence a plot; details are folded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from assay.render import text
from assay.render.document import (
    Block,
    Bullets,
    DataGrid,
    Document,
    Figures,
    Fold,
    GridCell,
    GridColumn,
    GridRow,
    KeyValues,
    Line,
    Notes,
    Numbers,
    Paragraph,
    TokenStrips,
    spans,
    strip_line,
)

_DOTS = {"good": "🟢 ", "bad": "🔴 ", "warn": "🟡 "}


def to_markdown(document: Document) -> str:
    r"""Write a document for a pull request, a model card or a log.

    Example:
        >>> from assay.render.document import Chapter, Number
        >>> chapter = Chapter("test", (Numbers((Number("accuracy", 0.94172),)),))
        >>> print(to_markdown(Document("digits", (chapter,), facts=("cpu", "today"))))
        # digits
        <BLANKLINE>
        cpu · today
        <BLANKLINE>
        ## test
        <BLANKLINE>
        | metric | value |
        |:--|--:|
        | accuracy | 0.9417 |
        <BLANKLINE>
    """
    heading = "#" * document.level
    parts = [f"{heading} {escape(document.title)}"] if document.title else []
    parts += [" · ".join(map(escape, document.facts)), *map(_line, document.notes)]
    for chapter in document.chapters:
        parts += [f"{heading}# {escape(chapter.title)}"] if chapter.title else []
        parts += [escape(chapter.note)]
        for block in chapter.blocks:
            parts += _block(block, f"{heading}##")
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(content: str) -> str:
    """Text escaped for Markdown and the HTML made from it."""
    content = text.clean(content).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~$!])", r"\\\1", content)


def _line(line: Line) -> str:
    parts = [(escape(span.text), "strong" in span.style) for span in spans(line)]
    return "".join(f"**{part}**" if is_strong and part.strip() == part != "" else part for part, is_strong in parts)


def _block(block: Block, heading: str) -> Iterator[str]:
    if isinstance(block, DataGrid):
        yield from _grid(block, heading)
    elif isinstance(block, Paragraph):
        yield _line(block.content)
    elif isinstance(block, Notes):
        yield _small(block.lines)
    elif isinstance(block, Numbers):
        yield _numbers(block)
    elif isinstance(block, Bullets):
        yield "\n".join(f"- {_line(item)}" for item in block.items)
    elif isinstance(block, KeyValues):
        yield _line(block.title)
        yield "\n".join(f"- **{escape(key)}** {_line(line)}" if key else f"  {_line(line)}" for key, line in block.rows)
    elif isinstance(block, Figures) and not block.on_page_only:
        yield from (f"**{escape(plot.name)}**: {escape(plot.summary())}" for plot in block.plots)
    elif isinstance(block, TokenStrips):
        yield f"{heading} {escape(block.name)}" if heading else escape(block.name)
        for strip in block.strips:
            yield escape(strip.summary())
            yield f"> {_line(strip_line(strip))}"
        yield _small(block.notes)
    elif isinstance(block, Fold) and block.is_open:
        grids = [part for grid in block.blocks for part in _grid(grid, "")]
        yield _folded(f"{block.title}: {block.intro}", grids)


def _folded(title: str, parts: Iterable[str]) -> str:
    return "\n\n".join([f"<details><summary>{escape(title)}</summary>", *parts, "</details>"])


def _small(lines: Iterable[str]) -> str:
    text = "<br>".join(map(escape, lines))
    return f"<sub>{text}</sub>" if text else ""


def _numbers(block: Numbers) -> str:
    """The headline numbers; columns that would be empty are left out."""
    names = ("metric", "value", "interval", "n", "note")
    rows = [
        (each.name, text.number(each.value), each.interval, "" if each.count is None else f"{each.count:,}", each.note)
        for each in block.numbers
    ]
    used = [i for i in range(len(names)) if i < 2 or any(row[i] for row in rows)]
    head = [names[i] for i in used]
    return _table(
        head, [":--" if i in (0, 4) else "--:" for i in used], [[escape(row[i]) for i in used] for row in rows]
    )


def _grid(grid: DataGrid, heading: str) -> Iterator[str]:
    """The rows that matter, and the others folded where there are many."""
    grid = grid.select("wide")
    if grid.name:
        yield f"{heading} {escape(grid.name)}" if heading else escape(grid.name)
    first = grid.first()
    yield _rows(grid.columns, first)
    if rest := [row for row in grid.rows if row not in first]:
        yield _folded(f"{len(rest):,} more", [_rows(grid.columns, rest)])
    yield _small(grid.notes)


def _rows(columns: tuple[GridColumn, ...], rows: Iterable[GridRow]) -> str:
    sides = ["--:" if column.kind == "number" else ":--" for column in columns]
    return _table(
        [escape(column.name) for column in columns], sides, [[_cell(cell) for cell in row.cells] for row in rows]
    )


def _cell(cell: GridCell) -> str:
    shown = _line(cell.content)
    if cell.mark:
        shown = f"**{shown}** {escape(cell.mark)}"
    dot = next((_DOTS[word] for span in spans(cell.content) for word in span.style.split() if word in _DOTS), "")
    shown = f"{dot if cell.verdict else ''}{shown}"
    if cell.below:
        shown += f"{' ' if cell.below.startswith('[') else '; '}{escape(cell.below)}"  # an interval, or a remark
    return shown


def _table(head: Iterable[str], sides: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [_row(head), f"|{'|'.join(sides)}|", *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"
