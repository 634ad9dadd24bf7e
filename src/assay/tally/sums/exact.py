"""Exact sums and sums of products of floating-point numbers, in int64 and without an order.

A finite float is an integer times a power of two: `x = significand * 2 ** (position + base)`. A sum of such numbers is
kept as *limbs*: int64 words of 32 bits each, of which word `k` weighs `2 ** (32 * k + origin(order))`. Adding a number
adds its significand, shifted, to the words it overlaps. Only integers are added, so the sum is exact and does not
depend on the order; limbs of two parts of the data add up. After each call the words are normalised by one carry, which
keeps them below 2 ** 34: there is no number of samples at which they wrap around (below 2 ** 63).

A product of `order` floats has a significand of at most `order` times 24 bits. Significands of more than 24 bits
(float64, large integers, products) are split into pieces first, so that a product of two pieces fits 48 bits and
2 ** 15 of those fit an int64 word.

The idea of one integer accumulator per exponent is that of Neal's superaccumulators (arXiv:1505.05571).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from assay.native import values as native
from assay.native.library import library
from assay.triton_kernels import sums as triton_sums

Number = Fraction | float
"""An exact number, or a float where the data was not finite: inf, -inf or NaN."""

WORD = 32
MASK = (1 << WORD) - 1
PIECE_BITS = 24
CHUNK_ROWS = 1 << 15  # the products of two pieces stay below 2 ** 48 - 2 ** 24: 2 ** 15 of them fit an int64
TABLE_CELLS = 1 << 18  # scratch for the tables of one block of columns: 2 MiB

_FLOAT32_BASE = -149  # the weight of the last bit of the smallest float32
_FLOAT32_SPAN = 255
_FLOAT64_BASE = -1074
_FLOAT64_SPAN = 2047
_HEADROOM = 64  # bits above the largest single value


@dataclass(frozen=True)
class FloatPiece:
    """`significand * 2 ** (position + base)`, elementwise; `|significand| < 2 ** 24`, or 2 ** 48 for a product."""

    significand: Tensor
    position: Tensor


@dataclass(frozen=True)
class Parts:
    """Numbers as sums of pieces. `order` counts the floats that were multiplied; `span` bounds the positions."""

    pieces: tuple[FloatPiece, ...]
    base: int
    span: int
    order: int

    def times_sign(self, sign: Tensor) -> Parts:
        """The numbers multiplied elementwise by -1, 0 or 1, given as int64."""
        pieces = tuple(FloatPiece(p.significand * sign, p.position) for p in self.pieces)
        return Parts(pieces, self.base, self.span, self.order)


def parts(x: Tensor) -> Parts:
    """Take a float or integer tensor of any dtype apart, without rounding."""
    if x.dtype == torch.float64:
        return _float64_parts(x)
    if x.dtype.is_floating_point:
        return _float32_parts(x.float())
    return _integer_parts(x)


def _float32_parts(x: Tensor) -> Parts:
    bits = x.contiguous().view(torch.int32)
    exponent = bits >> 23
    exponent &= 255
    normal = exponent.clamp(max=1)  # 0 for denormals and zero, which have no hidden bit
    significand = bits & 0x7FFFFF
    exponent -= normal
    significand |= normal.bitwise_left_shift_(23)
    sign = bits >> 31
    significand ^= sign
    significand -= sign
    return Parts((FloatPiece(significand.to(torch.int64), exponent),), _FLOAT32_BASE, _FLOAT32_SPAN, 1)


def _float64_parts(x: Tensor) -> Parts:
    bits = x.contiguous().view(torch.int64)
    exponent = (bits >> 52) & 2047
    normal = exponent.clamp(max=1)
    significand = (bits & ((1 << 52) - 1)) | (normal << 52)
    sign = bits >> 63
    position = (exponent - normal).to(torch.int32)
    pieces = tuple(
        FloatPiece((((significand >> low) & 0x3FFFF) ^ sign) - sign, position + low if low else position)
        for low in (0, 18, 36)
    )
    return Parts(pieces, _FLOAT64_BASE, _FLOAT64_SPAN + 36, 1)


def _integer_parts(x: Tensor) -> Parts:
    position = torch.full(x.shape, -_FLOAT32_BASE, dtype=torch.int32, device=x.device)
    wide = x.to(torch.int64)
    if x.dtype in (torch.bool, torch.uint8, torch.int8, torch.int16):
        return Parts((FloatPiece(wide, position),), _FLOAT32_BASE, -_FLOAT32_BASE + 1, 1)
    pieces = tuple(
        FloatPiece(wide >> low if low == 48 else (wide >> low) & 0xFFFFFF, position + low) for low in (0, 24, 48)
    )
    return Parts(pieces, _FLOAT32_BASE, -_FLOAT32_BASE + 49, 1)


def base(dtype: torch.dtype) -> int:
    """The power of two that positions of numbers of this dtype count from."""
    return _FLOAT64_BASE if dtype == torch.float64 else _FLOAT32_BASE


def both(a: Parts, b: Parts) -> Parts:
    """Numbers that are elementwise sums, as the pieces of both terms."""
    low = min(a.base, b.base)
    pieces = tuple(FloatPiece(p.significand, p.position + (x.base - low)) for x in (a, b) for p in x.pieces)
    return Parts(pieces, low, max(x.span + x.base - low for x in (a, b)), a.order)


def product(a: Parts, b: Parts) -> Parts:
    """The elementwise product, without rounding."""
    left, right = _narrow(a), _narrow(b)
    pieces = tuple(
        FloatPiece(p.significand * q.significand, p.position + q.position) for p in left.pieces for q in right.pieces
    )
    return Parts(pieces, a.base + b.base, left.span + right.span, a.order + b.order)


def _narrow(x: Parts) -> Parts:
    """Pieces of at most 24 bits."""
    if x.order == 1:
        return x
    pieces = [
        FloatPiece(half, p.position + low)
        for p in x.pieces
        for low, half in ((0, p.significand & 0xFFFFFF), (PIECE_BITS, p.significand >> PIECE_BITS))
    ]
    return Parts(tuple(pieces), x.base, x.span + PIECE_BITS, x.order)


def origin(order: int) -> int:
    """The weight of the first bit of the first limb, as a power of two: low enough for float64, aligned for float32."""
    words_below = -(-(order * (_FLOAT32_BASE - _FLOAT64_BASE)) // WORD)
    return order * _FLOAT32_BASE - WORD * words_below


def num_limbs(order: int) -> int:
    """How many limbs hold any sum of fewer than 2 ** 63 products of `order` finite float64 values."""
    return -(-(order * 1024 + _HEADROOM - origin(order)) // WORD) + 1


def add_to(limbs: Tensor, values: Parts, channel: Tensor) -> None:
    """Add numbers to the limbs of the channel each belongs to, in place.

    Args:
        limbs: int64 of shape `(channels, num_limbs(order))`.
        values: the numbers, of any shape.
        channel: int64 of the same shape: the row of `limbs` that each goes to.
    """
    values = _narrow(values)  # a shifted piece then fits 55 bits
    offset = values.base - origin(values.order)
    width = limbs.shape[1]
    flat = limbs.view(-1)
    start = channel * width
    for piece in values.pieces:
        position = piece.position + offset
        shifted = piece.significand << (position & (WORD - 1))
        word = (start + (position >> 5)).view(-1)
        flat.scatter_add_(0, word, (shifted & MASK).view(-1))
        flat.scatter_add_(0, word + 1, (shifted >> WORD).view(-1))
    carry(limbs)


def add_columns(limbs: Tensor, chunks: Iterable[Sequence[Parts]]) -> None:
    """Add the sums over the rows of several terms to their limbs, in place.

    Args:
        limbs: int64 of shape `(terms, columns, num_limbs(order))`.
        chunks: for each chunk of rows the terms, one for each row of `limbs`, all of one order, each of shape
            `(rows, columns)`; every chunk of the same dtypes.
    """
    tables: dict[tuple[int, int], list[Tensor]] = {}
    for terms in chunks:
        offset = terms[0].base - origin(terms[0].order)
        span = max(term.span for term in terms) + offset % WORD + 1
        cells = -(-span // WORD) * WORD
        width = max(1, TABLE_CELLS // (cells * len(terms)))
        for left in range(0, limbs.shape[1], width):
            block = slice(left, min(limbs.shape[1], left + width))
            most = max(len(term.pieces) for term in terms)
            sums = torch.stack([_column_sums(term, block, cells, offset % WORD, most) for term in terms])
            column = tables.setdefault((left, offset // WORD), [])
            column.append(sums)
            if len(column) * sums.numel() > TABLE_CELLS:
                _fold(limbs[:, block], torch.cat(column, 1), offset // WORD)
                column.clear()
    for (left, first), column in tables.items():
        if column:
            _fold(limbs[:, left : left + column[0].shape[2]], torch.cat(column, 1), first)


def _column_sums(term: Parts, block: slice, cells: int, shift: int, most: int) -> Tensor:
    """Sums of significands by column and position: int64 of shape `(tables, columns, cells)`, for `most` pieces."""
    rows = term.pieces[0].significand.shape[0]
    width = block.stop - block.start
    spans = -(-rows // CHUNK_ROWS) or 1
    device = term.pieces[0].position.device
    table = torch.zeros(most, spans, width, cells, dtype=torch.int64, device=device)
    for k, piece in enumerate(term.pieces):
        first = k * table[0].numel() + shift
        cell = piece.position[:, block].to(torch.int64)
        cell += first if width == 1 else torch.arange(first, first + width * cells, cells, device=device)
        if spans > 1:  # each table takes the rows that surely fit it
            span = torch.arange(rows, device=device).div_(CHUNK_ROWS, rounding_mode="floor")
            cell += span.mul_(width * cells)[:, None]
        # Into the whole table: a scatter into a slice was once wrong on mps (int64_scatter in known/mps.toml).
        table.view(-1).scatter_add_(0, cell.view(-1), piece.significand[:, block].reshape(-1))
    return table.flatten(0, 1)


def _fold(limbs: Tensor, tables: Tensor, first: int) -> None:
    """Add tables of shape `(terms, tables, columns, cells)` to limbs of shape `(terms, columns, words)`."""
    words = tables.view(*tables.shape[:-1], -1, WORD)
    shift = torch.arange(WORD, device=tables.device)
    low = (words & MASK) << shift  # below 2 ** 63
    high = (words >> WORD) << shift  # below 2 ** 61
    # The word itself, and what falls into the next and the one after: sums of words below 2 ** 33, so no overflow.
    here = (low & MASK).sum((1, -1))
    next_ = ((low >> WORD) + (high & MASK)).sum((1, -1))
    after = (high >> WORD).sum((1, -1))
    count = here.shape[-1]
    limbs[..., first : first + count] += here
    limbs[..., first + 1 : first + 1 + count] += next_
    limbs[..., first + 2 : first + 2 + count] += after
    carry(limbs)


def carry(limbs: Tensor) -> None:
    """One carry to the next word, in place: the words below the last are then between -2 ** 32 and 2 ** 33."""
    over = limbs[..., :-1] >> WORD
    limbs[..., :-1] &= MASK
    limbs[..., 1:] += over


def add_integer(limbs: Tensor, value: int, bit: int) -> None:
    """Add `value` times `2 ** bit` times the first bit of the limbs to those of one sum, `(words,)`, on the CPU."""
    if not value:
        return
    zeros = (value & -value).bit_length() - 1
    first, shift = divmod(bit + zeros, WORD)
    value = (value >> zeros) << shift
    words = limbs.numpy()[first : first + value.bit_length() // WORD + 2]
    sums = []
    for word in words[:-1].tolist():
        value += word
        sums.append(value & MASK)
        value >>= WORD
    words[:-1] = sums
    words[-1] += value


def first_bit(order: int, factors: int) -> int:
    """The bit of the limbs of sums of this order that a product of so many of the smallest float32 is."""
    return factors * _FLOAT32_BASE - origin(order)


def add_in_triton(
    columns: Sequence[Tensor],
    products: Sequence[tuple[int, ...]],
    limbs: Sequence[Tensor],
    special: Tensor,
    nonfinite: Tensor | None = None,
) -> bool:
    """Add sums of products to limbs as `triton_sums.add_products` does it, with a carry; false if nothing was done."""
    if nonfinite is None:
        nonfinite = torch.empty_like(special[..., 0])  # nobody reads it
    if not triton_sums.add_products(columns, products, limbs, special, nonfinite):
        return False
    if not triton_sums.carry(limbs):
        for each in limbs:
            carry(each)
    return True


def canonical(limbs: Tensor) -> Tensor:
    """The one form of a sum: all words but the last in [0, 2 ** 32). On the CPU; the limbs themselves where they are.

    Compiled code leaves them so.
    """
    compiled = _compiled(limbs)
    if compiled and native.is_canonical(limbs):
        return limbs
    words = limbs.numpy()
    last = words.shape[-1] - 1
    rows = words.reshape(-1, last + 1)
    if not compiled and 0 <= np.bitwise_or.reduce(rows[:, :-1], axis=None) <= MASK:
        return limbs
    start, stop = _used(rows)
    stop = min(stop + 1, last + 1)  # a word more, for what is carried
    result, over = np.zeros_like(rows), np.zeros(len(rows), dtype=np.int64)
    for k in range(start, stop):
        word = rows[:, k] + over
        if k < last:
            over = word >> WORD
            word &= MASK
        result[:, k] = word
    if stop <= last and np.any(over):  # -1: the words above a negative sum
        result[:, stop:last] = (over & MASK)[:, None]
        result[:, last] = over
    return torch.from_numpy(result.reshape(words.shape))


def _compiled(limbs: Tensor) -> bool:
    """Whether compiled code may read limbs on the CPU."""
    return library() is not None and limbs.is_contiguous() and type(limbs) is Tensor


def has_nonzero(counts: Tensor) -> bool:
    """Whether a count on the CPU is not 0. NumPy finds a few of them out in a quarter of torch's time."""
    return bool(np.count_nonzero(counts.numpy()))


