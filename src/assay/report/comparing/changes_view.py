"""The samples that changed most, as tables, and on a page as pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay._records import CellValue
from assay.render import text
from assay.render.document import Block, DataGrid, Fold, Gallery, GridCell, GridColumn, GridRow, Tile

if TYPE_CHECKING:
    from assay.report.comparing.comparison import ChangedSample, Changes

_NAMES = ("id", "target", "before", "now")
_NOTE = (
    "Of the samples with a picture, those that changed most. A report has pictures of its worst samples, and of errors "
    "chosen by a hash of their ids. A picture is of the run that is worse for the sample, where that run has one."
)


def changes_blocks(changes: Changes, *, has_table: bool) -> Iterator[Block]:
    """The pictures of the samples that got worse and better, and a table of both.

    Args:
        changes: the samples.
        has_table: whether another table lists such samples.
    """
    groups = (
        ("worse", changes.worse, changes.worst, changes.worst_pictured),
        ("better", changes.better, changes.best, changes.best_pictured),
    )
    grids = []
    for name, count, samples, pictured in groups:
        tiles = [Tile(each.picture, _lines(changes, each)) for each in pictured if each.picture is not None]
        if tiles:
            notes = dict.fromkeys(tile.picture.note for tile in tiles)
            yield Gallery(tuple(tiles), f"Pictures of what got {name}: {changes.metric}", (*filter(None, notes), _NOTE))
        if samples and not has_table:
            grids.append(_grid(changes, f"{name}: the {len(samples):,} of {count:,} that changed most", samples))
    if grids:
        intro = f"{changes.worse:,} worse, {changes.better:,} better."
        yield Fold(f"{changes.metric}: what changed most", intro, tuple(grids))


def _lines(changes: Changes, sample: ChangedSample) -> tuple[tuple[str, str], ...]:
    named = dict(zip(_NAMES, _cells(sample), strict=True))
    lines = [(name, text.cell(each)) for name, each in named.items() if each is not None]
    return (*lines, (changes.terms, _scores(sample)))


def _cells(sample: ChangedSample) -> tuple[CellValue, ...]:
    """Numbers of classes are names, and take no commas."""
    cells = (sample.id, sample.target, sample.before, sample.now)
    return tuple(str(each) if isinstance(each, int) else each for each in cells)


def _scores(sample: ChangedSample) -> str:
    scores = sample.score_before, sample.score_now
    return " → ".join(text.column([*map(int, scores)] if all(each.is_integer() for each in scores) else scores))


def _grid(changes: Changes, name: str, samples: tuple[ChangedSample, ...]) -> DataGrid:
    cells = [_cells(each) for each in samples]
    used = [k for k in range(len(_NAMES)) if any(row[k] is not None for row in cells)]
    grid = DataGrid.of([_NAMES[k] for k in used], [[row[k] for k in used] for row in cells], name)
    rows = tuple(
        GridRow((*row.cells, GridCell(_scores(each), each.score_now - each.score_before)))
        for row, each in zip(grid.rows, samples, strict=True)
    )
    return DataGrid((*grid.columns, GridColumn(changes.terms, "number")), rows, name)
