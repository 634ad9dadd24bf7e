"""Exact sums of the products of columns of integers, on devices that multiply narrow integers or floats only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

Kernel = Literal["int8", "float32", "float64"]

LARGEST = 127 * (1 + 2**8 + 2**16)
"""The largest absolute value of a number: three signed digits of 8 bits hold it."""
LIMB_BITS = 24
"""Of the lower one of the two int64 limbs that sums are kept in, so that 2 ** 39 rows fit."""

_BLOCKS = {"int8": 1024, "float64": 4096, "float32": 256}
"""Rows that are put into the table in one go. For float32, as 3 * 256 products of digits are below 2 ** 24."""
_EXACT_ROWS = 128  # 128 * LARGEST ** 2 is below 2 ** 53
_SLAB = 128  # rows of the table of products that are there at a time
_ALIGNED = 32  # products of int8 on CUDA want sizes that are multiples of 8, and more than 16 rows


def padded(width: int) -> int:
    """The number of columns that are multiplied, of which the last ones may be zeros."""
    return -(-width // _ALIGNED) * _ALIGNED


def slabs(width: int) -> Iterator[tuple[slice, slice]]:
    """The upper part of the square table of products in slabs: the rows of each, and its places in the flat table.

    A slab has the columns from its first row on.

    Example:
        >>> list(slabs(130))
        [(slice(0, 128, None), slice(0, 20480, None)), (slice(128, 160, None), slice(20480, 21504, None))]
    """
    width, place = padded(width), 0
    for first in range(0, width, _SLAB):
        rows = slice(first, min(first + _SLAB, width))
        size = (rows.stop - first) * (width - first)
        yield rows, slice(place, place + size)
        place += size


def table_size(width: int) -> int:
    """The length of the flat table."""
    return sum((rows.stop - rows.start) * (padded(width) - rows.start) for rows, _ in slabs(width))


def add_products(limbs: Tensor, values: Tensor, groups: Tensor, kernel: Kernel) -> None:
    """Add the products of all pairs of columns, summed over the rows of each of two groups.

    Args:
        limbs: int64 of shape `(2, 2, table_size(width))`: for each group both limbs of the flat table.
        values: int32 of shape `(rows, width)`, absolute values up to `LARGEST`.
        groups: int64 of shape `(rows,)`, 0 or 1.
        kernel: how to multiply; float64 is for host memory.
    """
    blocks = _host_blocks(values, groups) if kernel == "float64" else _device_blocks(values, groups, _BLOCKS[kernel])
    for some, group in blocks:
        factors = _FACTORS[kernel](some)
        for columns, places in slabs(values.shape[1]):
            products = factors(columns).view(1, -1)
            for limb, part in enumerate((products & ((1 << LIMB_BITS) - 1), products >> LIMB_BITS)):
                limbs[:, limb, places].index_add_(0, group, part)


def _host_blocks(values: Tensor, groups: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Rows of one group at a time, and which it is; they are read, as no device is waited for."""
    values = pad(values, (0, padded(values.shape[1]) - values.shape[1]))
    for group in range(2):
        rows = torch.from_numpy(np.flatnonzero(groups.numpy() == group))
        for start in range(0, len(rows), _BLOCKS["float64"]):
            yield values.index_select(0, rows[start : start + _BLOCKS["float64"]]), torch.tensor([group], device="cpu")


def _device_blocks(values: Tensor, groups: Tensor, block: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The same without reading a value: so many zeros are put between the groups that no block has rows of both."""
    rows, width = values.shape
    block = min(block, -(-rows // 8) * 8)
    total, others = (-(-rows // block) + 1) * block, 1 - groups
    place = torch.where(groups == 0, others.cumsum(0) - 1, total - groups.cumsum(0))
    arranged = values.new_zeros(total, padded(width))
    arranged[:, :width].index_add_(0, place, values)
    starts = torch.arange(0, total, block, device=values.device)
    which = (starts >= others.sum()).to(torch.int64)
    for k in range(len(which)):
        yield arranged[k * block : (k + 1) * block], which[k : k + 1]


class _Digits:
    """Three signed digits of 8 bits of each number, and products of them in int8 or float32.

    The digits of all rows are below each other, from the lowest on the left side of products and from the highest on
    the right one, so the pairs of digits of one significance are the same rows on both sides: five products in all.
    """

    def __init__(self, values: Tensor, dtype: torch.dtype) -> None:
        digits = []
        for _ in range(2):
            low = ((values + 128) & 255) - 128
            digits.append(low.to(dtype))
            values = (values - low) >> 8
        digits.append(values.to(dtype))
        self.rows = len(values)
        self.left, self.right = torch.cat(digits), torch.cat(digits[::-1])

    def __call__(self, columns: slice) -> Tensor:
        width = self.left.shape[1] - columns.start
        total = torch.zeros(columns.stop - columns.start, width, dtype=torch.int64, device=self.left.device)
        for level in range(5):
            first, last = max(0, level - 2), min(3, level + 1)
            start = (2 - level + first) * self.rows
            left = self.left[first * self.rows : last * self.rows, columns].T
            right = self.right[start : start + left.shape[1], columns.start :]
            exact = torch._int_mm(left, right) if self.left.dtype == torch.int8 else (left @ right).to(torch.int32)
            total.add_(exact, alpha=256**level)
        return total


class _Doubles:
    """Numbers in float64, in which sums of 128 of their products are exact: these are below 2 ** 53."""

    def __init__(self, values: Tensor) -> None:
        self.values = values.double()

    def __call__(self, columns: slice) -> Tensor:
        width = self.values.shape[1] - columns.start
        total = torch.zeros(columns.stop - columns.start, width, dtype=torch.int64, device="cpu")
        product, whole = torch.empty(total.shape, dtype=torch.float64, device="cpu"), torch.empty_like(total)
        for some in torch.split(self.values, _EXACT_ROWS):
            torch.mm(some[:, columns].T, some[:, columns.start :], out=product)
            total += whole.copy_(product)
        return total


_FACTORS: Mapping[Kernel, Callable[[Tensor], Callable[[slice], Tensor]]] = {
    "int8": lambda values: _Digits(values, torch.int8),
    "float32": lambda values: _Digits(values, torch.float32),
    "float64": _Doubles,
}
