"""The sums of counts that rows give: of a batch by itself plain integers, as no exact sum of floats is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch

from assay.tally.base import Batch, InvalidValues, State
from assay.tally.sums import exact
from assay.tally.sums.row_sums import RowSums, RowTotals


@dataclass(frozen=True)
class CountSums(RowSums):
    """`RowSums` of a term that gives one row of int64 a sample, whose sums over a batch surely are below `2 ** 63`.

    None is invalid. The state is that of `RowSums`. That of one batch without weights, whose value is computed alone,
    has `count` of shape `(1,)`, and the sums in `integers` of shape `(width,)`.
    """

    def zero_of_batch(self, device: torch.device) -> State:
        if self.weighted:
            return self.zero(device)
        sizes = {"count": 1, "integers": self.term.sums[0].width}
        return {name: torch.zeros(size, dtype=torch.int64, device=device) for name, size in sizes.items()}

    def absorb(self, state: State, other: State) -> None:
        if "integers" not in other:
            super().absorb(state, other)
            return
        state["count"] += other["count"]
        for limbs, value in zip(state["sum0"][0], other["integers"].tolist(), strict=True):
            exact.add_integer(limbs, value, -exact.origin(1))

    def add(self, state: State, batch: Batch) -> None:
        if "integers" not in state:
            super().add(state, batch)
            return
        (values,) = self.term(batch).values
        state["count"] += len(values)
        state["integers"] += values.sum(0)

    def canonicalize(self, state: State, rows: int) -> State:
        return state if "integers" in state else super().canonicalize(state, rows)

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        return () if "integers" in state else super().invalid_values(state)

    def compute(self, state: State) -> RowTotals:
        if "integers" not in state:
            return super().compute(state)
        count = int(state["count"])
        return RowTotals(count, Fraction(count), ([Fraction(value) for value in state["integers"].tolist()],))