def to_integers(limbs: Tensor) -> np.ndarray:
    """Limbs of shape `(..., words)` as Python integers, in units of `2 ** origin(order)`. On the CPU."""
    values, zeros = _short_integers(limbs)
    return values << (WORD * zeros) if zeros else values


def _short_integers(limbs: Tensor) -> tuple[np.ndarray, int]:
    """The same without so many words that are 0 in all of them: few words of a sum are in use."""
    words = limbs.numpy()
    rows = words.reshape(-1, words.shape[-1])
    start, stop = _used(rows)
    rows = rows[:, start:stop]
    low = (rows & MASK).astype("<u4").tobytes()
    high = ((rows >> WORD) + (1 << (WORD - 1))).astype("<u4").tobytes()  # never negative, as `shift` says
    shift = (1 << (WORD - 1)) * (((1 << (WORD * (stop - start))) - 1) // MASK)
    size = WORD // 8 * (stop - start)
    values = np.empty(len(rows), dtype=object)
    for k in range(len(rows)):
        at = slice(k * size, (k + 1) * size)
        above = int.from_bytes(high[at], "little") - shift
        values[k] = int.from_bytes(low[at], "little") + (above << WORD)
    return values.reshape(words.shape[:-1]), start


def _used(rows: np.ndarray) -> tuple[int, int]:
    """The first word that is not 0 in all rows, and the one behind the last."""
    columns = np.flatnonzero(np.bitwise_or.reduce(rows, axis=0))
    return (int(columns[0]), int(columns[-1]) + 1) if len(columns) else (0, 0)


def integers(limbs: Tensor, order: int) -> tuple[list[int], int]:
    """Limbs of sums of products of `order` floats as integers, and the power of two that is their unit. On the CPU."""
    if _compiled(limbs):
        values, zeros = native.integers(limbs)
    else:
        table, zeros = _short_integers(limbs)
        values = list(table.flat)
    return values, origin(order) + WORD * zeros


def fractions(limbs: Tensor, order: int) -> list[Fraction]:
    """The same as exact numbers."""
    values, unit = integers(limbs, order)
    return [fraction(value, unit) for value in values]


def quotients(above: tuple[list[int], int], below: tuple[list[int], int]) -> list[float]:
    """Quotients of integers in units of powers of two, each rounded once; NaN for a divisor of 0."""
    unit = above[1] - below[1]
    up, down = max(unit, 0), max(-unit, 0)
    return [_divided(a << up, b << down) for a, b in zip(above[0], below[0], strict=True)]


def _divided(a: int, b: int) -> float:
    if not b:
        return math.nan
    try:
        return a / b
    except OverflowError:
        return math.inf if (a > 0) == (b > 0) else -math.inf


def fraction(value: int, unit: int) -> Fraction:
    """`value * 2 ** unit`."""
    if unit >= 0 or not value:
        return Fraction(value << max(unit, 0))
    zeros = min((value & -value).bit_length() - 1, -unit)  # taken out by a shift, which is faster than a gcd
    if zeros == -unit:
        return Fraction(value >> zeros)
    return Fraction(value >> zeros, 1 << (-unit - zeros))
