"""The compiled form of `tally.exact.integers`: the same integers."""

from __future__ import annotations

import ctypes

from torch import Tensor

from assay.native.library import call


def integers(limbs: Tensor) -> tuple[list[int], int]:
    """The integers that limbs of shape `(..., words)` stand for, without the words that are 0 in all; and how many.

    The limbs are contiguous and in host memory; they may have any form.
    """
    words = limbs.shape[-1]
    sums = limbs.numel() // words
    digits, used = (ctypes.c_uint32 * (sums * (words + 1)))(), (ctypes.c_int64 * 2)()
    call("digits", sums, words, limbs, digits, used)
    start, stop = used
    if start > words:
        return [0] * sums, 0
    stop = min(stop + 1, words + 1)  # one more digit for the sign
    data, width = memoryview(digits).cast("B"), 4 * (words + 1)
    firsts = range(4 * start, len(data), width)
    return [int.from_bytes(data[first : first + 4 * (stop - start)], "little", signed=True) for first in firsts], start


def is_canonical(limbs: Tensor) -> bool:
    """Whether all words of limbs but the last are in [0, 2 ** 32)."""
    words, answer = limbs.shape[-1], (ctypes.c_int64 * 1)()
    call("is_canonical", limbs.numel() // words, words, limbs, answer)
    return bool(answer[0])
