"""Values of states in host memory, each read in one call; nothing is read where there is something to report."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from assay.devices.placement import is_as_read
from assay.native.library import compiled_function, library, loaded, takes

Array = np.ndarray[Any, Any]


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


class PairsOfLabels(NamedTuple):
    """How often pairs of labels occur, without what does not occur, in int64.

    Attributes:
        counts: of each pair, by row and then by column.
        preds: the row of each.
        target: the column of each.
        preds_totals: the sums of rows.
        target_totals: the sums of columns.
    """

    counts: Array
    preds: Array
    target: Array
    preds_totals: Array
    target_totals: Array


def pairs_of_labels(preds: Tensor, target: Tensor) -> PairsOfLabels | None:
    """The contingency table of two lists of labels in int64, one for each sample.

    None without labels, of labels of which there may be many more than samples, and where compiled code does not take
    the tensors.
    """
    samples = len(preds)
    if not takes(preds, target, dtypes=(torch.int64,)) or preds.ndim != 1 or target.shape != preds.shape or not samples:
        return None
    if not (is_as_read(preds) and is_as_read(target)):
        return None
    lists = samples, preds.data_ptr(), target.data_ptr()
    ranges = np.empty(4, np.int64)
    compiled_function("label_ranges", 4)(*lists, ranges.ctypes.data)
    low, high, least, most = ranges.tolist()
    height, width = high - low + 1, most - least + 1
    if height * width > 4 * samples:
        return None
    cells, sides = height * width, height + width
    found = np.empty(4 * cells + 2 * sides + 3, np.int64)
    room, first = found.ctypes.data, cells + sides
    starts = first, first + cells, first + 2 * cells, first + 3 * cells, first + 3 * cells + sides
    places = (room + 8 * start for start in starts)
    compiled_function("count_pairs_of_labels", 12)(*lists, ranges.ctypes.data, height, width, room, *places)
    pairs, rows, columns = found[-3:].tolist()
    sizes = pairs, pairs, pairs, rows + columns
    counts, row, column, totals = (found[start : start + size] for start, size in zip(starts, sizes, strict=False))
    return PairsOfLabels(counts, row, column, totals[:rows], totals[rows:])


@cache
def _largest() -> ctypes._NamedFuncPointer:
    function = loaded().assay_plain_extreme
    function.argtypes, function.restype = (*[ctypes.c_void_p] * 3, ctypes.c_int64), ctypes.c_double
    return function
