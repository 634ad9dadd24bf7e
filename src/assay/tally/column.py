"""A named column of a batch, counted by another tally as its `preds`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

from assay.tally.base import Batch, BatchLayout, Tally
from assay.tally.conservation import HostCount
from assay.tally.part import PartTally, of_part


@dataclass(frozen=True)
class ColumnTally(PartTally):
    """What another tally counts of the rows in a column: those that an encoder made of raw samples.

    Args:
        tally: what is counted of them; it takes no target.
        column: the name of the column.
    """

    column: str

    uses_target = False

    @property
    def place(self) -> tuple[Hashable, ...]:
        return "column", self.column

    @property
    def columns(self) -> frozenset[str]:
        return self.tally.columns | {self.column}

    def check(self, layout: BatchLayout) -> None:
        self.tally.check(BatchLayout(layout.columns[self.column], None, layout.weights, layout.columns))

    def given_of_part(self, given: HostCount) -> HostCount:
        return HostCount(given.rows)

    def select(self, batch: Batch) -> Batch:
        return replace(batch, preds=batch.columns[self.column], target=None, ragged={}, _memo={})


def of_column(tally: Tally, column: str) -> Tally:
    """What a tally counts of the rows in a column; of several tallies, what each of them does."""
    return of_part(tally, lambda each: ColumnTally(each, column))
