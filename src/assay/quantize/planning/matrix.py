"""What works on which device: for every scheme and dtype the kernels of a layer, looked up, and as a Markdown table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay._atomic import write_text
from assay.devices.capabilities import DEVICES
from assay.quantize.dispatch import DispatchTable, regimes
from assay.quantize.planning.plan_view import kernels, spelled
from assay.quantize.scheme import Scheme
from assay.quantize.tuning_records import Steps

SCHEMES = ("int8", "int8:g128", "int4", "int4:g32:sym", "int4:channel", "int3:g64", "int8:dynamic", "int4:dynamic")
DTYPES = ("bfloat16", "float16", "float32")
SHAPE = (4096, 4096)
BEGIN, END = "<!-- written by: assay quantize --matrix -->", "<!-- end -->"


@dataclass(frozen=True)
class Cell:
    """The kernels of a layer of one scheme, for one dtype of activations, on one device."""

    scheme: Scheme
    dtype: str
    device: str
    steps: Steps


def matrix(schemes: Sequence[str] = SCHEMES, shape: tuple[int, int] = SHAPE, release: str | None = None) -> list[Cell]:
    """Look up every scheme, dtype and device, with the crossings that come with assay.

    Args:
        schemes: as :meth:`Scheme.parse` reads them.
        shape: of the weight; a width or a height that kernels do not take has other kernels.
        release: of torch; by default the installed one.

    Example:
        >>> [cell.steps for cell in matrix(["int4"]) if (cell.dtype, cell.device) == ("float32", "cuda")]
        [((1, 'dequantize'),)]
    """
    parsed = [Scheme.parse(scheme) for scheme in schemes]
    return [
        Cell(scheme, dtype, device, regimes(dtype, device, scheme, shape, DispatchTable(), release))
        for scheme in parsed
        for dtype in DTYPES
        for device in DEVICES
    ]


def markdown(cells: Sequence[Cell]) -> str:
    """The cells as a table with a column for each device; dtypes that do the same everywhere share a row."""
    lines = [f"| scheme | activations | {' | '.join(DEVICES)} |", "|---|---|" + "---|" * len(DEVICES)]
    for scheme in dict.fromkeys(cell.scheme for cell in cells):
        alike: dict[tuple[str, ...], list[str]] = {}
        for dtype in DTYPES:
            row = tuple(kernels(cell.steps) for cell in cells if (cell.scheme, cell.dtype) == (scheme, dtype))
            alike.setdefault(row, []).append(dtype)
        lines += [f"| {spelled(scheme)} | {', '.join(kinds)} | {' | '.join(row)} |" for row, kinds in alike.items()]
    return "\n".join(lines) + "\n"


def filled(page: str) -> str:
    """A page with the table between its two marks written anew.

    Example:
        >>> print(filled(f"{BEGIN}\\nold\\n{END}\\n").splitlines()[2])
        | scheme | activations | cpu | cuda | mps | xpu |
    """
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{markdown(matrix())}\n{END}{after}"


if __name__ == "__main__":
    for each in map(Path, sys.argv[1:]):
        write_text(each, filled(each.read_text(encoding="utf-8")))
