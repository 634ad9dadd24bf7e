"""The compiled form of `tally.exact.integers`: the same integers."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from assay.native.library import call, compiled_function


def integers(limbs: Tensor) -> tuple[list[int], int]:
    """The integers that limbs of shape `(..., words)` stand for, without the words that are 0 in all; and how many.

    The limbs are contiguous and in host memory; they may have any form.
    """
    words = limbs.shape[-1]
    sums = limbs.numel() // words
    room = torch.empty(2 + (sums * (words + 1) + 1) // 2, dtype=torch.int64, device="cpu")
    compiled_function("digits", 4)(sums, words, limbs.data_ptr(), room.data_ptr())
    data = room.numpy().data
    start, stop = data[:2].tolist()
    if start > words:
        return [0] * sums, 0
    stop = min(stop + 1, words + 1)  # one more digit for the sign
    digits, width, size = data[2:].cast("B"), 4 * (words + 1), 4 * (stop - start)
    firsts = range(4 * start, sums * width, width)
    return [int.from_bytes(digits[first : first + size], "little", signed=True) for first in firsts], start


def is_canonical(limbs: Tensor) -> bool:
    """Whether all words of limbs but the last are in [0, 2 ** 32)."""
    words, answer = limbs.shape[-1], ctypes.c_int64()
    check = compiled_function("is_canonical", 4)
    check(limbs.numel() // words, words, limbs.data_ptr(), ctypes.addressof(answer))
    return answer.value != 0


def add_integers(limbs: Tensor, values: Tensor, origin: int) -> None:
    """Add the sum of each column of integers to its limbs.

    Args:
        limbs: int64 of shape `(columns, words)`, contiguous.
        values: int64 of shape `(rows, columns)`, contiguous.
        origin: the first bit of the limbs weighs `2 ** origin`.
    """
    call("add_integers", *limbs.shape, origin, limbs, values, len(values))
