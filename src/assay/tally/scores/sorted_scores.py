"""Scores of the same rows, sorted once for all that is counted of them: slices by several columns, and their groups."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.native import rankings as native
from assay.native.library import takes
from assay.tally.scores.labelled_scores import ScoreSpec

MOST_KEPT = 1 << 27
"""Places of sorted rows that are kept, in 4 bytes each; of more, each ranking is sorted when it is asked for."""

MOST_PAIRS = 1 << 22
"""Of cells in two divisions of the rows, which are numbered by a table."""

Cells = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class RowsOfBatch:
    """Stands for the rows of one batch, in all stores that keep them.

    Attributes:
        sorted_rows: what is sorted of rows that begin with these, by which rows follow.
        keepers: the stores whose rows begin with these.
    """

    sorted_rows: dict[Hashable, SortedScores] = field(default_factory=dict, repr=False)
    keepers: WeakSet[Any] = field(default_factory=WeakSet, repr=False)


class SortedScores:
    """Rows, for each class or label from the highest score down.

    A sorted row is known by its joint cell instead of its number: a small table then says which cell it is in of a
    division of the rows, where a list of all rows would be read all over.

    Args:
        data: how scores and labels are given.
        column: gives the scores and the targets in host memory, by their names.
        divisions: for each way in which the rows are divided the cell of each row.
    """

    def __init__(self, data: ScoreSpec, column: Callable[[str], Tensor], divisions: Sequence[Cells]) -> None:
        self._data, self._column, self._divisions = data, column, divisions
        self._tables: list[Cells | None] = []
        self._orders: list[NDArray[np.uint32]] = []

    def area_sums(self, cells: Cells, part_of: Cells) -> NDArray[np.int64] | None:
        """What cells contribute to areas under ROC curves; None where compiled code does not take the scores.

        Args:
            cells: the cell of each row: one of the divisions.
            part_of: the part of each cell, whose samples the areas are of.

        Returns:
            Integers of shape `(classes or labels, cells, 4)`, see `Tally.area_sums`.
        """
        orders = self._orders or self._sorted_by_class()
        if orders is None:
            return None
        of_division = zip(self._divisions, self._tables, strict=True)
        table = next((each for division, each in of_division if division is cells), None)
        if table is None:
            return SortedScores(self._data, self._column, [cells]).area_sums(cells, part_of)
        return np.stack([native.area_sums_of_cells(order, table, part_of) for order in orders])

    def _sorted_by_class(self) -> Iterator[NDArray[np.uint32]] | list[NDArray[np.uint32]] | None:
        """The joint cells of the rows for each class or label, which are kept unless they are many."""
        scores, target = self._column("scores"), self._column("target")
        if not takes(scores):
            return None
        joint, self._tables = joint_cells(self._divisions)
        found = self._sorted(scores, target, torch.from_numpy(joint))
        if scores.numel() > MOST_KEPT:
            return found
        self._orders = list(found)
        return self._orders

    def _sorted(self, scores: Tensor, target: Tensor, joint: Tensor) -> Iterator[NDArray[np.uint32]]:
        for group in range(self._data.groups):
            yield native.order_scores(scores[:, group], *self._data.positives(target, group), joint)


def joint_cells(divisions: Sequence[Cells]) -> tuple[Cells, list[Cells | None]]:
    """Numbers of the cells that rows are in together.

    Args:
        divisions: for each way in which the rows are divided the cell of each row.

    Returns:
        The number of each row; and for each division the cell of each number, None where there would be too many.

    Example:
        >>> joint_cells([np.array([0, 1, 1], np.int32), np.array([0, 0, 1], np.int32)])
        (array([0, 1, 2], dtype=int32), [array([0, 1, 1], dtype=int32), array([0, 0, 1], dtype=int32)])
    """
    counts = [int(cells.max(initial=0)) + 1 for cells in divisions]
    first, *others = sorted(range(len(divisions)), key=counts.__getitem__, reverse=True)
    tables: list[Cells | None] = [None] * len(divisions)
    joint, tables[first] = divisions[first], np.arange(counts[first], dtype=np.int32)
    count = counts[first]
    for k in others:
        if count * counts[k] <= MOST_PAIRS:
            joint, pairs = native.join_cells(joint, divisions[k], count, counts[k])
            tables = [None if table is None else table[pairs // counts[k]] for table in tables]
            tables[k], count = (pairs % counts[k]).astype(np.int32), len(pairs)
    return joint, tables
