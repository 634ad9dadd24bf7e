"""Exact sums of products of columns of floats of at most 24 significant bits, as limbs of `tally.exact`."""

import triton
import triton.language as tl

_MASK = tl.constexpr(0xFFFFFFFF)
_WORD = tl.constexpr(32)
_INFINITE = tl.constexpr(0x7F800000)
_MANTISSA = tl.constexpr(0x7FFFFF)
_HIDDEN_BIT = tl.constexpr(0x800000)
_MORE_WORDS = tl.constexpr(3)  # of the words that are summed in a program, and one more for each factor


@triton.jit
def _bits(column, row, output, row_stride, output_stride, inside):
    """A tile of a column as the bits of float32, 0 outside."""
    place = row.to(tl.int64)[:, None] * row_stride + output.to(tl.int64)[None, :] * output_stride
    values = tl.load(column + place, mask=inside, other=0)
    if values.dtype == tl.bfloat16:  # the upper half of a float32
        bits = values.to(tl.int16, bitcast=True).to(tl.int32) << 16
    else:
        bits = values.to(tl.float32).to(tl.int32, bitcast=True)
    return bits


@triton.jit
def _count_special(bits, special, nonfinite, output, outputs):
    """Count what is +inf, -inf and NaN in a tile: `special (outputs, 3)` and `nonfinite (outputs,)`."""
    is_special = (bits & _INFINITE) == _INFINITE
    is_nan = is_special & ((bits & _MANTISSA) != 0)
    every = tl.sum(is_special.to(tl.int64), 0)
    nan = tl.sum(is_nan.to(tl.int64), 0)
    minus = tl.sum((is_special & (bits < 0)).to(tl.int64) - (is_nan & (bits < 0)).to(tl.int64), 0)
    found = (every > 0) & (output < outputs)
    tl.atomic_add(nonfinite + output, every, mask=found)
    tl.atomic_add(special + 3 * output, every - minus - nan, mask=found)
    tl.atomic_add(special + 3 * output + 1, minus, mask=found)
    tl.atomic_add(special + 3 * output + 2, nan, mask=found)


@triton.jit
def _add_words(start, word, digits, FACTORS: tl.constexpr, known):
    """Add numbers to the limbs that begin at `start`: `digits[k]` goes to the word `word + k`.

    The words below the largest number of each output are summed in the program first, and the few digits that lie
    below those are added one by one. Integers are added, so the order does not matter.
    """
    window: tl.constexpr = _MORE_WORDS + FACTORS
    first = tl.max(word, 0) + FACTORS - window + 1
    word -= first[None, :]
    for w in tl.static_range(window):
        total = tl.where(word == w, digits[0], 0)
        for k in tl.static_range(1, FACTORS + 1):
            total += tl.where(word == w - k, digits[k], 0)
        sums = tl.sum(total, 0)
        tl.atomic_add(start + first + w, sums, mask=known & (sums != 0))
    for k in tl.static_range(FACTORS + 1):
        tl.atomic_add((start + first)[None, :] + word + k, digits[k], mask=(word < -k) & (digits[k] != 0))


@triton.jit
def _times(low, high, sign, position, bits):
    """A product times numbers: significand in digits of 32 bits, sign (0 where not finite), position."""
    exponent = (bits & _INFINITE) >> 23
    normal = (exponent > 0).to(tl.int32)
    significand = ((bits & _MANTISSA) + normal * _HIDDEN_BIT).to(tl.int64)
    sign *= tl.where(exponent == 255, 0, 1 + 2 * (bits >> 31)).to(tl.int64)
    product = low * significand  # below 2 ** 56
    high = high * significand + (product >> _WORD)  # below 2 ** 41
    return product & _MASK, high, sign, position + exponent - normal


