"""A document in a terminal: colours and bars where there is one, plain text where the output goes to a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO

from assay.errors import MissingDependencyError

try:
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console, Group, RenderableType
    from rich.padding import Padding
    from rich.rule import Rule
    from rich.table import Table
    from rich.text import Text
except ModuleNotFoundError as error:
    raise MissingDependencyError("rich", extra="cli", purpose="text in a terminal") from error

from assay.render.document import (
    Block,
    Bullets,
    Chapter,
    DataGrid,
    Document,
    Figures,
    Fold,
    Gallery,
    GridCell,
    GridColumn,
    KeyValues,
    Line,
    Notes,
    Numbers,
    Paragraph,
    TokenStrips,
    spans,
    strip_line,
)
from assay.render.terminal_plots import draw
from assay.render.text import clean, number

WIDE = 110
"""The width of a terminal from which on grids show all of their columns."""

_COLOURS = {"strong": "bold", "faint": "dim", "good": "green", "bad": "red", "warn": "yellow", "info": "cyan"}
_TEXT = 30  # a column of text is comfortable at this width
_AIRY = (0, 1, 0, 1)  # the padding that makes gaps of three
_WORD = 24  # and keeps its words whole up to this one


def show(
    document: Document, console: Console | None = None, *, pipe_width: int | None = None, soft_wrap: bool = False
) -> None:
    """Print a document.

    Args:
        document: what to print.
        console: where to; the standard output by default. Colours are left out where it is no terminal or where
            ``NO_COLOR`` is set, and what its encoding lacks is replaced.
        pipe_width: the width where the standard output is no terminal.
        soft_wrap: whether to leave the wrapping of lines to the terminal.
    """
    if console is None:
        console = Console(highlight=False)
        if pipe_width and not console.is_terminal:
            console = Console(width=pipe_width, highlight=False)
    full = "#" if console.options.ascii_only else "█"
    print_plainly(Group(*_document(document, console.width, full)), console, soft_wrap=soft_wrap)


def print_plainly(content: RenderableType, console: Console, *, soft_wrap: bool = False) -> None:
    """Print what rich draws; into a file without blanks at the ends of lines and what the encoding lacks."""
    ascii_only = console.options.ascii_only
    if (console.is_terminal or console.is_jupyter) and not ascii_only:
        console.print(content, soft_wrap=soft_wrap)
        return
    with console.capture() as captured:
        console.print(content, soft_wrap=soft_wrap)
    for line in captured.get().splitlines():
        line = line.rstrip()
        console.file.write((line.encode("ascii", "replace").decode() if ascii_only else line) + "\n")


def to_text(document: Document, width: int = 100) -> str:
    """A document as plain text.

    Example:
        >>> from assay.render.document import Number
        >>> accuracy = Numbers((Number("accuracy", 0.94172, count=450),))
        >>> print(to_text(Document("digits", (Chapter("", (accuracy,)),))).splitlines()[3])
          accuracy   0.9417      n = 450
    """
    file = StringIO()
    # In Jupyter a console of rich displays what it should write into its file.
    console = Console(file=file, width=width, no_color=True, force_terminal=False, force_jupyter=False, _environ={})
    show(document, console)
    return file.getvalue()


def styled(line: Line, style: str = "") -> Text:
    """A line for rich: its words as they are, no markup followed, no escape sequence let through."""
    parts = [Text(clean(span.text), _style(span.style)) for span in spans(line)]
    return Text(style=_style(style)).append_text(Text().join(parts))


def _style(words: str) -> str:
    return " ".join(_COLOURS[word] for word in words.split())


def _document(document: Document, width: int, full: str) -> Iterator[RenderableType]:
    if document.title:
        yield Text()
        yield styled(document.title, "strong")
    if document.facts:
        yield styled(" · ".join(document.facts), "faint")
    yield from map(styled, document.notes)
    for i, chapter in enumerate(document.chapters):
        if i or document.title:
            yield Text()
        yield from _chapter(chapter, width, full)


def _chapter(chapter: Chapter, width: int, full: str) -> Iterator[RenderableType]:
    if cell_len(chapter.title) > width - 6:
        yield styled(chapter.title, "strong")
    elif chapter.title:
        yield Rule(styled(chapter.title, "strong"), align="left", style="dim")
    if chapter.note:
        yield styled(chapter.note, "faint")
    for before, block in zip((None, *chapter.blocks), chapter.blocks, strict=False):
        if _is_apart(before, block):
            yield Text()
        yield from _block(block, width, full)


def _is_apart(before: Block | None, block: Block) -> bool:
    """Whether a blank line stands between two blocks."""
    if before is None or isinstance(before, Paragraph) or isinstance(block, Notes | Paragraph | Gallery):
        return False
    return not isinstance(block, Figures) or not block.on_page_only


def _block(block: Block, width: int, full: str) -> Iterator[RenderableType]:
    if isinstance(block, DataGrid):
        yield from (_indented(each) for each in _grid(block, width - 2))
    elif isinstance(block, Paragraph):
        yield styled(block.content)
    elif isinstance(block, Notes):
        yield from (_indented(styled(line, "faint")) for line in block.lines)
    elif isinstance(block, Numbers):
        yield _indented(_numbers(block))
    elif isinstance(block, KeyValues):
        yield from [_indented(styled(block.title))] if block.title else []
        yield _indented(_key_values(block))
    elif isinstance(block, Bullets):
        yield _indented(_bullets(block))
    elif isinstance(block, Figures) and not block.on_page_only:
        for i, plot in enumerate(block.plots):
            yield from [Text()] if i else []
            yield _indented(styled(plot.name, "strong"))
            yield _indented(styled(plot.summary(), "faint"))
            for item in draw(plot, full):
                yield from _grid(item, width) if isinstance(item, DataGrid) else [_indented(item)]
    elif isinstance(block, TokenStrips):
        yield styled(block.name, "strong")
        for strip in block.strips:
            yield _indented(styled(strip.summary(), "faint"))
            yield _indented(styled(strip_line(strip)), 4)
        yield from (_indented(styled(line, "faint")) for line in block.notes)
    elif isinstance(block, Fold) and block.is_open:
        yield _indented(styled(f"{block.title}: {block.intro}"))
        for grid in block.blocks:
            yield Text()
            yield from (_indented(each, 4) for each in _grid(grid, width - 4))


def _indented(content: RenderableType, indent: int = 2) -> RenderableType:
    return Padding(content, (0, 0, 0, indent)) if indent else content


def _numbers(block: Numbers) -> Table:
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(overflow="fold")
    for justify in ("right", "left", "left"):
        table.add_column(justify=justify, no_wrap=True)
    table.add_column(overflow="fold")
    for each in block.numbers:
        count = "" if each.count is None else f"n = {each.count:,}"
        value = Text(number(each.value), "bold")
        table.add_row(styled(each.name), value, *(styled(part, "faint") for part in (each.interval, count, each.note)))
    return table


def _key_values(block: KeyValues) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for key, line in block.rows:
        table.add_row(key, styled(line))
    return table


def _bullets(block: Bullets) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    for item in block.items:
        table.add_row("·", styled(item))
    return table


def _grid(grid: DataGrid, width: int) -> Iterator[RenderableType]:
    """A grid, in several parts below each other where it is too wide; the first columns stand in each part."""
    if grid.name:
        yield styled(grid.name, "strong")
    grid = grid.select("wide") if width >= WIDE - 2 else grid.select()
    rows = grid.first()
    cells = [[_cell(row.cells[i]) for row in rows] for i in range(len(grid.columns))]
    headings = [styled(column.name if grid.header else "") for column in grid.columns]
    padding, parts = _layout(grid, headings, cells, width)
    for k, part in enumerate(parts):
        table = Table(
            box=box.SIMPLE_HEAD if grid.header else None,
            show_edge=False,
            pad_edge=False,
            padding=padding,
            show_header=grid.header,
        )
        for i in part:
            _add_column(table, grid.columns[i], headings[i], cells[i])
        for r, row in enumerate(rows):
            table.add_row(*(cells[i][r] for i in part), style=_style(row.style))
        if k:
            yield Text()
        yield table
    if rest := len(grid.rows) - len(rows):
        yield styled(f"and {grid.more or f'{rest:,} more'}", "faint")
    for note in grid.notes:
        yield styled(note, "faint")


def _add_column(table: Table, column: GridColumn, heading: Text, cells: Sequence[Text]) -> None:
    if column.kind == "text":
        table.add_column(heading, overflow="fold", min_width=_width(heading, cells, words=True))
    else:
        table.add_column(
            heading,
            justify="right" if column.kind == "number" else "left",
            width=_width(heading, cells, words=False),
        )


def _cell(cell: GridCell) -> Text:
    shown = Text(f"{cell.mark} ", "yellow") if cell.mark else Text()
    content = styled(cell.content)
    if cell.mark:
        content.stylize("bold yellow")
    shown.append_text(content)
    return shown.append(f"\n{clean(cell.below)}", "dim") if cell.below else shown


def _width(heading: Text, cells: Sequence[Text], *, words: bool) -> int:
    """How wide a column must be: for its longest word, if its cells may wrap, else for its longest cell."""
    lines = [line for cell in cells for line in cell.plain.split("\n")]
    if words:
        longest = max((cell_len(word) for line in [heading.plain, *lines] for word in line.split()), default=0)
        return min(longest, _WORD)
    return max(map(cell_len, [*heading.plain.split(), *lines]), default=0)


def _layout(
    grid: DataGrid, headings: Sequence[Text], cells: Sequence[Sequence[Text]], width: int
) -> tuple[tuple[int, int, int, int], list[list[int]]]:
    """The padding of cells, and which columns stand beside each other: all of them if that can be."""
    least = [
        _width(heading, each, words=column.kind == "text")
        for column, heading, each in zip(grid.columns, headings, cells, strict=True)
    ]
    easy = [
        min(_width(heading, each, words=False), _TEXT) if column.kind == "text" else fixed
        for column, heading, each, fixed in zip(grid.columns, headings, cells, least, strict=True)
    ]
    everything = list(range(len(least)))
    if not grid.header:
        return (0, 2, 0, 0), [everything]
    for widths, gap in ((easy, 3), (easy, 2), (easy, 1), (least, 1)):
        if sum(widths) + gap * len(widths) - 1 <= width:
            return (_AIRY if gap == 3 else (0, gap - 1, 0, 0)), [everything]
    return _AIRY, _parts(easy, width, grid.lead)


def _parts(widths: Sequence[int], width: int, lead: int) -> list[list[int]]:
    """Which columns stand beside each other: as many as fit, and at least one beside the repeated ones."""
    first = list(range(min(lead, len(widths))))
    room = width - sum(widths[i] + 3 for i in first)
    parts, left = [[*first]], room
    for i in range(len(first), len(widths)):
        needed = widths[i] + 3
        if needed > left and len(parts[-1]) > len(first):
            parts.append([*first])
            left = room
        parts[-1].append(i)
        left -= needed
    return parts
