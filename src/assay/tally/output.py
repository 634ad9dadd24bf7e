"""One output of a batch, counted by another tally."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from assay.errors import ShapeError, describe
from assay.tally.base import Batch, BatchLayout, InvalidValues, Rule, State, Tally, TensorLayout, shown
from assay.tally.composite import CompositeTally, combine, components


@dataclass(frozen=True)
class OutputTally(Tally):
    """What another tally counts of one output: `preds[:, output]`, `target[:, output]`, and weights of either.

    Args:
        tally: what is counted of it.
        output: which one, from 0.
        outputs: how many there are.
    """

    tally: Tally
    output: int
    outputs: int

    @property
    def chunk_scale(self) -> int:
        return self.tally.chunk_scale

    @property
    def uses_target(self) -> bool:
        return self.tally.uses_target

    @property
    def columns(self) -> frozenset[str]:
        return self.tally.columns

    @property
    def fields(self) -> Mapping[str, Rule]:
        return self.tally.fields

    def check(self, layout: BatchLayout) -> None:
        preds, target = (self._checked(name, getattr(layout, name)) for name in ("preds", "target"))
        assert preds is not None, "a batch has predictions"
        self.tally.check(BatchLayout(preds, target, self._of_weights(layout), layout.columns))

    def _checked(self, name: str, column: TensorLayout | None) -> TensorLayout | None:
        if column is None:
            return None
        if column.tail[:1] != (self.outputs,):
            do = "Dimension 1 counts the outputs"
            raise ShapeError(describe(name, f"shape {shown(column.tail)}", f"(N, {self.outputs}, ...)", do))
        return replace(column, tail=column.tail[1:])

    def _of_weights(self, layout: BatchLayout) -> TensorLayout | None:
        return (
            layout.weights
            if layout.weights is None or not layout.weights.tail
            else self._checked("weights", layout.weights)
        )

    def zero(self, device: torch.device) -> State:
        return self.tally.zero(device)

    def add(self, state: State, batch: Batch) -> None:
        self.tally.add(state, batch.memoize(("output", self.output), self._selected))

    def _selected(self, batch: Batch) -> Batch:
        weights = batch.weights
        return Batch(
            batch.preds[:, self.output],
            self._of_output(batch.target),
            self._of_output(weights) if weights is not None and weights.ndim > 1 else weights,
            cache_elements=batch.cache_elements,
            compiled=batch.compiled,
            columns=batch.columns,
        )

    def _of_output(self, rows: Tensor | None) -> Tensor | None:
        return None if rows is None else rows[:, self.output]

    def canonicalize(self, state: State, rows: int) -> State:
        return self.tally.canonicalize(state, rows)

    def compute(self, state: State) -> Any:
        return self.tally.compute(state)

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        named = f" in output {self.output}"
        return tuple(replace(problem, what=problem.what + named) for problem in self.tally.invalid_values(state))

    def union(self, other: Tally) -> Tally | None:
        if not isinstance(other, OutputTally) or (other.output, other.outputs) != (self.output, self.outputs):
            return None
        both = self.tally.union(other.tally)
        return None if both is None else replace(self, tally=both)

    def extract(self, state: State, wanted: Tally) -> State:
        assert isinstance(wanted, OutputTally), "a union of outputs is asked for one"
        return state if wanted == self else self.tally.extract(state, wanted.tally)


def of_output(tally: Tally, output: int, outputs: int) -> Tally:
    """What a tally counts of one output; of several tallies, what each of them does."""
    if isinstance(tally, CompositeTally):
        return combine(OutputTally(leaf, output, outputs) for leaf in components(tally))
    return OutputTally(tally, output, outputs)
