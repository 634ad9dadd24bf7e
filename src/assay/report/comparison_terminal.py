"""A comparison in a terminal: one table for each run and section, then the samples that flipped."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table as Grid
from rich.text import Text

from assay.report import comparison_text as words
from assay.report import text
from assay.report.comparison import Comparison, Delta, Flips
from assay.report.plain import Cell
from assay.report.terminal import print_plainly

WIDE = 110
SLICES = 12
"""Regressions on slices that are shown, at most."""

AT_LEAST = 5
"""Differences on slices that are shown, worse or not; the others are counted."""

STYLES = {"better": "green", "worse": "red", "differs": "yellow", "no evidence": "dim", "cannot say": "dim"}


def show(comparison: Comparison, console: Console | None = None) -> None:
    """Print a comparison.

    Args:
        comparison: what to print.
        console: where to; the standard output unless given.
    """
    console = console or Console()
    print_plainly(render(comparison, wide=console.width >= WIDE), console)


def to_text(comparison: Comparison, width: int = 120) -> str:
    """The comparison as plain text."""
    file = StringIO()
    show(comparison, Console(file=file, width=width, no_color=True, force_terminal=False, _environ={}))
    return file.getvalue()


def render(comparison: Comparison, *, wide: bool = True) -> RenderableType:
    """What rich prints for a comparison; the effect sizes where there is room."""
    baseline, *runs = (run.name for run in comparison.runs)
    parts: list[RenderableType] = [Text(), _text(f"{', '.join(runs)} against {baseline}", "bold")]
    parts.append(_text(words.settings(comparison), "dim"))
    parts += [_text(note) for note in comparison.notes]
    for run, section, deltas in words.groups(comparison):
        parts += [Text(), Rule(_text(f"{section} · {run}", "bold"), align="left", style="dim")]
        parts += [_deltas(baseline, run, deltas, wide=wide), *_notes(deltas)]
        for flips in comparison.flips:
            if (flips.run, flips.section, flips.slice) == (run, section, ""):
                parts += _flips(flips)
        if slices := words.by_slice(comparison, run, section):
            parts += _slices(comparison, run, slices, wide=wide)
    if comparison.unmatched:
        parts += [Text(), Rule(_text("Not compared", "bold"), align="left", style="dim")]
        parts += [_text(f"  {words.unmatched(entry)}") for entry in comparison.unmatched]
    return Group(*parts)


def _deltas(baseline: str, run: str, deltas: list[Delta], *, wide: bool) -> RenderableType:
    grid = _grid(wide)
    longest = max(len(word) for delta in deltas for word in delta.metric.split() or [""])
    grid.add_column("metric", overflow="fold", min_width=min(longest, 24))
    _add_columns(grid, baseline, run)
    if wide:
        grid.add_column("effect", no_wrap=True)
    for delta in deltas:
        effect = [_text(words.effect(delta), "dim")] if wide else []
        grid.add_row(_text(delta.metric), *_values(delta), *_difference(delta), *effect)
    return Padding(grid, (1, 0, 0, 2))


def _slices(comparison: Comparison, run: str, deltas: list[Delta], *, wide: bool) -> Iterator[RenderableType]:
    """The worst regressions on slices; the others as a count."""
    yield Padding(_text(f"By slice: {words.verdicts(deltas)}", "bold"), (1, 0, 0, 2))
    count = max(AT_LEAST, sum(delta.verdict in ("worse", "differs") for delta in deltas[:SLICES]))
    shown, rest = deltas[:count], deltas[count:]
    grid = _grid(wide)
    grid.add_column("slice", overflow="fold")
    grid.add_column("metric", overflow="fold")
    _add_columns(grid, *([comparison.runs[0].name, run] if wide else []))
    if wide:
        grid.add_column("samples", overflow="fold")
    for delta in shown:
        values = _values(delta) if wide else []
        flips = [_text(words.flip_counts(words.flips_of(comparison, delta)), "dim")] if wide else []
        grid.add_row(_text(delta.slice), _text(delta.metric), *values, *_difference(delta), *flips)
    yield Padding(grid, (1, 0, 0, 2))
    if rest:
        yield _text(f"  and {len(rest):,} more: {words.verdicts(rest)}", "dim")
    yield from _notes(deltas, counted=False)


def _grid(wide: bool) -> Grid:
    return Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1 if wide else 0, 0, 0))


def _add_columns(grid: Grid, *names: str) -> None:
    for column in (*names, "difference"):
        grid.add_column(_text(text.shorten(column, 16)), justify="right", no_wrap=True)
    grid.add_column("interval", no_wrap=True)
    grid.add_column("p", justify="right", no_wrap=True)
    grid.add_column("", overflow="fold", min_width=10)


def _values(delta: Delta) -> list[str]:
    return [text.number(delta.baseline), text.number(delta.value)]


def _difference(delta: Delta) -> list[Text | str]:
    return [
        Text(words.signed(delta.difference), "bold"),
        Text(words.interval(delta), "dim"),
        words.p_value(delta.corrected),
        Text(delta.verdict, STYLES[delta.verdict]),
    ]


def _notes(deltas: list[Delta], *, counted: bool = True) -> Iterator[RenderableType]:
    for names, said in words.how_tested(deltas, counted=counted):
        yield Padding(_text(f"{names}: {said}.", "dim"), (0, 0, 0, 2))


def _flips(flips: Flips) -> Iterator[RenderableType]:
    yield Text()
    yield Padding(_text(f"{flips.metric}, sample by sample: {words.flipped(flips)}"), (0, 0, 0, 2))
    for name, count, rows in flips.groups():
        if rows:
            yield Padding(_text(words.listed(name, count, rows), "bold"), (1, 0, 0, 4))
            yield Padding(_rows(rows), (0, 0, 0, 4))


def _rows(rows: tuple[tuple[Cell, ...], ...]) -> RenderableType:
    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    used = words.used(rows)
    for i in used:
        grid.add_column(words.COLUMNS[i], justify="left" if isinstance(rows[0][i], str) else "right", overflow="fold")
    for row in rows:
        grid.add_row(*(_text(_plain(row[i])) for i in used))
    return grid


def _plain(value: Cell) -> str:
    """An id or a class: a number without commas, as it stands in the data."""
    return str(value) if isinstance(value, int) else text.cell(value)


def _text(content: str, style: str = "") -> Text:
    return Text(text.clean(content), style)
