"""Which cell each row of a batch is in: a slice, or a group of the bootstrap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.native.library import library
from assay.native.sums import order_cells


@dataclass(frozen=True, eq=False)
class RowCells:
    """The cell of each row of a batch.

    Args:
        numbers: int64 `(N,)`, from 0, on the device of the states.
        count: how many cells there are.
        known: the same numbers where the CPU knows them, so that they need not be read from a device.
    """

    numbers: Tensor
    count: int
    known: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def on_host(self) -> NDArray[np.int64]:
        """The cell of each row, on the CPU."""
        return self.numbers.numpy() if self.known is None else self.known

    @cached_property
    def segments(self) -> tuple[Tensor, Tensor]:
        """Where the rows of each cell start, `(cells + 1,)`, and the rows by cell, `(N,)`: in host memory."""
        if library() is not None:
            return order_cells(torch.from_numpy(self.on_host), self.count)
        ends = np.cumsum(np.bincount(self.on_host, minlength=self.count))
        order = np.argsort(self.on_host, kind="stable")
        return torch.from_numpy(np.append(0, ends)), torch.from_numpy(order)

    @cached_property
    def sizes(self) -> Tensor:
        """How many rows each cell has."""
        sizes = self.numbers.new_zeros(self.count)
        return sizes.scatter_add_(0, self.numbers, torch.ones_like(self.numbers))

    def repeated(self, times: int) -> RowCells:
        """The cells of rows of which each row here gives so many, one after the other."""
        if times == 1:
            return self
        known = None if self.known is None else self.known.repeat(times)
        return RowCells(self.numbers[:, None].expand(-1, times).reshape(-1), self.count, known)

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
