"""A plan in a terminal and as Markdown: layers of one form in one row, what is skipped and why, and the sums."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from assay.quantize.planning.plan import LayerPlan, Others, Plan
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
        console: where to; the standard output unless given.
    """
    if console is not None or sys.stdout.isatty():
        (console or Console(highlight=False)).print(render(plan))
    else:
        print(text(plan))


def text(plan: Plan, width: int = WIDTH) -> str:
    """The plan as plain text, without blanks at the ends of lines."""
    console = Console(width=width, color_system=None, highlight=False, force_terminal=False, _environ={})
    with console.capture() as captured:
        console.print(render(plan))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def render(plan: Plan) -> Group:
    """The plan as something that rich prints."""
    taken = [layer for layer in plan.layers if layer.scheme is not None]
    left = [layer for layer in plan.layers if layer.scheme is None]
    parts: list[RenderableType] = [Text(_title(plan), style="bold"), Text(), _taken(rows(taken))]
    if left or plan.others:
        parts += [Text("\nSkipped", style="bold"), _left(rows(left), plan)]
    if plan.notes:
        parts += [Text("\nHow", style="bold"), *(_bullet(note) for note in plan.notes)]
    parts += [Text(f"\n{total(plan)}", style="bold")]
    return Group(*parts)


def _title(plan: Plan) -> str:
    return f"{plan.device}, {plan.dtype} activations, operators of torch {plan.torch}; rounding: {plan.method}"


def _bullet(note: str) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_row(" ·", Text(note))
    return grid


def _taken(found: Sequence[Row]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    table.add_column("layer", overflow="fold", ratio=4, min_width=19)
    table.add_column("weight", no_wrap=True)
    table.add_column("becomes", overflow="fold")
    table.add_column("kernel, by rows of input", overflow="fold", ratio=5)
    table.add_column("memory", justify="right", no_wrap=True)
    for row in found:
        memory = _memory(row)
        kernels = Text(row.kernels + (f"\n{row.why}" if row.why else ""))
        table.add_row(_named(row), row.shape, Text(row.scheme, style="green"), kernels, memory)
    return table


def _left(found: Sequence[Row], plan: Plan) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, pad_edge=False)
    table.add_column(overflow="fold", ratio=5)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=8, style="yellow")
    table.add_column(justify="right", no_wrap=True)
    for row in found:
        table.add_row(_named(row), row.shape, row.why, _size(row))
    for other in plan.others:
        why = Text(_others(other), style="dim")
        table.add_row(Text.assemble(other.kind, (_times(other.count), "dim")), "", why, size(other.bytes))
    return table


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
    """A scheme with its groups, also where they are those that are meant unless said.

    Example:
        >>> from assay.quantize.scheme import Scheme
        >>> [spelled(Scheme.parse(text)) for text in ("int4", "int8", "int8:g32:asym")]
        ['int4:g128', 'int8:channel', 'int8:g32:asym']
    """
    group = f"g{scheme.group_size}" if scheme.group_size else "channel"
    head, *rest = str(scheme).split(":")
    return ":".join([head, group, *(word for word in rest if word != group)])


def _others(other: Others) -> str:
    return "of layers" if other.kind == "bias" else "neither a linear layer nor an embedding"


def _named(row: Row) -> Text:
    return Text.assemble(row.name, (_times(row.count), "dim"))


def _times(count: int) -> str:
    return f" ({count})" if count > 1 else ""


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


def markdown(plan: Plan) -> str:
    """The plan as Markdown, for a pull request."""
    return "\n".join([*_markdown(plan), ""])


def _markdown(plan: Plan) -> Iterator[str]:
    yield f"**{_title(plan)}**\n"
    yield "| layer | weight | becomes | kernel, by rows of input | memory |"
    yield "|---|---|---|---|--:|"
    for row in rows([layer for layer in plan.layers if layer.scheme is not None]):
        yield _line(row.name + _times(row.count), row.shape, row.scheme, _joined(row.kernels, row.why), _memory(row))
    left = rows([layer for layer in plan.layers if layer.scheme is None])
    if left or plan.others:
        yield "\n| skipped | weight | why | memory |"
        yield "|---|---|---|--:|"
    for row in left:
        yield _line(row.name + _times(row.count), row.shape, row.why, _size(row))
    for other in plan.others:
        yield _line(other.kind + _times(other.count), "", _others(other), size(other.bytes))
    if plan.notes:
        yield ""
    yield from (f"- {note}" for note in plan.notes)
    yield f"\n{total(plan)}."


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
