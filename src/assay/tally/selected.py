"""A column of a batch, counted by another tally."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from assay.errors import ShapeError, describe
from assay.tally.base import Batch, Column, Layout, Problem, Rule, State, Tally, shown
from assay.tally.together import Together, leaves, together


@dataclass(frozen=True)
class Selected(Tally):
    """What another tally counts of one column: `preds[:, column]`, `target[:, column]`, and weights of either.

    Args:
        tally: what is counted of it.
        column: which column, from 0.
        columns: how many there are.
    """

    tally: Tally
    column: int
    columns: int

    @property
    def chunk_scale(self) -> int:
        return self.tally.chunk_scale

    @property
    def reads_target(self) -> bool:
        return self.tally.reads_target

    @property
    def fields(self) -> Mapping[str, Rule]:
        return self.tally.fields

    def check(self, layout: Layout) -> None:
        preds, target = (self._checked(name, getattr(layout, name)) for name in ("preds", "target"))
        assert preds is not None, "a batch has predictions"
        self.tally.check(Layout(preds, target, self._of_weights(layout)))

    def _checked(self, name: str, column: Column | None) -> Column | None:
        if column is None:
            return None
        if column.tail[:1] != (self.columns,):
            do = "Dimension 1 counts the outputs"
            raise ShapeError(describe(name, f"shape {shown(column.tail)}", f"(N, {self.columns}, ...)", do))
        return replace(column, tail=column.tail[1:])

    def _of_weights(self, layout: Layout) -> Column | None:
        return (
            layout.weights
            if layout.weights is None or not layout.weights.tail
            else self._checked("weights", layout.weights)
        )

    def zero(self, device: torch.device) -> State:
        return self.tally.zero(device)

    def add(self, state: State, batch: Batch) -> None:
        self.tally.add(state, batch.once(("column", self.column), self._selected))

    def _selected(self, batch: Batch) -> Batch:
        weights = batch.weights
        return Batch(
            batch.preds[:, self.column],
            self._column(batch.target),
            self._column(weights) if weights is not None and weights.ndim > 1 else weights,
            cached=batch.cached,
            compiled=batch.compiled,
        )

    def _column(self, rows: Tensor | None) -> Tensor | None:
        return None if rows is None else rows[:, self.column]

    def settle(self, state: State, rows: int) -> State:
        return self.tally.settle(state, rows)

    def read(self, state: State) -> Any:
        return self.tally.read(state)

    def problems(self, state: State) -> Sequence[Problem]:
        named = f" in column {self.column}"
        return tuple(replace(problem, what=problem.what + named) for problem in self.tally.problems(state))

    def join(self, other: Tally) -> Tally | None:
        if not isinstance(other, Selected) or (other.column, other.columns) != (self.column, self.columns):
            return None
        both = self.tally.join(other.tally)
        return None if both is None else replace(self, tally=both)

    def part(self, state: State, wanted: Tally) -> State:
        assert isinstance(wanted, Selected), "a join of columns is asked for a column"
        return state if wanted == self else self.tally.part(state, wanted.tally)


def of_column(tally: Tally, column: int, columns: int) -> Tally:
    """What a tally counts of one column; of several tallies, what each of them does."""
    if isinstance(tally, Together):
        return together(Selected(leaf, column, columns) for leaf in leaves(tally))
    return Selected(tally, column, columns)
