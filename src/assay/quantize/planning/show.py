"""A plan as a document: layers of one form in one row, what is skipped and why, and the sums."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Console

from assay.render import Bullets, Chapter, DataGrid, Document, GridCell, GridColumn, GridRow, Line, Paragraph, Span
from assay.render.markdown import to_markdown
from assay.render.terminal import show as show_document
from assay.render.terminal import to_text

if TYPE_CHECKING:
    from assay.quantize.planning.layer_plan import LayerPlan, Others
    from assay.quantize.planning.plan import Plan
    from assay.quantize.scheme import Scheme

WIDTH = 120  # where nobody can widen the output
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True)
class Row:
    """Layers to which the same happens, as one row."""

    name: str
    count: int
    shape: str
    scheme: str
    kernels: str
    before: int
    after: int
    why: str
    shares: bool


def show(plan: Plan, console: Console | None = None) -> None:
    """Print a plan.

    Args:
        plan: what to print.
        console: where to; the standard output by default.
    """
    show_document(plan_document(plan), console, pipe_width=WIDTH)


def text(plan: Plan) -> str:
    """The plan as plain text, without blanks at the ends of lines."""
    return to_text(plan_document(plan), WIDTH).strip("\n")


def markdown(plan: Plan) -> str:
    """The plan as Markdown, for a pull request."""
    return to_markdown(plan_document(plan))


def plan_document(plan: Plan) -> Document:
    """What is shown of a plan."""
    quantized = [layer for layer in plan.layers if layer.scheme is not None]
    left = [layer for layer in plan.layers if layer.scheme is None]
    chapters = [Chapter("", (DataGrid(_COLUMNS, tuple(map(_quantized, rows(quantized)))),))]
    if left or plan.others:
        grid = DataGrid(_LEFT_COLUMNS, (*map(_left, rows(left)), *map(_other, plan.others)), header=False)
        chapters.append(Chapter("Skipped", (grid,)))
    if plan.notes:
        chapters.append(Chapter("How", (Bullets(plan.notes),)))
    chapters.append(Chapter("", (Paragraph(Span(total(plan), "strong")),)))
    title = f"{plan.device}, {plan.dtype} activations, operators of torch {plan.torch}; rounding: {plan.method}"
    return Document(title, tuple(chapters), level=3)


_COLUMNS = (
    GridColumn("layer"),
    GridColumn("weight", "word"),
    GridColumn("becomes"),
    GridColumn("kernel, by rows of input"),
    GridColumn("memory", "number"),
)
_LEFT_COLUMNS = (GridColumn("layer"), GridColumn("weight", "word"), GridColumn("why"), GridColumn("memory", "number"))


def _quantized(row: Row) -> GridRow:
    kernel = GridCell(row.kernels, below=row.why)
    return _grid_row(row.name, row.count, row.shape, GridCell(Span(row.scheme, "good")), kernel, _memory(row))


def _left(row: Row) -> GridRow:
    return _grid_row(row.name, row.count, row.shape, GridCell(Span(row.why, "warn")), _size(row))


def _other(other: Others) -> GridRow:
    why = "of layers" if other.kind == "bias" else "neither a linear layer nor an embedding"
    return _grid_row(other.kind, other.count, "", GridCell(Span(why, "faint")), size(other.bytes))


def _grid_row(name: str, count: int, *cells: GridCell | str) -> GridRow:
    named: Line = (name, Span(f" ({count})", "faint")) if count > 1 else name
    return GridRow((GridCell(named), *(GridCell(cell) if isinstance(cell, str) else cell for cell in cells)))


def _size(row: Row) -> str:
    """What a row takes; another row has the bytes of a weight that is shared."""
    return "shared" if row.shares and not row.before else size(row.before)


def _memory(row: Row) -> str:
    """Before and after; another row has the bytes of a weight that is shared."""
    if not row.before:
        return "shared"
    unit = _unit(row.before)
    before, after = (_digits(nbytes / 1024**unit) for nbytes in (row.before, row.after))
    return f"{before} → {after} {UNITS[unit]}"


def spelled(scheme: Scheme) -> str:
    """A scheme with its groups, also where they are the default ones.

    Example:
        >>> from assay.quantize.scheme import Scheme
        >>> [spelled(Scheme.parse(text)) for text in ("int4", "int8", "int8:g32:asym")]
        ['int4:g128', 'int8:channel', 'int8:g32:asym']
    """
    group = f"g{scheme.group_size}" if scheme.group_size else "channel"
    head, *rest = str(scheme).split(":")
    return ":".join([head, group, *(word for word in rest if word != group)])


def rows(layers: Sequence[LayerPlan]) -> list[Row]:
    """Layers in rows: those to which the same happens, and whose names differ in numbers alone, in one.

    The order is that of the first layer of each row.
    """
    alike: dict[tuple[object, ...], list[LayerPlan]] = {}
    for layer in layers:
        what = (layer.kind, layer.shape, layer.dtype, str(layer.scheme), layer.kernels, _unnumbered(layer.why))
        alike.setdefault((_unnumbered(layer.name), *what), []).append(layer)
    return [_row(group) for group in alike.values()]


def _unnumbered(name: str) -> str:
    return re.sub(r"(?<=\.)\d+|^\d+(?=\.|$)", "*", name)


def _row(group: list[LayerPlan]) -> Row:
    first = group[0]
    why = first.why if len(group) == 1 else _folded([layer.why for layer in group])
    return Row(
        name=_folded([layer.name for layer in group]),
        count=len(group),
        shape=" × ".join(map(str, first.shape)) if any(first.shape) else "",
        scheme="" if first.scheme is None else spelled(first.scheme),
        kernels=kernels(first.kernels),
        before=sum(layer.bytes_before for layer in group),
        after=sum(layer.bytes_after for layer in group),
        why=why,
        shares=bool(first.tied),
    )


def _folded(names: Sequence[str]) -> str:
    """Names that differ in numbers alone as one: ``layers.0-31.fc``.

    Example:
        >>> _folded(["layers.0.fc", "layers.1.fc", "layers.3.fc"]), _folded(["lm_head"])
        ('layers.0-1,3.fc', 'lm_head')
    """
    parts = zip(*(re.split(r"(\d+)", name) for name in names), strict=True)
    return "".join(part[0] if len(set(part)) == 1 else _ranges(sorted(set(map(int, part)))) for part in parts)


def _ranges(numbers: Sequence[int]) -> str:
    runs = (list(run) for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]))
    return ",".join(str(run[0][1]) if len(run) == 1 else f"{run[0][1]}-{run[-1][1]}" for run in runs)


def kernels(held: Sequence[tuple[int, str]]) -> str:
    """Which kernel from how many rows on, as a sentence.

    Example:
        >>> kernels([(1, "int4pack"), (8, "dense")]), kernels([(1, "dense")]), kernels([])
        ('int4pack; dense from 8', 'dense', '')
    """
    return "; ".join(name if rows == 1 else f"{name} from {rows}" for rows, name in held)


def size(nbytes: float) -> str:
    """A number of bytes as a reader wants it.

    Example:
        >>> size(512), size(1536), size(3 * 2**30)
        ('512 B', '1.50 KiB', '3 GiB')
    """
    unit = _unit(nbytes)
    return f"{_digits(nbytes / 1024**unit)} {UNITS[unit]}"


def _unit(nbytes: float) -> int:
    return next((unit for unit in range(len(UNITS)) if nbytes < 1024 ** (unit + 1)), len(UNITS) - 1)


def _digits(value: float) -> str:
    """Three digits that count."""
    places = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    return f"{value:,.{places}f}"


def total(plan: Plan) -> str:
    """The sums of a plan as one sentence."""
    taken = sum(layer.scheme is not None for layer in plan.layers)
    saved = plan.bytes_before / plan.bytes_after
    what = f"{taken} of {len(plan.layers)} layers are quantized"
    kept = f"; kernels keep {size(plan.bytes_packed)} beside them once they ran" if plan.bytes_packed else ""
    return f"{what}: {size(plan.bytes_before)} → {size(plan.bytes_after)}, {saved:.2f} times smaller{kept}"
