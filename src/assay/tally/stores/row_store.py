"""Rows of any shape, kept whole: for metrics of other libraries, which are given all of them when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from assay.errors import ShapeError, describe
from assay.tally.base import Batch, BatchLayout, Rule, State, Tally, TensorLayout, shown
from assay.tally.conservation import HostCount, Laws, equal
from assay.tally.stores.sample_store import ANY, SampleStore, canonical


@dataclass(frozen=True)
class RowStore(Tally):
    """Every row of the arguments, with their shapes. State: one `SampleStore`, of the size of the data.

    Args:
        preds: the shape of a row of `preds`.
        target: the same of `target`, or None.
        weighted: rows have weights, which are a column, too.
    """

    preds: tuple[int, ...] = ()
    target: tuple[int, ...] | None = ()
    weighted: bool = False
    fields: ClassVar[Mapping[str, Rule]] = {"rows": "samples"}

    @property
    def uses_target(self) -> bool:
        return self.target is not None

    @property
    def _tails(self) -> dict[str, tuple[int, ...]]:
        tails = {"preds": self.preds, "target": self.target, "weights": () if self.weighted else None}
        return {name: tail for name, tail in tails.items() if tail is not None}

    def check(self, layout: BatchLayout) -> None:
        for name, tail in self._tails.items():
            column: TensorLayout | None = getattr(layout, name)
            if column is None or column.tail != tail:
                got = "nothing" if column is None else f"shape {shown(column.tail)}"
                raise ShapeError(describe(name, got, f"shape {shown(tail)}", f"Say another shape of rows for {name}"))
            if column.dtype.is_complex:
                raise ShapeError(describe(name, column.dtype, "real numbers", "Pass torch.view_as_real(...)"))

    def zero(self, device: torch.device) -> State:
        return {"rows": SampleStore({name: TensorLayout(ANY, tail) for name, tail in self._tails.items()})}

    def add(self, state: State, batch: Batch) -> None:
        state["rows"].append(**{name: getattr(batch, name) for name in self._tails})

    def canonicalize(self, state: State, rows: int) -> State:
        return {"rows": canonical(state["rows"])}

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from equal("every row is kept", given.rows, state["rows"].rows)

    def compute(self, state: State) -> tuple[Tensor, ...]:
        """The columns, on the CPU."""
        store: SampleStore = state["rows"]
        return tuple(store.column(name) for name in self._tails)
