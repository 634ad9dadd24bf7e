"""Exact sums of products of columns, in one launch: the same limbs as `tally.exact.add_columns`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from assay.triton_kernels.launch import blocks, launch, power_of_two, takes

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
"""Of the columns that it takes."""
MOST_ROWS = 1 << 27
"""At once: sums of so many digits of 32 bits fit int64 with room for what was counted before."""
_TILE = 1024
_WIDEST = 32


def takes_columns(columns: Sequence[Tensor]) -> bool:
    """Whether `add_products` takes these columns."""
    return len(columns[0]) <= MOST_ROWS and takes(*columns, dtypes=DTYPES)


def add_products(
    columns: Sequence[Tensor],
    products: Sequence[tuple[int, ...]],
    limbs: Sequence[Tensor],
    special: Tensor,
    nonfinite: Tensor,
) -> bool:
    """Add sums over rows of products of columns to limbs, and count what is not finite; false if nothing was done.

    Args:
        columns: of shape `(rows, outputs)`.
        products: for each the index of its limbs, the index of its sums there, the bit of the limbs that a product of
            the smallest denormals is, and the indexes of one to three columns. Rows in which a factor is not finite
            are left out.
        limbs: int64 of shape `(terms, outputs, words)`; `carry` must follow.
        special: int64 of shape `(leaves, outputs, 3)`: how many values of the first columns are +inf, -inf and NaN.
        nonfinite: int64 of shape `(leaves, outputs)`: how many are any of these.
    """
    rows, outputs = columns[0].shape
    block_outputs = power_of_two(outputs, _WIDEST)
    block_rows = _TILE // block_outputs
    return launch(
        "sums.add_products",
        (blocks(rows, block_rows), blocks(outputs, block_outputs)),
        tuple(columns),
        tuple(column.stride(0) for column in columns),
        tuple(column.stride(1) for column in columns),
        special,
        nonfinite,
        tuple(limbs),
        rows,
        outputs,
        LEAVES=len(special),
        PRODUCTS=tuple(products),
        WORDS=tuple(each.shape[-1] for each in limbs),
        BLOCK_ROWS=block_rows,
        BLOCK_OUTPUTS=block_outputs,
    )


def carry(limbs: Sequence[Tensor]) -> bool:
    """One carry to the next word in all limbs, as `tally.exact.carry` does it; false if nothing was done."""
    sums = tuple(each.numel() // each.shape[-1] for each in limbs)
    words = tuple(each.shape[-1] for each in limbs)
    block_words = power_of_two(max(words), _TILE)
    block_sums = max(1, _TILE // block_words)
    grid = (blocks(max(sums), block_sums), len(limbs))
    return launch("sums.carry", grid, tuple(limbs), sums, WORDS=words, BLOCK_SUMS=block_sums, BLOCK_WORDS=block_words)
