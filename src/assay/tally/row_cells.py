"""Which cell each row of a batch is in: a slice, or a group of the bootstrap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from assay.native.sums import order_cells


@dataclass(frozen=True, eq=False)
class RowCells:
    """The cell of each row of a batch.

    Args:
        numbers: int64 `(N,)`, from 0, on the device of the states.
        count: how many cells there are.
    """

    numbers: Tensor
    count: int

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def segments(self) -> tuple[Tensor, Tensor]:
        """Where the rows of each cell start, and the rows by cell: for compiled code, in host memory."""
        return order_cells(self.numbers, self.count)

    @cached_property
    def sizes(self) -> Tensor:
        """How many rows each cell has."""
        sizes = self.numbers.new_zeros(self.count)
        return sizes.scatter_add_(0, self.numbers, torch.ones_like(self.numbers))

    def repeated(self, times: int) -> RowCells:
        """The cells of rows of which each row here gives so many, one after the other."""
        if times == 1:
            return self
        return RowCells(self.numbers[:, None].expand(-1, times).reshape(-1), self.count)

    def places(self, width: int, first: int = 0, used: int | None = None) -> Tensor:
        """The places of numbers in a table `(cells, width)` laid out flat, `(N, used)`: those from `first` of each row.

        All of a row by default.
        """
        used = width if used is None else used
        return self.numbers[:, None] * width + torch.arange(first, first + used, device=self.numbers.device)

    def add_to(self, table: Tensor, values: Tensor, first: int = 0) -> None:
        """Add integers or booleans `(N, ...)` to the rows of their cells in `table (cells, ...)`, in place.

        They go to the numbers of a cell from `first` on, laid out flat.
        """
        values = values.reshape(len(self), -1).to(torch.int64)
        places = self.places(table[0].numel(), first, values.shape[1])
        table.view(-1).scatter_add_(0, places.view(-1), values.reshape(-1))
