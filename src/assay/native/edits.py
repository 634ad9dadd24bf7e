"""Distances between texts, counted by compiled code: what `encode.edits` counts with rapidfuzz elsewhere."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.native.library import call, loaded

CODEC = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"
WORD_BYTES = 24
LANES = 8  # pairs whose distances are counted at once
BLOCK = 64  # characters whose white space is found at once
PADDING = 8  # bytes that are read at once, also the last ones


def edit_counts(preds: Sequence[str], target: Sequence[str], by_words: bool) -> NDArray[np.int64]:
    """Errors, and elements of the target and of the prediction, of each pair of strings: int64 of shape `(N, 3)`.

    Elements are words between white space or, without `by_words`, characters from the first to the last that is no
    white space.
    """
    rows = len(preds)
    counts = np.empty((rows, 3), np.int64)
    (targets, target_ends), (predictions, pred_ends) = _joined(target), _joined(preds)
    if targets.itemsize != predictions.itemsize:
        (targets, target_ends), (predictions, pred_ends) = _joined(target, CODEC), _joined(preds, CODEC)
    lengths = np.diff(target_ends + pred_ends, prepend=0)
    longest = int(lengths.max(initial=0))
    elements, deltas = np.zeros((LANES + 1) * longest, np.uint32), _lanes(2 * longest)
    edges, spaces = np.empty(longest + 2, np.int64), np.empty(longest + BLOCK, np.uint8)
    words = np.empty((longest if by_words else 0) * WORD_BYTES, np.uint8)
    table = np.empty(2 << longest.bit_length() if by_words else 0, np.uint32)
    highest = longest if by_words else max(int(each.max(initial=0)) for each in (targets, predictions))
    texts = (targets, target_ends, predictions, pred_ends, targets.itemsize, lengths.argsort(), rows, int(by_words))
    buffers = (longest, elements, words, edges, spaces, table, _lanes(highest + 1), deltas)
    call("edit_counts", *(_passed(each) for each in (counts, *texts, *buffers)))
    return counts


def extended_edits(
    pred: str, target: str, alpha: float, deletion: float, insertion: float
) -> tuple[float, NDArray[np.int64]]:
    """The cost of the path of the extended edit distance, and how often it visits each place of `pred`, less 1."""
    (predicted, _), (wanted, _) = _joined([pred], CODEC), _joined([target], CODEC)
    rows, visits = np.empty((2, len(pred) + 1)), np.full(len(pred) + 1, -1, np.int64)
    function = loaded().assay_extended_edits
    function.restype = ctypes.c_double
    function.argtypes = [*[ctypes.c_void_p] * 4, *[ctypes.c_double] * 3, *[ctypes.c_void_p] * 3]
    texts = [_passed(each) for each in (predicted, len(pred), wanted, len(target))]
    buffers = [_passed(each) for each in (visits, rows[0], rows[1])]
    return function(*texts, alpha, deletion, insertion, *buffers), visits


def _lanes(count: int) -> NDArray[np.uint64]:
    """Zeros for `count` vectors of lanes, aligned as compiled code has them."""
    room = np.zeros((count + 1) * LANES, np.uint64)
    first = -room.ctypes.data // 8 % LANES
    return room[first : first + count * LANES]


def _joined(texts: Sequence[str], codec: str = "") -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The code points of all texts one after the other, with some zeros behind, and where each text ends.

    Without a codec they are bytes where all are ASCII, else of 4 bytes each.
    """
    text = "".join(texts)
    codec = codec or ("ascii" if text.isascii() else CODEC)
    points = np.frombuffer(
        text.encode(codec, "surrogatepass") + bytes(PADDING), np.uint32 if codec == CODEC else np.uint8
    )
    return points, np.fromiter(map(len, texts), np.int64, len(texts)).cumsum()


def _passed(argument: NDArray[Any] | int) -> int:
    return argument if isinstance(argument, int) else argument.ctypes.data
