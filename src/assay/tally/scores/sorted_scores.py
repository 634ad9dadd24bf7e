"""Scores of the same rows, sorted once for all that is counted of them: slices by several columns, and their groups."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from assay.native import rankings as native
from assay.native.library import takes
from assay.tally.scores.labelled_scores import ScoreSpec

MOST_KEPT = 1 << 27
"""Places of sorted rows that are kept, in 4 bytes each; of more, each ranking is sorted when it is asked for."""


@dataclass(frozen=True, eq=False)
class RowsOfBatch:
    """Stands for the rows of one batch, in all stores that keep them.

    Attributes:
        sorted_rows: what is sorted of rows that begin with these, by which rows follow.
    """

    sorted_rows: dict[Hashable, SortedScores] = field(default_factory=dict, repr=False)


class SortedScores:
    """Rows, for each class or label from the highest score down.

    Args:
        data: how scores and labels are given.
        column: gives the scores and the targets in host memory, by their names.
    """

    def __init__(self, data: ScoreSpec, column: Callable[[str], Tensor]) -> None:
        self._data, self._column = data, column
        self._orders: list[NDArray[np.uint32]] = []

    @staticmethod
    def shared(data: ScoreSpec, batches: Sequence[RowsOfBatch], column: Callable[[str], Tensor]) -> SortedScores:
        """The rows of some batches, sorted once for all stores of the same batches in the same order."""
        first, *others = batches
        return first.sorted_rows.setdefault((data, *others), SortedScores(data, column))

    def area_sums(self, cells: NDArray[np.int32], part_of: NDArray[np.int32]) -> NDArray[np.int64] | None:
        """What cells contribute to areas under ROC curves; None where compiled code does not take the scores.

        Args:
            cells: the cell of each row.
            part_of: the part of each cell, whose samples the areas are of.

        Returns:
            Integers of shape `(classes or labels, cells, 4)`, see `Tally.area_sums`.
        """
        if not self._orders:
            scores, target = self._column("scores"), self._column("target")
            if not takes(scores) or len(scores) >= native.MOST_ORDERED:
                return None
            found = self._sorted(scores, target)
            if scores.numel() > MOST_KEPT:
                return np.stack([native.area_sums_of_cells(order, cells, part_of) for order in found])
            self._orders = list(found)
        return np.stack([native.area_sums_of_cells(order, cells, part_of) for order in self._orders])

    def _sorted(self, scores: Tensor, target: Tensor) -> Iterator[NDArray[np.uint32]]:
        for group in range(self._data.groups):
            yield native.order_scores(scores[:, group], *self._data.positives(target, group))
