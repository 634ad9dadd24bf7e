"""The compiled form of `tally.exact.add_columns` for float32: the same limbs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from assay.native.library import call

_BLOCK_BYTES = 8 * 1024 + 64  # of the struct `block` in sums.c


class ProductSums:
    """Sums over rows of products of float32 columns of shape `(rows, outputs)`, all added in one pass over the rows."""

    def __init__(self) -> None:
        self._columns: list[Tensor] = []
        self._places: dict[int, int] = {}
        self._described: list[int] = []
        self._products: list[int] = []

    def count_special(self, column: Tensor, special: Tensor, nonfinite: Tensor | None = None) -> None:
        """Count the values of a column that are +inf, -inf and NaN.

        Args:
            column: the column.
            special: where each kind is counted: int64 of shape `(outputs, 3)`, contiguous.
            nonfinite: where all are counted: int64 of shape `(outputs,)`, contiguous.
        """
        self._append(column, special.data_ptr(), 0 if nonfinite is None else nonfinite.data_ptr())

    def add(self, limbs: Tensor, factors: Sequence[Tensor], origin: int) -> None:
        """Add the sums of the products of columns to limbs; products that are not finite are left out.

        Args:
            limbs: int64 of shape `(outputs, words)`, contiguous.
            factors: one to three columns.
            origin: the first bit of the limbs weighs `2 ** origin`.
        """
        places = [self._places[id(each)] if id(each) in self._places else self._append(each) for each in factors]
        self._products += [limbs.data_ptr(), limbs.shape[-1], origin, len(places), *places, *[0] * (3 - len(places))]

    def _append(self, column: Tensor, special: int = 0, nonfinite: int = 0) -> int:
        place = self._places.setdefault(id(column), len(self._columns))
        self._columns.append(column)
        self._described += [column.data_ptr(), *column.stride(), special, nonfinite]
        return place

    def run(self) -> None:
        """Count and add everything that was asked for."""
        count, (rows, outputs) = len(self._columns), self._columns[0].shape
        blocks = torch.empty(count * _BLOCK_BYTES, dtype=torch.uint8)
        products = len(self._products) // 7
        call("sum_products", rows, outputs, count, _array(self._described), products, _array(self._products), blocks)


def _array(numbers: Sequence[int]) -> object:
    return (ctypes.c_int64 * len(numbers))(*numbers)
