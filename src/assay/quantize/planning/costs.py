"""What a kernel costs beside the dense layer, where it was measured: facts for plans, no promise for other machines."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TypeAlias

from assay.quantize.dispatch import at
from assay.quantize.scheme import Scheme

ROWS = (1, 32, 512)
Key: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class Costs:
    """What was measured on the CPU.

    Attributes:
        where: on which machine, and what.
        times: (dtype, scheme but for its groups, kernel) -> time over that of the dense layer, at so many ROWS.
    """

    where: str
    times: dict[Key, tuple[float, ...]]

    def of(self, dtype: str, scheme: Scheme, steps: Sequence[tuple[int, str]]) -> str:
        """What a layer costs at few and at many rows, on the kernel that it takes there; empty if not measured.

        Example:
            >>> times = {("bfloat16", "int4", "a"): (0.3, 1.8, 2.5), ("bfloat16", "int4", "b"): (5.5, 3.1, 1.2)}
            >>> costs = Costs("here", times)
            >>> costs.of("bfloat16", Scheme.parse("int4:g32"), ((1, "a"), (24, "b")))
            '0.3 times the time of the dense layer at 1 row, 3.1 at 32, 1.2 at 512 (here)'
            >>> costs.of("float64", Scheme.parse("int4"), ((1, "a"),))
            ''
        """
        of_rows = [self.times.get((dtype, scheme.family, at(rows, tuple(steps)))) for rows in ROWS]
        if None in of_rows:
            return ""
        first, *rest = (each[place] for place, each in enumerate(of_rows) if each)
        others = ", ".join(f"{times} at {rows}" for times, rows in zip(rest, ROWS[1:], strict=True))
        return f"{first} times the time of the dense layer at 1 row, {others} ({self.where})"


@cache
def measured() -> Costs:
    """What comes with assay."""
    read = tomllib.loads(files("assay.quantize.planning").joinpath("costs.toml").read_text(encoding="utf-8"))
    times = {
        (dtype, scheme, kernel): tuple(each)
        for dtype, schemes in read["times"].items()
        for scheme, kernels in schemes.items()
        for kernel, each in kernels.items()
    }
    return Costs(read["where"], times)
