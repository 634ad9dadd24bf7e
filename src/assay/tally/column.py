"""A named column of a batch, counted by another tally as its `preds`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from assay.tally.base import Batch, BatchLayout, InvalidValues, Rule, State, Tally
from assay.tally.composite import CompositeTally, combine, components


@dataclass(frozen=True)
class ColumnTally(Tally):
    """What another tally counts of the rows in a column: those that an encoder made of raw samples.

    Args:
        tally: what is counted of them; it takes no target.
        column: the name of the column.
    """

    tally: Tally
    column: str

    @property
    def chunk_scale(self) -> int:
        return self.tally.chunk_scale

    @property
    def uses_target(self) -> bool:
        return False

    @property
    def columns(self) -> frozenset[str]:
        return self.tally.columns | {self.column}

    @property
    def fields(self) -> Mapping[str, Rule]:
        return self.tally.fields

    def check(self, layout: BatchLayout) -> None:
        self.tally.check(BatchLayout(layout.columns[self.column], None, layout.weights, layout.columns))

    def zero(self, device: torch.device) -> State:
        return self.tally.zero(device)

    def add(self, state: State, batch: Batch) -> None:
        self.tally.add(state, batch.memoize(("column", self.column), self._selected))

    def _selected(self, batch: Batch) -> Batch:
        return Batch(
            batch.columns[self.column],
            None,
            batch.weights,
            cache_elements=batch.cache_elements,
            compiled=batch.compiled,
            columns=batch.columns,
        )

    def canonicalize(self, state: State, rows: int) -> State:
        return self.tally.canonicalize(state, rows)

    def compute(self, state: State) -> Any:
        return self.tally.compute(state)

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        return self.tally.invalid_values(state)

    def union(self, other: Tally) -> Tally | None:
        if not isinstance(other, ColumnTally) or other.column != self.column:
            return None
        both = self.tally.union(other.tally)
        return None if both is None else replace(self, tally=both)

    def extract(self, state: State, wanted: Tally) -> State:
        assert isinstance(wanted, ColumnTally), "a union of what is counted of a column is asked for a part of it"
        return state if wanted == self else self.tally.extract(state, wanted.tally)


def of_column(tally: Tally, column: str) -> Tally:
    """What a tally counts of the rows in a column; of several tallies, what each of them does."""
    if isinstance(tally, CompositeTally):
        return combine(ColumnTally(leaf, column) for leaf in components(tally))
    return ColumnTally(tally, column)
