"""The compiled form of `tally.exact.add_columns` for float32 and float64: the same limbs."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from enum import IntEnum

import torch
from torch import Tensor

from assay.native.library import call, compiled_function

_BLOCK_BYTES = 12 * 1024 + 128  # of the struct `block` in blocks.h
COLUMN_WORDS, _PRODUCT_WORDS = 9, 8  # of the structs `column` and `product`
DTYPES = (torch.float32, torch.float64)
"""Of the columns that it takes."""


class Kind(IntEnum):
    """What a column is: given, or computed by compiled code from other columns. `enum kind` in blocks.h."""

    FLOATS = 0
    DOUBLES = 1
    SCORES = 2
    """float32 in [0, 1]; others are counted."""
    TARGETS = 3
    """1 where an int64 is 1, 0 where it is 0; others are counted."""
    LARGER = 4
    """The larger of two columns where they are unequal, elsewhere 0."""
    SMALLER = 5
    """The smaller of two columns with the other sign where they are unequal, elsewhere 0."""
    SIGN = 6
    """-1, 0 or 1: the sign of a column."""
    PERCENTAGE = 7
    """`PercentageError` of two columns."""
    SYMMETRIC = 8
    """`SymmetricPercentageError` of two columns."""
    POWER = 9
    """`AbsolutePower` of two columns, with a whole exponent."""


class ProductSums:
    """Sums over rows of products of columns of shape `(rows, outputs)`, all added in one pass over the rows."""

    def __init__(self) -> None:
        self._columns: list[Tensor] = []
        self._places: dict[int, int] = {}
        self._described: list[int] = []
        self._products: list[int] = []

    def count_special(self, column: Tensor, special: Tensor, nonfinite: Tensor | None = None) -> None:
        """Count the values of a column that are +inf, -inf and NaN.

        Args:
            column: the column.
            special: where each kind is counted: int64 of shape `(..., outputs, 3)`, contiguous.
            nonfinite: where all are counted: int64 of shape `(outputs,)`, contiguous.
        """
        self._append(column, special.data_ptr(), 0 if nonfinite is None else nonfinite.data_ptr(), column.shape[1])

    def add(self, limbs: Tensor, factors: Sequence[Tensor], origin: int) -> None:
        """Add the sums of the products of columns to limbs; products that are not finite are left out.

        Args:
            limbs: int64 of shape `(..., outputs, words)`, contiguous.
            factors: one to three columns.
            origin: the first bit of the limbs weighs `2 ** origin`.
        """
        places = [self._places[id(each)] if id(each) in self._places else self._append(each) for each in factors]
        outputs, words = limbs.shape[-2:]
        self._products += [limbs.data_ptr(), *product_of(words, origin, places, outputs * words)]

    def _append(self, column: Tensor, special: int = 0, nonfinite: int = 0, outputs_apart: int = 0) -> int:
        place = self._places.setdefault(id(column), len(self._columns))
        self._columns.append(column)
        self._described += column_of(column, special, nonfinite, outputs_apart)
        return place

    def run(self, segments: tuple[Tensor, Tensor] | None = None) -> None:
        """Count and add everything that was asked for; with what `order_cells` gives, to the cell of each row.

        Limbs and counts then have a first dimension for the cells.
        """
        sum_products(self._columns[0].shape, self._described, self._products, segments)


def column_of(column: Tensor, special: int = 0, nonfinite: int = 0, outputs_apart: int = 0) -> list[int]:
    """The description of a column, with the addresses of where what is not finite is counted.

    From the counts of a cell of rows to those of the next one it is so many outputs.
    """
    kind = Kind.DOUBLES if column.dtype == torch.float64 else Kind.FLOATS
    return [column.data_ptr(), *column.stride(), special, nonfinite, outputs_apart, kind, 0, 0]


def checked_column(column: Tensor, kind: Kind, invalid: Tensor) -> list[int]:
    """The description of a contiguous column of scores or targets; `invalid`, int64, counts those that are none."""
    return [column.data_ptr(), 1, 0, 0, invalid.data_ptr(), 0, kind, 0, 0]


def computed_column(
    kind: Kind, places: Sequence[int], counts: Sequence[int] = (0, 0, 0), exponent: int = 0
) -> list[int]:
    """The description of a column that is computed from the columns at one or two other places.

    Args:
        kind: what it is.
        places: those of the columns.
        counts: where what is not finite is counted, as the last three arguments of `column_of`.
        exponent: of a power.
    """
    return [0, exponent, 0, *counts, kind, places[0], places[-1]]


def product_of(words: int, origin: int, places: Sequence[int], words_apart: int = 0) -> list[int]:
    """The description of the product of the columns at these places, behind the address of its limbs.

    From the limbs of a cell of rows to those of the next one it is so many words.
    """
    return [words, origin, words_apart, len(places), *places, *[0] * (3 - len(places))]


def sum_products(
    shape: Sequence[int],
    columns: Sequence[int],
    products: Sequence[int],
    segments: tuple[Tensor, Tensor] | None = None,
) -> None:
    """Add the sums of products of columns of one shape to their limbs, all described as sums.c has it.

    Args:
        shape: rows and outputs.
        columns: for each column what `column_of` gives.
        products: for each product the address of its limbs and what `product_of` gives.
        segments: what `order_cells` gives; by default all rows are of one cell.
    """
    count, (rows, outputs) = len(columns) // COLUMN_WORDS, shape
    blocks = torch.empty(count * _BLOCK_BYTES, dtype=torch.uint8, device="cpu")
    described = outputs, count, _packed(columns), len(products) // _PRODUCT_WORDS, _packed(products), blocks
    if segments is None:
        call("sum_products", rows, *described)
    else:
        starts, order = segments
        call("sum_cells", len(starts) - 1, starts, order, *described)


class PreparedSums:
    """The sums of products of contiguous columns of one shape, which differ in their addresses from call to call.

    Args:
        rows: how many rows each column has; there is one output.
        columns: as for `sum_products`.
        products: as for `sum_products`.
        owners: the tensors whose addresses are in the descriptions, but for the columns.
    """

    def __init__(self, rows: int, columns: Sequence[int], products: Sequence[int], owners: Sequence[Tensor]) -> None:
        self._columns, products = array("q", columns), array("q", products)
        count = len(columns) // COLUMN_WORDS
        blocks = torch.empty(count * _BLOCK_BYTES, dtype=torch.uint8, device="cpu")
        self._kept = products, blocks, owners  # as long as their addresses
        described = self._columns.buffer_info()[0], len(products) // _PRODUCT_WORDS, products.buffer_info()[0]
        self._arguments = rows, 1, count, *described, blocks.data_ptr()
        self._sum = compiled_function("sum_products", len(self._arguments))

    def add(self, addresses: Sequence[int]) -> None:
        """Add the sums of the columns at these addresses."""
        for k, address in enumerate(addresses):
            self._columns[COLUMN_WORDS * k] = address
        self._sum(*self._arguments)


def order_cells(cells: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Where the rows of each of `count` cells start among the rows by cell, `(count + 1,)`; and those rows, `(N,)`.

    `cells` is int64 of shape `(N,)`, in host memory: the cell of each row.
    """
    starts, order = torch.zeros(count + 1, dtype=torch.int64, device="cpu"), torch.empty_like(cells)
    call("order_cells", len(cells), cells.contiguous(), count, starts, order)
    return starts, order


def _packed(numbers: Sequence[int]) -> bytes:
    """An array of int64; made so it takes a tenth of the time that one of ctypes does."""
    return struct.pack(f"{len(numbers)}q", *numbers)
