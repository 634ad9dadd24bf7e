"""The compiled form of `exact.add_columns` for float32 in host memory: the same limbs, some ten times as fast.

The library is built from `native.c` when assay is installed on a machine with a C compiler. Without it, or with
`ASSAY_NATIVE=0` in the environment, everything runs in torch, to the same bits.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from assay.tally import exact

MOST_FACTORS = 3


@cache
def library() -> ctypes.CDLL | None:
    """The compiled library, or None where there is none."""
    path = Path(__file__).with_name("_native.so")
    if os.environ.get("ASSAY_NATIVE") == "0" or not path.exists():
        return None
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError:  # built for another machine
        return None
    loaded.assay_add_products.restype = None
    loaded.assay_count_special.restype = None
    return loaded


def takes(columns: Sequence[Tensor]) -> bool:
    """Whether these columns can go to the library. That they are in host memory is for the caller to know."""
    return library() is not None and all(type(c) is Tensor and c.dtype == torch.float32 for c in columns)


def add_products(limbs: Tensor, factors: Sequence[Tensor], order: int) -> None:
    """Add the sums over rows of the products of columns to limbs, in place; products that are not finite are left out.

    Args:
        limbs: int64 of shape `(outputs, num_limbs(order))`, contiguous.
        factors: one to three float32 tensors of shape `(rows, outputs)`.
        order: of the limbs.
    """
    loaded = library()
    assert loaded is not None, "takes() was asked before"
    number = len(factors)
    rows, outputs = factors[0].shape
    loaded.assay_add_products(
        ctypes.c_void_p(limbs.data_ptr()),
        ctypes.c_int64(limbs.shape[-1]),
        ctypes.c_int64(exact.origin(order)),
        ctypes.c_int64(number),
        ctypes.c_int64(rows),
        ctypes.c_int64(outputs),
        (ctypes.c_void_p * number)(*(factor.data_ptr() for factor in factors)),
        (ctypes.c_int64 * number)(*(factor.stride(0) for factor in factors)),
        (ctypes.c_int64 * number)(*(factor.stride(1) for factor in factors)),
    )


def count_special(special: Tensor, column: Tensor) -> None:
    """Add to `special`, int64 of shape `(outputs, 3)`, how many values of a column are +inf, -inf and NaN."""
    loaded = library()
    assert loaded is not None, "takes() was asked before"
    rows, outputs = column.shape
    loaded.assay_count_special(
        ctypes.c_void_p(special.data_ptr()),
        ctypes.c_int64(rows),
        ctypes.c_int64(outputs),
        ctypes.c_void_p(column.data_ptr()),
        ctypes.c_int64(column.stride(0)),
        ctypes.c_int64(column.stride(1)),
    )
