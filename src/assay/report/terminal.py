"""The report in a terminal: colours and bars where there is one, plain text where the output goes to a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise

import numpy as np
from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table as Grid
from rich.text import Text

from assay.report import text
from assay.report.plain import Cell
from assay.report.plots import Bars, ConfusionMatrix, Distribution, Plot, Reliability, Residuals
from assay.report.points import Points
from assay.report.report import Report, Section, Table
from assay.report.sliced import Row, Slices, slices_of
from assay.report.value import Value, methods
from assay.report.worst import worst_errors

_SHOWN_CLASSES = 16  # a matrix of more does not fit the width of a terminal
_ERRORS = 10
_SLICES = 40
_SUMMARY_SLICES = 12
_TEXT = 30  # columns of text wrap beyond this width
_GAP = 3  # between two columns
_BAR = 24
_RIGHT, _WRONG = (38, 104, 210), (196, 88, 32)  # what the page uses for the same
_BACKGROUND = (30, 33, 40)


def show(report: Report, console: Console | None = None, *, verbose: bool = True) -> None:
    """Print a report.

    Args:
        report: what to print.
        console: where to; the standard output by default. Colours are left out where it is no terminal or where
            ``NO_COLOR`` is set, and what its encoding lacks is replaced.
        verbose: whether to print every table and plot; else a summary: values, slices and notes.
    """
    console = console or Console()
    full = "#" if console.options.ascii_only else "█"
    print_plainly(render(report, console.width, full) if verbose else summary(report, console.width), console)


def print_plainly(content: RenderableType, console: Console) -> None:
    """Print what rich draws; into a file without blanks at the ends of lines and what the encoding lacks."""
    ascii_only = console.options.ascii_only
    if (console.is_terminal or console.is_jupyter) and not ascii_only:
        console.print(content)
        return
    with console.capture() as captured:
        console.print(content)
    for line in captured.get().splitlines():
        plain = line.rstrip()
        console.file.write((plain.encode("ascii", "replace").decode() if ascii_only else plain) + "\n")


def to_text(report: Report, width: int = 100, *, verbose: bool = True) -> str:
    """The report as plain text; with ``verbose=False`` the summary of it.

    Example:
        >>> from assay.report import Section, Value
        >>> report = Report("digits", [Section("test", [Value("accuracy", 0.94172, count=450)])])
        >>> print(to_text(report).splitlines()[5])
          accuracy   0.9417      n = 450
    """
    file = StringIO()
    console = Console(file=file, width=width, no_color=True, force_terminal=False, _environ={})
    show(report, console, verbose=verbose)
    return file.getvalue()


def render(report: Report, width: int = 100, full: str = "█") -> RenderableType:
    """The whole report for rich; ``full`` is the character that bars are made of."""
    notes = [_text(note) for note in report.notes]
    return Group(*_head(report), *notes, *(_section(section, width, full) for section in report.sections))


def summary(report: Report, width: int = 100) -> RenderableType:
    """Values, slices and notes for rich, without tables and plots."""
    parts: list[RenderableType] = []
    for section in report.sections:
        if len(report.sections) > 1:
            parts += [Text(), _text(section.name, "bold")]
        if section.values:
            parts += [Text(), _values(section), *_lines(methods(section.values))]
        if slices := slices_of(section):
            rows = slices.first(_SUMMARY_SLICES)
            parts += [Text(), _slices(slices, rows, width), *_lines([slices.note()])]
    notes = [Text(), *(_text(note) for note in report.notes)] if report.notes else []
    return Group(*_head(report), *parts, *notes)


def _head(report: Report) -> list[RenderableType]:
    facts = [report.device] if report.device else []
    facts += [report.created.replace("T", " ").replace("+00:00", " UTC")]
    if report.duration_s is not None:
        facts.append(text.seconds(report.duration_s))
    return [Text(), _text(report.title, "bold"), _text(" · ".join(facts), "dim")]


def _section(section: Section, width: int, full: str) -> RenderableType:
    parts: list[RenderableType] = [Text(), Rule(_text(section.name, "bold"), align="left", style="dim")]
    if section.note:
        parts.append(_text(section.note, "dim"))
    if section.values:
        parts += [_values(section), *_lines(methods(section.values)), Text()]
    if slices := slices_of(section):
        parts += [
            _slices(slices, slices.first(_SLICES), width),
            *_lines([slices.note(), *methods(slices.values())]),
            Text(),
        ]
    worst = worst_errors(section, _ERRORS)
    for table in (*([worst] if worst else []), *section.tables):
        parts.append(_table(table, width))
    for plot in section.plots:
        parts += [*_plot(plot, width, full), Text()]
    return Group(*parts)


def _values(section: Section) -> RenderableType:
    grid = Grid.grid(padding=(0, 3, 0, 0))
    grid.add_column(overflow="fold")
    for justify in ("right", "left", "left"):
        grid.add_column(justify=justify, no_wrap=True)
    grid.add_column(overflow="fold")
    for value in section.values:
        interval = text.interval(value.lower, value.upper)
        count = "" if value.count is None else f"n = {value.count:,}"
        name, number = _text(value.name), Text(text.number(value.value), "bold")
        note = "" if interval else value.note  # how an interval was found stands below
        grid.add_row(name, number, Text(interval, "dim"), Text(count, "dim"), _text(note, "dim"))
    return Padding(grid, (0, 0, 0, 2))


def _lines(lines: Iterable[str]) -> list[RenderableType]:
    return [Padding(_text(line, "dim"), (0, 0, 0, 2)) for line in lines if line]


def _slices(slices: Slices, rows: tuple[Row, ...], width: int) -> RenderableType:
    """A row a slice, with the intervals below the numbers; the worst of a metric is marked."""
    columns = [
        _Column("slice", [_text(row.name) for row in rows], is_text=True),
        _Column("n", [Text(f"{row.count:,}") for row in rows]),
    ]
    for k, metric in enumerate(slices.metrics):
        columns.append(_Column(metric, [_slice_value(row.values[k], row.is_worst[k]) for row in rows]))
    styles = ["dim" if row.is_small else "" for row in rows]
    left = len(slices.rows) - len(rows)
    more = [Text(f"and {left:,} more slices, which the page and the Markdown show", "dim")] if left else []
    return Padding(Group(*_grids("Slices", columns, styles, width - 2, repeated=2), *more), (0, 0, 0, 2))


def _slice_value(value: Value | None, is_worst: bool) -> Text:
    if value is None:
        return Text(text.UNDEFINED)
    shown = Text("worst ", "yellow") if is_worst else Text()
    shown.append(text.number(value.value), "bold yellow" if is_worst else "")
    interval = text.interval(value.lower, value.upper)
    return shown.append(f"\n{interval}", "dim") if interval else shown


def _table(table: Table, width: int) -> RenderableType:
    columns = []
    for i, name in enumerate(table.columns):
        values = [row[i] for row in table.rows]
        cells = [_text(cell, _cell_style(v)) for cell, v in zip(text.column(values), values, strict=True)]
        columns.append(_Column(name, cells, is_text=any(isinstance(value, str) for value in values)))
    note = [_text(table.note, "dim")] if table.note else []
    grids = _grids(table.name, columns, [""] * len(table.rows), width - 2, repeated=1)
    return Padding(Group(*grids, *note), (0, 0, 1, 2))


@dataclass(frozen=True)
class _Column:
    """A column of a table: numbers stay on one line, text may wrap."""

    name: str
    cells: Sequence[Text]
    is_text: bool = False

    @property
    def width(self) -> int:
        lines = [line for cell in self.cells for line in cell.plain.split("\n")]
        if self.is_text:
            return min(max(map(cell_len, [self.name, *lines])), _TEXT)
        return max(map(cell_len, [*text.clean(self.name).split(), *lines]), default=0)


def _grids(
    name: str, columns: Sequence[_Column], styles: Sequence[str], width: int, repeated: int
) -> Iterator[RenderableType]:
    """A table, in several parts below each other where it is too wide; the first columns stand in each part."""
    for k, part in enumerate(_parts([column.width for column in columns], width, repeated)):
        title = _text(name, "bold") if not k else None
        grid = Grid(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for i in part:
            column = columns[i]
            if column.is_text:
                grid.add_column(_text(column.name), overflow="fold")
            else:
                grid.add_column(_text(column.name), justify="right", min_width=column.width)
        for r, style in enumerate(styles):
            grid.add_row(*(columns[i].cells[r] for i in part), style=style)
        if k:
            yield Text()
        yield grid


def _parts(widths: Sequence[int], width: int, repeated: int) -> list[list[int]]:
    """Which columns stand beside each other: as many as fit, and at least one beside the repeated ones."""
    lead = list(range(min(repeated, len(widths))))
    room = width - sum(widths[i] + _GAP for i in lead)
    parts: list[list[int]] = [[*lead]]
    left = room
    for i in range(len(lead), len(widths)):
        needed = widths[i] + _GAP
        if needed > left and len(parts[-1]) > len(lead):
            parts.append([*lead])
            left = room
        parts[-1].append(i)
        left -= needed
    return parts


def _plot(plot: Plot, width: int, full: str) -> Iterator[RenderableType]:
    yield Text("  ").append_text(_text(plot.name, "bold"))
    yield Text("  ").append_text(_text(plot.summary(), "dim"))
    if isinstance(plot, ConfusionMatrix):
        yield Padding(_matrix(plot) if len(plot.labels) <= _SHOWN_CLASSES else _confusions(plot, width), (0, 0, 0, 2))
    elif isinstance(plot, Reliability):
        yield Padding(_reliability(plot, full), (0, 0, 0, 2))
    elif isinstance(plot, Residuals):
        yield Padding(_histogram(plot, full), (0, 0, 0, 2))
    elif isinstance(plot, Points):
        yield _table(Table("Points", plot.columns(), plot.rows()), width)
    elif isinstance(plot, Distribution):
        for each in plot.series:
            yield Padding(_text(each.name, "dim"), (0, 0, 0, 2))
            yield Padding(_spread(plot.edges, each.counts, full), (0, 0, 0, 2))
    elif isinstance(plot, Bars):
        yield Padding(_bars(list(plot.labels), list(plot.values), full), (0, 0, 0, 2))


def _matrix(plot: ConfusionMatrix) -> RenderableType:
    """Rows are targets, columns are predictions; the shade is the share of the row."""
    longest = max((len(label) for label in plot.labels), default=0)
    room = min(longest, 48 // max(1, len(plot.labels)))
    width = max([4, room, *(len(str(count)) for row in plot.counts for count in row)])
    grid = Grid.grid()
    grid.add_column(justify="right")
    grid.add_column(width=1)
    for _ in plot.labels:
        grid.add_column(width=width + 2, no_wrap=True)
    grid.add_row("", "", *(Text(label.rjust(width + 1), "dim") for label in text.shorten_each(plot.labels, width)))
    names = text.shorten_each(plot.labels, 16)
    for i, row in enumerate(plot.counts):
        total = max(1, sum(row))
        cells = [_shade(count, width, count / total, i == j) for j, count in enumerate(row)]
        grid.add_row(Text(names[i], "dim"), "", *cells)
    return grid


def _shade(count: int, width: int, share: float, is_right: bool) -> Text:
    if not count:
        return Text("·".rjust(width + 1), "dim")
    strength = 0.25 + 0.75 * share**0.6  # rare errors stay visible
    colour = _RIGHT if is_right else _WRONG
    mixed = (round(b + (c - b) * strength) for b, c in zip(_BACKGROUND, colour, strict=True))
    return Text(f"{count:>{width + 1}} ", f"white on rgb({','.join(map(str, mixed))})")


def _confusions(plot: ConfusionMatrix, width: int) -> RenderableType:
    rows = plot.confusions(8)
    return _table(Table("Most frequent errors", ("target", "predicted", "times"), rows), width)


def _reliability(plot: Reliability, full: str) -> RenderableType:
    used = [i for i, count in enumerate(plot.counts) if count]
    labels = [f"{plot.edges[i]:.2f} to {plot.edges[i + 1]:.2f}" for i in used]
    return _bars(labels, [plot.accuracy[i] for i in used], full, [f"n = {plot.counts[i]:,}" for i in used], top=1.0)


def _histogram(plot: Residuals, full: str) -> RenderableType:
    _, residuals = plot.finite()
    counts, edges = np.histogram(residuals, bins=9) if len(residuals) else (np.zeros(0, int), np.zeros(1))
    labels = [f"{low:.4g} to {high:.4g}" for low, high in pairwise(edges)]
    return _bars(labels, counts.tolist(), full)


def _spread(edges: tuple[float, ...], counts: tuple[int, ...], full: str) -> RenderableType:
    """A histogram in at most ten bars: neighbouring bins are taken together."""
    step = max(1, -(-len(counts) // 10))
    starts = range(0, len(counts), step)
    labels = [f"{edges[i]:.4g} to {edges[min(i + step, len(counts))]:.4g}" for i in starts]
    return _bars(labels, [sum(counts[i : i + step]) for i in starts], full)


def _bars(
    labels: list[str],
    values: list[float] | list[int],
    full: str,
    notes: list[str] | None = None,
    top: float | None = None,
) -> RenderableType:
    finite = [abs(value) for value in values if np.isfinite(value)]
    scale = top or max(finite, default=1.0) or 1.0
    grid = Grid.grid(padding=(0, 1, 0, 0))
    for justify in ("right", "left", "right", "left"):
        grid.add_column(justify=justify)
    for label, value, note in zip(text.shorten_each(labels, 24), values, notes or [""] * len(values), strict=True):
        length = round(_BAR * min(1.0, abs(value) / scale)) if np.isfinite(value) else 0
        bar = Text(full * length, "blue").append(" " * (_BAR - length))
        grid.add_row(Text(label, "dim"), bar, Text(text.cell(value)), Text(note, "dim"))
    return grid


def _cell_style(value: Cell) -> str:
    return "cyan" if isinstance(value, str) and value.startswith(("0x", "-0x")) else ""


def _text(content: str, style: str = "") -> Text:
    """The report's words as they are: no markup of rich in them is followed, no escape sequence gets through."""
    return Text(text.clean(content), style)
