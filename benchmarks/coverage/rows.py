"""A source of samples whose true values are known, and how often intervals cover them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from assay.stats.intervals import Ends

SIZES = (20, 100, 1_000, 10_000, 100_000)
DRAWS = {20: 2000, 100: 2000, 1_000: 2000, 10_000: 1000, 100_000: 400}
LEAST = 0.93
"""The coverage of 95 % intervals below which a cell has a mark."""
Random = np.random.Generator
Found = Mapping[str, Ends | None]


@dataclass(frozen=True)
class Row:
    """A source of samples whose true values are known.

    Attributes:
        about: what the samples are.
        draw: the intervals of a set of so many samples, by metric; None where a value has none.
        truth: the true values.
        sizes: how many samples there are.
        cost: how many times fewer sets are drawn than `DRAWS` says.
        reason: why the coverage is below 0.93 at some sizes; empty where it must not be.
    """

    about: str
    draw: Callable[[Random, int], Found]
    truth: Mapping[str, float]
    sizes: tuple[int, ...] = SIZES
    cost: float = 1.0
    reason: str = ""


@dataclass(frozen=True)
class Cell:
    """How often the intervals of one metric covered the truth, lay below it, above it, and were missing."""

    covered: float
    below: float
    above: float
    missing: float
    draws: int

    def __str__(self) -> str:
        if self.missing > 0.5:
            return "-"
        mark = " †" if self.is_short else ""
        return f"{100 * self.covered:.1f} ({100 * self.below:.1f}, {100 * self.above:.1f}){mark}"

    @property
    def is_short(self) -> bool:
        """Whether it covers less than it should by more than chance."""
        error = math.sqrt(LEAST * (1 - LEAST) / max(1, self.draws))
        return self.missing <= 0.5 and self.covered < LEAST - 2 * error


def measured(row: Row, size: int, share: float = 1.0) -> dict[str, Cell]:
    """The cells of a row at a size."""
    random, draws = np.random.default_rng(size), max(20, round(DRAWS[size] / row.cost * share))
    ends: dict[str, list[Ends]] = {name: [] for name in row.truth}
    for _ in range(draws):
        for name, found in row.draw(random, size).items():
            if found is not None:
                ends[name].append(found)
    cells = {}
    for name, truth in row.truth.items():
        lower, upper = np.array(ends[name]).reshape(-1, 2).T
        slack = 1e-12 * abs(truth)
        below, above = (
            float(np.mean(each)) if len(each) else 0.0 for each in (upper < truth - slack, lower > truth + slack)
        )
        cells[name] = Cell(1 - below - above, below, above, 1 - len(lower) / draws, len(lower))
    return cells
