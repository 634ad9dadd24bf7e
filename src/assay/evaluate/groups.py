"""Samples dealt to groups by a hash of what they are known by: what the bootstrap of tallies draws from.

The group of a sample depends on its id and a seed, on nothing else. So any split over batches and processes counts the
same groups, and the intervals that are drawn from them have the same bits.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from assay.evaluate.account import numbers_of
from assay.evaluate.follow import Array, Rows, Tensors, as_bytes, from_bytes, part_of, prefixed
from assay.evaluate.partition import Partition
from assay.evaluate.pending import Interval, bootstrap
from assay.meter import Meter


class Groups:
    """One meter a group, of the metrics whose intervals are drawn.

    Args:
        like: the meter of these metrics.
        count: how many groups there are.
        seed: which deal.
        alone: whether one process counts everything; then a sample is known by its place in the stream if by nothing
            else.
    """

    def __init__(self, like: Meter, count: int, seed: int, alone: bool) -> None:
        self._like, self._count, self._seed, self._alone = like, count, seed, alone
        self._partition = Partition(like)
        self.nameless = False

    def empty(self) -> Groups:
        """Groups without samples."""
        return Groups(self._like, self._count, self._seed, self._alone)

    def count(self, rows: Rows) -> None:
        """Count rows into the meters of their groups."""
        if rows.ids is not None:
            numbers = numbers_of(rows.ids)
        elif rows.index is not None:
            numbers = rows.index
        else:
            numbers = np.arange(rows.first, rows.first + len(rows))
            self.nameless = not self._alone
        if not self.nameless:
            self._partition.count(rows, dealt(numbers, self._seed, self._count), lambda code: (str(code),))

    def saved(self) -> dict[str, Tensor]:
        """What was counted, as tensors."""
        return {"nameless": as_bytes(self.nameless), **prefixed("meters", self._partition.saved())}

    def load(self, tensors: Tensors) -> None:
        """Add what `saved` gave."""
        self.nameless |= from_bytes(tensors["nameless"])
        self._partition.load(part_of("meters", tensors))

    def intervals(self, level: float, replicates: int) -> dict[str, Interval]:
        """The intervals of all values, by their names; none where it is not known which sample is which."""
        meters = [self._partition.meters[label] for label in sorted(self._partition.meters)]
        return {} if self.nameless or not meters else bootstrap(meters, level, replicates, self._seed)


def dealt(numbers: Array, seed: int, count: int) -> Array:
    """The groups of samples: their numbers, mixed with a seed, modulo the number of groups.

    Args:
        numbers: whole numbers `(N,)`, one a sample.
        seed: another deal for each.
        count: how many groups.

    Source: the finaliser of SplitMix64 (G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators,
    OOPSLA 2014).
    """
    with np.errstate(over="ignore"):
        mixed = _mixed(numbers.astype(np.int64).view(np.uint64) + _mixed(np.array([seed & (2**64 - 1)], np.uint64)))
        return (mixed % np.uint64(count)).astype(np.int64)


def _mixed(numbers: Array) -> Array:
    x = numbers + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
