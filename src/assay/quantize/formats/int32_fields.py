"""Unsigned integers of a few bits, laid one behind the other in words of 32 bits."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.quantize.packed_weight import unpack


def fields_of(words: Tensor, bits: int, count: int) -> Tensor:
    """The integers in the rows of a matrix of int32.

    Args:
        words: int32 of shape (rows, at least ceil(count · bits / 32)).
        bits: of an integer, 2 to 8; the least significant come first, and an integer may reach into the next word.
        count: how many integers a row has.

    Returns:
        int32 of shape (rows, count), from 0 to ``2^bits - 1``.

    Example:
        >>> fields_of(torch.tensor([[0x76543210]], dtype=torch.int32), 4, 8)
        tensor([[0, 1, 2, 3, 4, 5, 6, 7]], dtype=torch.int32)
    """
    packed = words.contiguous().view(torch.uint8)
    if bits == 8:
        return packed[:, :count].to(torch.int32)
    return unpack(packed, bits, count).to(torch.int32) + (1 << (bits - 1))
