"""Exact sums of products of float32 columns in host memory where there is no compiled code: by NumPy, modulo 2 ** 64.

The numbers of a column are integers times one power of two. The sum of their products is formed twice: in int64, which
wraps around and so is exact modulo 2 ** 64, and in float64, with an error below 2 ** 63. Both together give the sum.
Rows with a number whose last bits lie too low for that are added one by one.

Nothing is rounded but the sum in float64, so neither the rounding mode of the process nor the order of that sum counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul

import numpy as np
import torch
from torch import Tensor

LEAST_ROWS = 1024
"""Fewer are summed as fast in tables."""
MOST_LOW_ROWS = 256
"""Rows that are added one by one; with more of them tables are faster."""

_BASE = -149  # the weight of the last bit of the smallest float32
_BIAS = 150  # a number with exponent bits `e` is a multiple of 2 ** (e - 150) below 2 ** (e - 126)
_DIGITS = 24
_INFINITE = 0x7F800000
_WIDEST = 51  # bits of an integer that a float64 of exponent 52 shows among its own bits
_NONE = np.empty(0, np.int64)
_ERROR = 52  # each addition in float64 has a relative error of at most 2 ** -52, however it is rounded


@dataclass(frozen=True)
class _Column:
    """A column as floats, and as integers below `2 ** bits` in units of `2 ** unit`; without the rows `low`."""

    bits_of_rows: np.ndarray
    exponent: int
    largest: int
    low: np.ndarray

    @property
    def unit(self) -> int:
        return self.exponent - _BIAS

    @property
    def bits(self) -> int:
        return self.largest - self.exponent + _DIGITS


def sums_of_columns(columns: Sequence[Tensor], products: Sequence[Sequence[int]]) -> list[list[int]] | None:
    """What `sums_of_products` gives for each output of float32 columns `(rows, outputs)`, in host memory.

    None where one of them has none, and where there are too few rows for this to be faster than tables.
    """
    rows, outputs = columns[0].shape
    if rows < LEAST_ROWS:
        return None
    sums = []
    for output in range(outputs):
        of_output = sums_of_products([each[:, output].contiguous().numpy() for each in columns], products)
        if of_output is None:
            return None
        sums.append(of_output)
    return sums


def sums_of_products(columns: Sequence[np.ndarray], products: Sequence[Sequence[int]]) -> list[int] | None:
    """The sum over the rows of each product of columns, in units of `2 ** (-149 * factors)`.

    Args:
        columns: float32 of shape `(rows,)`; at most 2 ** 20 rows.
        products: for each the places of its factors among the columns.

    Returns:
        The sums; None where a number is not finite, or where numbers spread over too many bits.
    """
    size = (len(columns[0]) - 1).bit_length()  # there are at most 2 ** size rows
    widest = min(_WIDEST, (62 + _ERROR - 2 * size) // max(map(len, products)))
    described = [_describe(column.view(np.uint32), widest) for column in columns]
    if any(each.largest << 23 >= _INFINITE for each in described):
        return None
    low = np.unique(np.concatenate(found)) if (found := [each.low for each in described if len(each.low)]) else _NONE
    if len(low) > MOST_LOW_ROWS:
        return None
    floats = [column.astype(np.float64) for column in columns]
    for each in floats if len(low) else ():
        each[low] = 0
    integers = [_integers(x, each.unit) for x, each in zip(floats, described, strict=True)]
    single = [[_single(bits) for bits in each.bits_of_rows[low].tolist()] for each in described]
    sums = []
    for places in products:
        bits = size + sum(described[k].bits for k in places)
        unit = sum(described[k].unit for k in places)
        total = _sum([integers[k] for k in places], [floats[k] for k in places], unit, bits)
        one_by_one = sum(reduce(mul, row) for row in zip(*(single[k] for k in places), strict=True))
        sums.append((total << (unit - _BASE * len(places))) + one_by_one)
    return sums


def _describe(bits: np.ndarray, widest: int) -> _Column:
    """The unit in which the numbers with these bits are integers of at most so many bits, and the rows that are not."""
    magnitudes = np.bitwise_and(bits, 0x7FFFFFFF)
    largest = int(magnitudes.max()) >> 23
    magnitudes -= np.uint32(1)  # 0 is above all then
    smallest = min((int(magnitudes.min()) + 1) >> 23, largest)
    exponent = max(smallest, largest + _DIGITS - widest, 1)  # denormals are zeros where the process has set that
    low = np.flatnonzero(magnitudes < np.uint32((exponent << 23) - 1)) if smallest < exponent else _NONE
    return _Column(bits, exponent, max(largest, exponent), low)


def _integers(x: np.ndarray, unit: int) -> np.ndarray:
    """Multiples of `2 ** unit` as int64: next to a constant, they are the last bits of a float64."""
    constant = np.float64(math.ldexp(1.5, 52 + unit))
    shown = (x + constant).view(np.int64)
    shown -= constant.view(np.int64)
    return shown


def _single(bits: int) -> int:
    """A float32 as an integer, in units of the smallest."""
    exponent, significand = (bits >> 23) & 255, bits & 0x7FFFFF
    whole = (significand | (1 << 23)) << (exponent - 1) if exponent else significand
    return -whole if bits >> 31 else whole


def _sum(integers: Sequence[np.ndarray], floats: Sequence[np.ndarray], unit: int, bits: int) -> int:
    """The sum of products of integers, which is below `2 ** bits`, from the same as floats in units of `2 ** unit`."""
    wrapped = int(integers[0].sum() if len(integers) == 1 else np.einsum(",".join("i" * len(integers)), *integers))
    if bits < 64:
        return wrapped
    first, *others = floats
    if others:
        *middle, last = others
        rounded = torch.dot(torch.from_numpy(reduce(mul, middle, first)), torch.from_numpy(last))  # in torch's threads
    else:
        rounded = first.sum()
    about = int(math.ldexp(float(rounded), -unit))
    return wrapped + (((about - wrapped + (1 << 63)) >> 64) << 64)
