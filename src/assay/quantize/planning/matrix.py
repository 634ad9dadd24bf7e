"""What works on which device: for every scheme and dtype the kernels of a layer, as a Markdown table."""

from __future__ import annotations

import sys
from pathlib import Path

from assay._atomic import write_text
from assay.devices.kinds import HOST, KINDS
from assay.quantize.dispatch import DispatchTable, regimes
from assay.quantize.planning.plan_view import kernels, spelled
from assay.quantize.scheme import Scheme

SCHEMES = ("int8", "int8:g128", "int4", "int4:g32:sym", "int4:channel", "int3:g64", "int8:dynamic", "int4:dynamic")
DTYPES = ("bfloat16", "float16", "float32")
SHAPE = (4096, 4096)
COLUMNS = (HOST, *(name for name, kind in KINDS.items() if not kind.adapter))
"""Devices that torch itself has kernels for; those of adapters have none for integer weights."""
BEGIN, END = "<!-- written by: assay quantize --matrix -->", "<!-- end -->"


def markdown() -> str:
    """The kernels of a layer as a table: a column for each device of torch; dtypes that do the same share a row.

    The crossings are those that come with assay; a width or a height that kernels do not take has other kernels.

    Example:
        >>> [line for line in markdown().splitlines() if line.startswith("| int8:g128")][0].count("dequantize")
        4
    """
    lines = [f"| scheme | activations | {' | '.join(COLUMNS)} |", "|---|---|" + "---|" * len(COLUMNS)]
    for scheme in map(Scheme.parse, SCHEMES):
        same: dict[tuple[str, ...], list[str]] = {}
        for dtype in DTYPES:
            row = tuple(kernels(regimes(dtype, device, scheme, SHAPE, DispatchTable())) for device in COLUMNS)
            same.setdefault(row, []).append(dtype)
        lines += [f"| {spelled(scheme)} | {', '.join(dtypes)} | {' | '.join(row)} |" for row, dtypes in same.items()]
    return "\n".join(lines) + "\n"


def filled(page: str) -> str:
    """A page with the table between its two marks written anew.

    Example:
        >>> print(filled(f"{BEGIN}\\nold\\n{END}\\n").splitlines()[2])
        | scheme | activations | cpu | cuda | mps | xpu |
    """
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{markdown()}\n{END}{after}"


if __name__ == "__main__":
    for each in map(Path, sys.argv[1:]):
        write_text(each, filled(each.read_text(encoding="utf-8")))
