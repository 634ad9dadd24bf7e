"""Conservation laws: what a state must satisfy, given what the host counted of the batches from their shapes.

Counts are exact, so they can be checked: a confusion matrix adds up to the targets, no count is negative, a sum of
squares is not below what the sum allows. The host knows how many rows and elements it handed over without reading a
value. A state that breaks a law was not counted by the rules of its tally: the device, a copy or a file is at fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import Tensor

if TYPE_CHECKING:
    from assay.tally.base import State


@dataclass(frozen=True)
class HostCount:
    """What the host counted of batches, from their shapes.

    Attributes:
        rows: how many rows of dimension 0 there were.
        preds: how many elements of `preds`; None where that is not known, as of states from files of older versions.
        targets: how many elements of `target`; None likewise, and without a target.
    """

    rows: int
    preds: int | None = None
    targets: int | None = None

    @staticmethod
    def of(rows: HostCount | int) -> HostCount:
        """A count, or one of which only the rows are known."""
        return HostCount(rows) if isinstance(rows, int) else rows

    def times(self, batches: int) -> HostCount:
        """The count of so many batches like these."""
        preds, targets = (None if each is None else each * batches for each in (self.preds, self.targets))
        return HostCount(self.rows * batches, preds, targets)

    def __add__(self, other: HostCount) -> HostCount:
        """The count of the batches of both."""
        if not self.rows or not other.rows:  # a count of nothing leaves what the other one knows
            return other if not self.rows else self
        return HostCount(self.rows + other.rows, _sum(self.preds, other.preds), _sum(self.targets, other.targets))


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


NO_ROWS = HostCount(0, 0, 0)


class BrokenLaw(NamedTuple):
    """A conservation law that a state breaks.

    Attributes:
        law: the law, as a statement that should hold.
        expected: what the law gives.
        got: what the state has.
    """

    law: str
    expected: str
    got: str


Laws = Iterator[BrokenLaw]


def not_negative(state: State, *names: str) -> Laws:
    """No count is negative, in these fields where they are there."""
    for name in names:
        counts = state.get(name)
        if isinstance(counts, Tensor) and counts.numel():
            least = int(counts.numpy().min())
            if least < 0:
                yield BrokenLaw(f"no count of {name!r} is negative", "0 or more", str(least))


def equal(law: str, expected: int | None, got: int) -> Laws:
    """Two counts are the same; an unknown one is not compared."""
    if expected is not None and expected != got:
        yield BrokenLaw(law, f"{expected:,}", f"{got:,}")


def at_most(law: str, most: int | None, got: int) -> Laws:
    """A count is not above a bound; an unknown one bounds nothing."""
    if most is not None and got > most:
        yield BrokenLaw(law, f"at most {most:,}", f"{got:,}")


def between(law: str, least: int | None, most: int | None, got: int) -> Laws:
    """A count lies between bounds."""
    if least is not None and got < least:
        yield BrokenLaw(law, f"at least {least:,}", f"{got:,}")
    else:
        yield from at_most(law, most, got)


def each_at_most(law: str, most: Any, got: Any) -> Laws:
    """No element of an array is above that of another one."""
    over = np.asarray(got) > np.asarray(most)
    if over.any():
        place = tuple(int(k) for k in np.argwhere(over)[0])
        found, bound = (int(np.broadcast_to(each, over.shape)[place]) for each in (got, most))
        yield BrokenLaw(law, f"at most {bound:,} at {place}", f"{found:,}")


def no_sum_without_counts(law: str, counts: Any, limbs: Tensor) -> Laws:
    """Where nothing was counted, no word of an exact sum is anything but 0; `limbs` has one dimension more."""
    stray = int(np.count_nonzero(limbs.numpy().any(-1) & (np.asarray(counts) == 0)))
    if stray:
        yield BrokenLaw(law, "0 sums where nothing was counted", f"{stray:,}")
