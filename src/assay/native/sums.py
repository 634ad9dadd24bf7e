"""The compiled form of `tally.exact.add_columns` for float32: the same limbs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from torch import Tensor

from assay.native.library import call


def add_products(limbs: Tensor, factors: Sequence[Tensor], origin: int) -> None:
    """Add the sums over rows of the products of columns to limbs, in place; products that are not finite are left out.

    Args:
        limbs: int64 of shape `(outputs, words)`, contiguous.
        factors: one to three float32 tensors of shape `(rows, outputs)`.
        origin: the first bit of the limbs weighs `2 ** origin`.
    """
    number, (rows, outputs) = len(factors), factors[0].shape
    starts = (ctypes.c_void_p * number)(*(factor.data_ptr() for factor in factors))
    strides = [(ctypes.c_int64 * number)(*(factor.stride(axis) for factor in factors)) for axis in (0, 1)]
    call("add_products", limbs, limbs.shape[-1], origin, number, rows, outputs, starts, *strides)


def count_special(special: Tensor, column: Tensor) -> None:
    """Add to `special`, int64 of shape `(outputs, 3)`, how many values of a column are +inf, -inf and NaN."""
    call("count_special", special, *column.shape, column, *column.stride())
