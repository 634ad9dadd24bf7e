"""Distances between texts, counted by compiled code: what `encode.edits` counts with rapidfuzz elsewhere."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from assay.native.library import call, loaded

CODEC = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"
PADDING = "\n" * 8  # compiled code reads 8 bytes of a word at once


def edit_counts(preds: Sequence[str], target: Sequence[str], by_words: bool) -> NDArray[np.int64]:
    """Errors, and elements of the target and of the prediction, of each pair of strings: int64 of shape `(N, 3)`.

    Elements are words between white space or, without `by_words`, characters from the first to the last that is no
    white space.
    """
    counts, done = np.empty((len(preds), 3), np.int64), ctypes.c_int64()
    texts = [PADDING] * (2 * len(preds) + 1)
    texts[:-1:2], texts[1::2] = target, preds
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    encoded, width = _encoded("\n".join(texts))
    pointers = [each.ctypes.data for each in (counts, lengths)]
    call("edit_counts", pointers[0], encoded, width, pointers[1], len(preds), int(by_words), ctypes.byref(done))
    if done.value < len(preds):
        raise MemoryError
    return counts


def _encoded(text: str) -> tuple[bytes, int]:
    """The code points of a text, and how many bytes each has: 1 if all are in Latin-1, else 4."""
    try:
        return text.encode("latin-1"), 1
    except UnicodeEncodeError:
        return text.encode(CODEC, "surrogatepass"), 4


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
