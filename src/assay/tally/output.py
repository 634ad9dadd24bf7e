"""One output of a batch, counted by another tally."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from assay.errors import ShapeError, describe
from assay.tally.base import Batch, BatchLayout, InvalidValues, State, Tally, TensorLayout, shown
from assay.tally.conservation import HostCount
from assay.tally.part import PartTally, of_part


@dataclass(frozen=True)
class OutputTally(PartTally):
    """What another tally counts of one output: `preds[:, output]`, `target[:, output]`, and weights of either.

    Args:
        tally: what is counted of it.
        output: which one, from 0.
        outputs: how many there are.
    """

    output: int
    outputs: int

    @property
    def place(self) -> tuple[Hashable, ...]:
        return "output", self.output, self.outputs

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

    def given_of_part(self, given: HostCount) -> HostCount:
        preds, targets = (None if each is None else each // self.outputs for each in (given.preds, given.targets))
        return HostCount(given.rows, preds, targets)

    def select(self, batch: Batch) -> Batch:
        weights = batch.weights
        return replace(
            batch,
            preds=batch.preds[:, self.output],
            target=self._of_output(batch.target),
            weights=self._of_output(weights) if weights is not None and weights.ndim > 1 else weights,
            ragged={},
            _memo={},
        )

    def _of_output(self, rows: Tensor | None) -> Tensor | None:
        return None if rows is None else rows[:, self.output]

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        named = f" in output {self.output}"
        return tuple(replace(problem, what=problem.what + named) for problem in super().invalid_values(state))


def of_output(tally: Tally, output: int, outputs: int) -> Tally:
    """What a tally counts of one output; of several tallies, what each of them does."""
    return of_part(tally, lambda each: OutputTally(each, output, outputs))
