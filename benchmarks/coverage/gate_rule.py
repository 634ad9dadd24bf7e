"""A rule of a gate that does not hold, and how often it passes."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assay.report import Report, gate
from benchmarks.coverage.rows import Random

MOST = 0.025
SIZES = (10, 30, 100, 1_000)
HAIR = 1e-6
UNSEEN = "no sample shows the rare large ones: say the range (below)"
Draw = Callable[[Random, int], Report]
PairOf = Callable[[Random, int], tuple[Report, Report]]


@dataclass(frozen=True)
class Rule:
    """A rule that does not hold, of samples of some kind.

    Attributes:
        rule: as on the command line, without numbers.
        about: what is measured, and on which samples.
        passes: whether the rule passes for as many samples that are drawn.
        sizes: how many samples there are.
        cost: how many times fewer sets are drawn.
        reason: why more than 2.5 % pass; empty where they must not.
    """

    rule: str
    about: str
    passes: Callable[[Random, int], bool]
    sizes: tuple[int, ...] = SIZES
    cost: float = 1.0
    reason: str = ""

    def measured(self, size: int, draws: int) -> tuple[float, bool]:
        """The share that passes, and whether it is larger than 2.5 % by more than two standard errors."""
        seed, draws = zlib.crc32(f"{self.rule} {self.about}".encode()), max(20, round(draws / self.cost))
        random = np.random.default_rng([seed, size])
        share = sum(self.passes(random, size) for _ in range(draws)) / draws
        return share, share > MOST + 2 * math.sqrt(MOST * (1 - MOST) / draws)


def absolute(kind: str, truth: float, draw: Draw, random: Random, size: int) -> bool:
    bound = truth + HAIR if kind in ("min", "worst-slice") else truth - HAIR
    return gate(draw(random, size), {kind: {"x": bound}}).outcome == "pass"


def relative(kind: str, change: float, draw: PairOf, random: Random, size: int) -> bool:
    """Whether a rule about a change passes; ``change`` is the true drop, rise or ratio."""
    before, after = draw(random, size)
    bound = change + HAIR if kind == "min-ratio" else change - HAIR
    name = "x[*]" if after.sections[0].slices else "x"
    return gate(after, {kind: {name: bound}}, before).outcome == "pass"
