"""What is known of a number, and what tests of pairs are made of: shares of yes or no, and differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TypeAlias

import numpy as np

from assay.report.inference.measured_value import MeasuredValue
from assay.report.per_sample.aligned_chunks import are_in_order, reordered
from assay.report.per_sample.packed_array import Array
from assay.stats.hypothesis_tests import agree
from assay.stats.power import Spread

UP_TO = 10_000
"""Samples from which on paired differences are tested by Student's t: their mean is as good as normal."""

UP_TO_IN_SLICES = 1_000
"""The same where a mean is one of many, those of the slices of a section: flipping signs for each would take long."""

MEAN = "Student's interval, corrected for skewness"
"""How the interval of a mean of numbers is found."""

SHARE_INTERVAL = {True: "Clopper-Pearson interval", False: "Wilson's interval"}
"""How that of a share is found: as gates take it, and as reports show it."""
SHARES_INTERVAL = {True: "Newcombe's interval of Clopper-Pearson's", False: "Newcombe's interval"}
"""How that of the difference of two shares of other samples is found, likewise."""


@dataclass(frozen=True)
class Evidence:
    """What is known of a number.

    Args:
        lower: the lower end of its interval, or None.
        upper: the upper end.
        p: how likely a difference at least as large is, were there none; None where that was not tested.
        effect: the size of the difference on the scale that ``scale`` names.
        scale: what the effect size is.
        method: how interval and p were found.
        paired: whether the same samples were compared.
        note: what could not be done, and why.
        risky: the end of the interval that may miss more often than its level says: ``"lower"``, ``"upper"`` or
            ``"both"``; empty where neither does. A gate passes nothing by such an end.
        spread: how much the difference varies, which says what could have been found.
    """

    lower: float | None = None
    upper: float | None = None
    p: float | None = None
    effect: float | None = None
    scale: str = ""
    method: str = ""
    paired: bool = False
    note: str = ""
    risky: str = ""
    spread: Spread | None = None

    def agreeing(self, confidence_level: float) -> Evidence:
        """The same with a p that is small where the interval leaves out 0, and nowhere else.

        See `assay.stats.hypothesis_tests.agree`.
        """
        if self.p is None or self.lower is None or self.upper is None:
            return self
        p, lower, upper = map(float, agree(self.p, self.lower, self.upper, confidence_level))
        raised = f"p is at least {1 - confidence_level:.2g}, as the interval holds 0" if p > self.p else ""
        return replace(self, p=p, lower=lower, upper=upper, note="; ".join(filter(None, (self.note, raised))))


Shares: TypeAlias = tuple[tuple[Array, Array], tuple[Array, Array]] | None


def shares_of(a: MeasuredValue, b: MeasuredValue) -> Shares:
    """Both values as shares of samples; None where one is none."""
    first, second = a.share(), b.share()
    if (first is None) != (second is None):
        first, second = a.share(lenient=True), b.share(lenient=True)
    return None if first is None or second is None else (first, second)


@dataclass(frozen=True)
class PairedShares:
    """Which samples are yes first and no second, the other way round, yes in both, and among which samples."""

    down: Array
    up: Array
    both: Array
    among: Array


def paired_counts(shares: Shares, position: Array) -> PairedShares | None:
    """Two shares among the same samples; None where they are none."""
    if shares is None:
        return None
    (a, among), (b, other) = shares[0], (reordered(each, position) for each in shares[1])
    return PairedShares(a & ~b, ~a & b, a & b, among) if np.array_equal(among, other) else None


def differences_of(a: MeasuredValue, b: MeasuredValue, position: Array) -> Callable[[], Iterator[Array]]:
    """What gives the second minus the first, sample by sample, some of them at a time."""
    order = None if are_in_order(position) else np.concatenate(list(b.term_chunks()))

    def differences() -> Iterator[Array]:
        start = 0
        others = repeat(None) if order is not None else b.term_chunks()
        for chunk, other in zip(a.term_chunks(), others, strict=order is None):
            second = order[position[start : start + len(chunk)]] if other is None and order is not None else other
            yield np.asarray(second) - chunk
            start += len(chunk)

    return differences


def joined_risks(first: str, second: str) -> str:
    turned = {"lower": "upper", "upper": "lower"}
    ends = {second, turned.get(first, first)} - {""}
    return "both" if len(ends) > 1 else "".join(ends)


def none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value
