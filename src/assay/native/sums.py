"""The compiled form of `tally.exact.add_columns` for float32: the same limbs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from torch import Tensor

from assay.native.library import address, loaded


def add_products(limbs: Tensor, factors: Sequence[Tensor], origin: int) -> None:
    """Add the sums over rows of the products of columns to limbs, in place; products that are not finite are left out.

    Args:
        limbs: int64 of shape `(outputs, words)`, contiguous.
        factors: one to three float32 tensors of shape `(rows, outputs)`.
        origin: the first bit of the limbs weighs `2 ** origin`.
    """
    number = len(factors)
    rows, outputs = factors[0].shape
    loaded().assay_add_products(
        address(limbs),
        ctypes.c_int64(limbs.shape[-1]),
        ctypes.c_int64(origin),
        ctypes.c_int64(number),
        ctypes.c_int64(rows),
        ctypes.c_int64(outputs),
        (ctypes.c_void_p * number)(*(factor.data_ptr() for factor in factors)),
        (ctypes.c_int64 * number)(*(factor.stride(0) for factor in factors)),
        (ctypes.c_int64 * number)(*(factor.stride(1) for factor in factors)),
    )


def count_special(special: Tensor, column: Tensor) -> None:
    """Add to `special`, int64 of shape `(outputs, 3)`, how many values of a column are +inf, -inf and NaN."""
    rows, outputs = column.shape
    loaded().assay_count_special(
        address(special),
        ctypes.c_int64(rows),
        ctypes.c_int64(outputs),
        address(column),
        ctypes.c_int64(column.stride(0)),
        ctypes.c_int64(column.stride(1)),
    )
