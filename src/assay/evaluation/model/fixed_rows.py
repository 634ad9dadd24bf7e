"""Models that take a fixed number of rows: smaller batches are filled up, larger ones are run in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from assay.errors import ShapeError, describe
from assay.evaluation.nested_batch import row_count, structure, take


def rows_of(inputs: Any, do: str) -> int:
    """How many rows the inputs of a model have.

    Args:
        inputs: of the model.
        do: what to do where they have none.

    Raises:
        ShapeError: they have none.
    """
    rows = row_count(inputs)
    if rows is None:
        raise ShapeError(describe("inputs of the program", structure(inputs), "a tensor with rows", do))
    return rows


def in_parts(run: Callable[..., Any], inputs: Any, rows: int, size: int, least: int) -> Any:
    """What a model gives for each row, where it takes at most `size` and at least `least` of them.

    Args:
        run: the model.
        inputs: positional and named arguments.
        rows: how many rows they have.
        size: the most rows of a part.
        least: the fewest; missing ones are copies of the last row, whose outputs are dropped.
    """

    def part(start: int, stop: int) -> Any:
        padded = max(stop - start, least)
        args, kwargs = take(inputs, rows, [min(start + k, stop - 1) for k in range(padded)])
        outputs = run(*args, **kwargs)
        return torch.utils._pytree.tree_map(lambda leaf: _row_part(leaf, padded, stop - start), outputs)

    return _concat([part(start, min(start + size, rows)) for start in range(0, rows, size)])


def _row_part(leaf: Any, padded: int, rows: int) -> Any:
    """The rows of an output; None for what has none, as it was made from copies of rows, too."""
    is_by_row = isinstance(leaf, Tensor) and leaf.ndim and leaf.shape[0] == padded
    return leaf[:rows] if is_by_row else None


def _concat(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    leaves, spec = zip(*(torch.utils._pytree.tree_flatten(part) for part in parts), strict=True)
    joined = [torch.cat(each) if isinstance(each[0], Tensor) else None for each in zip(*leaves, strict=True)]
    return torch.utils._pytree.tree_unflatten(joined, spec[0])
