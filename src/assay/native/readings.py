"""Values of states in host memory, each read in one call; nothing is read where there is something to report."""

from __future__ import annotations

import ctypes
from functools import cache

import torch
from torch import Tensor

from assay.native.library import compiled_function, library, loaded


def matrices(table: Tensor, labels: int, classes: int) -> Tensor | None:
    """The confusion matrices `(labels, C, C)` of a table of `tally.labels.confusion.Confusion`.

    None where a label is invalid, and where compiled code does not take the table.
    """
    if library() is None or not table.is_contiguous():
        return None
    found = torch.empty(labels, classes, classes, dtype=torch.int64, device="cpu")
    read = compiled_function("plain_matrices", 4)
    return None if read(table.data_ptr(), labels, classes, found.data_ptr()) else found


def outcomes(table: Tensor, labels: int, classes: int, of_classes: bool) -> Tensor | None:
    """True and false positives, true and false negatives and support, int64, of such a table.

    Args:
        table: see `matrices`.
        labels: how many labels there are.
        classes: how many classes each of them has.
        of_classes: `(5, C)`, of each class of the only label; else `(5, labels)`, of class 1 of each of them.

    Returns:
        None where `matrices` gives none.
    """
    if library() is None or not table.is_contiguous():
        return None
    found = torch.empty(5, classes if of_classes else labels, dtype=torch.int64, device="cpu")
    read = compiled_function("plain_outcomes", 5)
    return None if read(table.data_ptr(), labels, classes, int(of_classes), found.data_ptr()) else found


def largest(keys: Tensor, count: Tensor, nan: Tensor, negated: bool) -> float | None:
    """The largest of the floats that `tally.sums.extremes.Extremes` has counted, or of their negatives.

    None where there was a NaN or an integer, or nothing, and without compiled code.
    """
    if library() is None or not keys.is_contiguous():
        return None
    found = _largest()(keys.data_ptr(), count.data_ptr(), nan.data_ptr(), negated)
    return None if found != found else found


@cache
def _largest() -> ctypes._NamedFuncPointer:
    function = loaded().assay_plain_extreme
    function.argtypes, function.restype = (*[ctypes.c_void_p] * 3, ctypes.c_int64), ctypes.c_double
    return function
