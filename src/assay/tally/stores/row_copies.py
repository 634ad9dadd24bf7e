"""Rows copied from memory to memory, without an operator of torch, which takes several times as long for few rows."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import memmove

from torch import Tensor

from assay.devices.placement import is_as_read


def copy_rows(columns: Mapping[str, Tensor], row: int, rows: Mapping[str, Tensor], count: int) -> bool:
    """Copy rows into contiguous columns in host memory; false where nothing was copied.

    That is where they have another dtype, shape or device, or do not lie in memory as they are read.

    Args:
        columns: those of the rows, which have room for them.
        row: where the first one goes.
        rows: for each column so many rows.
        count: how many there are, 1 or more.
    """
    copies = []
    for name, into in columns.items():
        tensor = rows.get(name)
        if type(tensor) is not Tensor or tensor.dtype != into.dtype or tensor.device != into.device:
            return False
        if tensor.shape[0] != count or tensor.shape[1:] != into.shape[1:]:
            return False
        if not is_as_read(tensor):
            return False
        copies.append((into.data_ptr() + row * (tensor.nbytes // count), tensor.data_ptr(), tensor.nbytes))
    for copy in copies:
        memmove(*copy)
    return True
