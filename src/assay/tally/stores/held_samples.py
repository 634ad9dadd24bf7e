"""The samples of one batch, for a value that is computed at once."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.tally.base import State
from assay.tally.stores.sample_store import SampleStore, WriteRows, common_dtype


class HeldSamples(SampleStore):
    """A `SampleStore` of one batch in host memory, which it neither checks nor copies before a column is read."""

    is_held = True
    _has_own = False
    """Whether the tensors are the store's own, and not the caller's."""

    def append(self, **tensors: Tensor) -> None:
        """Have these rows, of the columns in any order; nobody changes them while they are read."""
        self._hold(tensors, "host", len(next(iter(tensors.values()))))

    def append_by(self, rows: int, write: WriteRows) -> None:
        """Have rows that a function writes, as `SampleStore.append_by` says."""
        tensors = {
            name: torch.empty(rows, *column.tail, dtype=column.dtype, device="cpu")
            for name, column in self.columns.items()
        }
        write(tensors, 0, 0, rows)
        self._has_own = True
        self._hold(tensors, "host", rows)

    def column(self, name: str) -> Tensor:
        """A column that is not the caller's, in the dtype in which a `SampleStore` gives it."""
        found = self._held_column(name)
        if found is None:
            return super().column(name)
        is_given = not self._has_own and found.data_ptr() == self._blocks[0].tensors[name].data_ptr()
        return found.clone() if is_given else found

    def _held_column(self, name: str) -> Tensor | None:
        if len(self._blocks) != 1:
            return None
        tensor, column = self._blocks[0].tensors[name], self.columns[name]
        return tensor.to(common_dtype(column.dtype, tensor.dtype))

    def blocks(self) -> list[dict[str, Tensor]]:
        """The rows, which fill their blocks."""
        return [block.tensors for block in self._blocks]

    def clear(self) -> None:
        """Have no rows, as before the first ones."""
        self.rows, self._blocks, self._has_own = 0, [], False
        self._bytes["host"] = 0

    def emptied(self) -> HeldSamples:
        """A store like this one, without rows."""
        return HeldSamples(self.columns)


def held(zero: State) -> State:
    """A new state without samples, whose stores take those of one batch as they are; `zero` stays as it is."""
    return {
        name: HeldSamples(each.columns) if isinstance(each, SampleStore) else each.clone()
        for name, each in zero.items()
    }