@triton.jit
def _add_product(start, low, high, sign, position, FACTORS: tl.constexpr, known):
    """Add the sums of a product, as `_times` gives it, to the limbs that begin at `start`."""
    shift = (position & 31).to(tl.int64)
    first = low << shift  # below 2 ** 63, as all of these
    second = ((high & _MASK) << shift) + (first >> _WORD)
    third = ((high >> _WORD) << shift) + (second >> _WORD)
    digits = ((first & _MASK) * sign, (second & _MASK) * sign, (third & _MASK) * sign, (third >> _WORD) * sign)
    _add_words(start, position >> 5, digits, FACTORS, known)


@triton.jit(do_not_specialize=["rows"])
def add_products(
    columns,
    row_strides,
    output_strides,
    special,
    nonfinite,
    limbs,
    rows,
    outputs,
    LEAVES: tl.constexpr,
    PRODUCTS: tl.constexpr,
    WORDS: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_OUTPUTS: tl.constexpr,
):
    """Add the sums over the rows of all products to their limbs, and count what is not finite.

    Args:
        columns: tensors of shape `(rows, outputs)`, with their strides.
        special, nonfinite: int64 of shape `(LEAVES, outputs, 3)` and `(LEAVES, outputs)`, of the first columns.
        limbs: for each order of terms a tensor of shape `(terms, outputs, words)`; `WORDS` has their words.
        PRODUCTS: for each product the index of its limbs and of its term there, the bit of the limbs at which a product
            of the smallest numbers begins, and the indexes of its columns.
    """
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    output = tl.program_id(1) * BLOCK_OUTPUTS + tl.arange(0, BLOCK_OUTPUTS)
    inside = (row < rows)[:, None] & (output < outputs)[None, :]
    for leaf in tl.static_range(LEAVES):
        bits = _bits(columns[leaf], row, output, row_strides[leaf], output_strides[leaf], inside)
        _count_special(bits, special + leaf * outputs * 3, nonfinite + leaf * outputs, output, outputs)
    for p in tl.static_range(len(PRODUCTS)):
        low = tl.full([BLOCK_ROWS, BLOCK_OUTPUTS], 1, tl.int64)
        high = tl.zeros([BLOCK_ROWS, BLOCK_OUTPUTS], tl.int64)
        sign = inside.to(tl.int64)
        position = tl.full([BLOCK_ROWS, BLOCK_OUTPUTS], PRODUCTS[p][2], tl.int32)
        for k in tl.static_range(3, len(PRODUCTS[p])):
            strides = row_strides[PRODUCTS[p][k]], output_strides[PRODUCTS[p][k]]
            bits = _bits(columns[PRODUCTS[p][k]], row, output, strides[0], strides[1], inside)
            low, high, sign, position = _times(low, high, sign, position, bits)
        start = limbs[PRODUCTS[p][0]] + (PRODUCTS[p][1] * outputs + output) * WORDS[PRODUCTS[p][0]]
        _add_product(start, low, high, sign, position, len(PRODUCTS[p]) - 3, output < outputs)


@triton.jit
def _carry(limbs, sums, words: tl.constexpr, BLOCK_SUMS: tl.constexpr, BLOCK_WORDS: tl.constexpr):
    row = tl.program_id(0) * BLOCK_SUMS + tl.arange(0, BLOCK_SUMS)
    word = tl.arange(0, BLOCK_WORDS)
    inside = (row < sums)[:, None] & (word < words)[None, :]
    place = limbs + row[:, None].to(tl.int64) * words + word[None, :]
    own = tl.load(place, mask=inside, other=0)
    before = tl.load(place - 1, mask=inside & (word > 0)[None, :], other=0)
    tl.debug_barrier()  # all words are read before one is written
    rest = tl.where((word < words - 1)[None, :], own & _MASK, own)
    tl.store(place, rest + (before >> _WORD), mask=inside)


@triton.jit
def carry(limbs, sums, WORDS: tl.constexpr, BLOCK_SUMS: tl.constexpr, BLOCK_WORDS: tl.constexpr):
    """One carry to the next word, in place: `limbs[k]` are `sums[k]` sums of `WORDS[k]` words."""
    for k in tl.static_range(len(WORDS)):
        if tl.program_id(1) == k:
            _carry(limbs[k], sums[k], WORDS[k], BLOCK_SUMS, BLOCK_WORDS)
