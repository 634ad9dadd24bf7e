"""Distances between texts, counted by compiled code: what `encode.edits` counts with rapidfuzz elsewhere."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.native.library import call, loaded

CODEC = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"
SEPARATOR = "\x1e"  # white space that hardly any text has
PADDING = "\n" * 8  # compiled code reads 8 bytes of a word at once


def edit_counts(preds: Sequence[str], target: Sequence[str], by_words: bool) -> Tensor:
    """Errors, and elements of the target and of the prediction, of each pair of strings: int64 of shape `(N, 3)`.

    Elements are words between white space or, without `by_words`, characters from the first to the last that is no
    white space.

    Raises:
        TypeError: something is no string.
    """
    counts = torch.empty(len(preds), 3, dtype=torch.int64, device="cpu")
    texts = [PADDING] * (2 * len(preds) + 1)
    texts[:-1:2], texts[1::2] = target, preds
    joined, done = SEPARATOR.join(texts), ctypes.c_int64()
    points, width = _code_points(joined)
    ends = _ends(texts, points, width, len(joined))
    call("edit_counts", counts, points, width, ends, len(preds), int(by_words), ctypes.byref(done))
    if done.value < len(preds):
        raise MemoryError
    return counts


def _code_points(text: str) -> tuple[int | bytes, int]:
    """The code points of a text, and how many bytes each has: 1 if all are in Latin-1, else 4.

    Those of ASCII lie in the string itself: its UTF-8, which is not copied.
    """
    if text.isascii():
        return _utf8()(text, None), 1
    try:
        return text.encode("latin-1"), 1
    except UnicodeEncodeError:
        return text.encode(CODEC, "surrogatepass"), 4


@cache
def _utf8() -> Callable[[str, None], int]:
    """The function of Python's stable interface that returns the address of a string's UTF-8."""
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return prototype(("PyUnicode_AsUTF8AndSize", ctypes.pythonapi))


def _ends(texts: Sequence[str], points: int | bytes, width: int, length: int) -> Tensor:
    """Where each text but the last ends, in characters: where separators are, or by lengths where a text has one."""
    count, found = len(texts) - 1, ctypes.c_int64()
    ends = torch.empty(count, dtype=torch.int64, device="cpu")
    call("find_ends", points, width, length, ord(SEPARATOR), count, ends, ctypes.byref(found))
    if found.value == count:
        return ends
    lengths = np.fromiter(map(str.__len__, texts), np.int64, count)  # not that of a subclass
    return torch.from_numpy(np.cumsum(lengths + 1) - 1)


def extended_edits(
    pred: str, target: str, alpha: float, deletion: float, insertion: float
) -> tuple[float, NDArray[np.int64]]:
    """The cost of the path of the extended edit distance, and how often it visits each place of `pred`, less 1."""
    rows, visits = np.empty((2, len(pred) + 1)), np.full(len(pred) + 1, -1, np.int64)
    function = loaded().assay_extended_edits
    function.restype = ctypes.c_double
    function.argtypes = [*[ctypes.c_void_p] * 4, *[ctypes.c_double] * 3, *[ctypes.c_void_p] * 3]
    points = [each.encode(CODEC, "surrogatepass") for each in (pred, target)]
    buffers = [each.ctypes.data for each in (visits, rows[0], rows[1])]
    return function(points[0], len(pred), points[1], len(target), alpha, deletion, insertion, *buffers), visits
