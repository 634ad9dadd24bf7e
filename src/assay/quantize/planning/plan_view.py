"""A plan as a document: layers of one form in one row, what is skipped and why, and the sums."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from assay.render import Bullets, Chapter, DataGrid, Document, GridCell, GridColumn, GridRow, Line, Paragraph, Span

if TYPE_CHECKING:
    from assay.quantize.planning.plan import LayerPlan, Plan
    from assay.quantize.scheme import Scheme

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_LAYER, _WEIGHT, _MEMORY = GridColumn("layer"), GridColumn("weight", "word"), GridColumn("memory", "number")
_QUANTIZED = (_LAYER, _WEIGHT, GridColumn("becomes"), GridColumn("kernel, by rows of input"), _MEMORY)
_SKIPPED = (_LAYER, _WEIGHT, GridColumn("why"), _MEMORY)


def plan_document(plan: Plan) -> Document:
    """What is shown of a plan."""
    chapters = [Chapter("", (DataGrid(_QUANTIZED, tuple(map(_row, _alike(plan.quantized)))),))]
    if plan.skipped or plan.others:
        rows = list(map(_row, _alike(plan.skipped)))
        for other in plan.others:
            why = "of layers" if other.kind == "bias" else "neither a linear layer nor an embedding"
            rows.append(_grid_row(other.kind, other.count, "", Span(why, "faint"), size(other.nbytes)))
        chapters.append(Chapter("Skipped", (DataGrid(_SKIPPED, tuple(rows), header=False),)))
    if plan.notes:
        chapters.append(Chapter("How", (Bullets(plan.notes),)))
    chapters.append(Chapter("", (Paragraph(Span(_total(plan), "strong")),)))
    title = f"{plan.device}, {plan.dtype} activations, operators of torch {plan.torch}; rounding: {plan.method}"
    return Document(title, tuple(chapters), level=3)


def _alike(layers: Sequence[LayerPlan]) -> list[list[LayerPlan]]:
    """Layers to which the same happens and whose names differ in numbers alone, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[LayerPlan]] = {}
    for layer in layers:
        name, why = (re.sub(r"(?<=\.)\d+|^\d+(?=\.|$)", "*", text) for text in (layer.name, layer.why))
        what = (name, why, layer.kind, layer.shape, layer.dtype, layer.scheme, layer.kernels)
        groups.setdefault(what, []).append(layer)
    return list(groups.values())


def _row(group: list[LayerPlan]) -> GridRow:
    first = group[0]
    name, why = _folded([layer.name for layer in group]), _folded([layer.why for layer in group])
    shape = " × ".join(map(str, first.shape)) if any(first.shape) else ""
    before, after = sum(layer.bytes_before for layer in group), sum(layer.bytes_after for layer in group)
    is_counted_elsewhere = first.tied and not before
    if first.scheme is None:
        return _grid_row(name, len(group), shape, Span(why, "warn"), "shared" if is_counted_elsewhere else size(before))
    unit = _unit(before)
    memory = f"{_digits(before / 1024**unit)} → {_digits(after / 1024**unit)} {UNITS[unit]}" if before else "shared"
    cells = GridCell(Span(spelled(first.scheme), "good")), GridCell(kernels(first.kernels), below=why)
    return _grid_row(name, len(group), shape, *cells, memory)


def _grid_row(name: str, count: int, *cells: GridCell | Line) -> GridRow:
    named: Line = (name, Span(f" ({count})", "faint")) if count > 1 else name
    return GridRow(tuple(cell if isinstance(cell, GridCell) else GridCell(cell) for cell in (named, *cells)))


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


def kernels(steps: Sequence[tuple[int, str]]) -> str:
    """Which kernel from how many rows on, as a sentence.

    Example:
        >>> kernels([(1, "int4pack"), (8, "dense")]), kernels([(1, "dense")]), kernels([])
        ('int4pack; dense from 8', 'dense', '')
    """
    return "; ".join(name if rows == 1 else f"{name} from {rows}" for rows, name in steps)


def size(nbytes: float) -> str:
    """A number of bytes in the unit that fits it, three digits that count.

    Example:
        >>> size(512), size(1536), size(3 * 2**30)
        ('512 B', '1.50 KiB', '3 GiB')
    """
    unit = _unit(nbytes)
    return f"{_digits(nbytes / 1024**unit)} {UNITS[unit]}"


def _unit(nbytes: float) -> int:
    return next((unit for unit in range(len(UNITS)) if nbytes < 1024 ** (unit + 1)), len(UNITS) - 1)


def _digits(value: float) -> str:
    places = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    return f"{value:,.{places}f}"


def _total(plan: Plan) -> str:
    what = f"{len(plan.quantized)} of {len(plan.layers)} layers are quantized"
    sizes = f"{size(plan.bytes_before)} → {size(plan.bytes_after)}"
    beside = f"; kernels keep {size(plan.bytes_packed)} beside them once they ran" if plan.bytes_packed else ""
    return f"{what}: {sizes}, {plan.bytes_before / plan.bytes_after:.2f} times smaller{beside}"
