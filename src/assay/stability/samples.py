"""Some samples of any data that `evaluate` takes, as one batch of arguments of the model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from assay.data import Data
from assay.data.options import ModelNeeds
from assay.errors import ConfigError, describe
from assay.evaluation.arguments.in_memory import open_in_memory
from assay.evaluation.arguments.named_files import open_named, options_with
from assay.evaluation.arguments.options import EvaluateOptions
from assay.evaluation.data.batch import Arguments, Reader
from assay.evaluation.data.data_source import check_iterable, is_dataset
from assay.evaluation.model.forward import float_dtype
from assay.evaluation.nested_batch import mapped, row_count, structure, take


@dataclass(frozen=True)
class SampledInputs:
    """Samples as the model takes them.

    Args:
        arguments: positions and keywords of a call with all samples.
        rows: how many samples there are.
        preds: finds the predictions in what the model gives.
    """

    arguments: Arguments
    rows: int
    preds: Callable[[Any], Any]

    def batch(self, index: list[int], dtype: torch.dtype | None = None) -> Arguments:
        """The arguments for some samples, in memory of their own; floats in a dtype where one is given."""

        def own(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return leaf
            return leaf.to(dtype, copy=True) if dtype is not None and leaf.is_floating_point() else leaf.clone()

        args, kwargs = mapped(take(self.arguments, self.rows, index), own)
        return args, kwargs


def read_samples(model: Callable[..., Any], data: Any, count: int, options: EvaluateOptions) -> SampledInputs:
    """The first samples of data.

    Args:
        model: what takes them.
        data: a tensor, or what `evaluate` takes.
        count: how many samples at most.
        options: which parts of a batch are inputs.

    Raises:
        ConfigError: there are fewer than two samples, or parts are not there.
    """
    options, batches = _batches(model, data, count, options)
    reader = Reader(
        model, inputs=options.inputs, target=options.target, weights=options.weights, ids=options.ids,
        preds=options.preds, columns=options.columns,
    )  # fmt: skip
    arguments, rows = _joined((reader.read(each)[0] for each in batches), count)
    if rows < 2:
        do = "Pass 64 samples or more"
        raise ConfigError(describe("data", f"{rows} samples", "two samples or more, to change their batches", do))
    return SampledInputs(arguments, rows, reader.preds)


def _batches(
    model: Callable[..., Any], data: Any, count: int, options: EvaluateOptions
) -> tuple[EvaluateOptions, Iterable[Any]]:
    data = (data,) if isinstance(data, Tensor) else data
    needs = ModelNeeds(dtype=float_dtype(model))
    if isinstance(data, str | os.PathLike):
        without = options if options.target is not None else replace(options, target="")  # one is not needed
        data = open_named(data, without, needs, {})
    if isinstance(data, Data):
        data, options = data.data, options_with(data, options, {})
    data, options = open_in_memory(data, options, needs)
    if is_dataset(data):
        return options, DataLoader(data, batch_size=count)
    check_iterable(data)
    return options, data


def _joined(parts: Iterator[Arguments], count: int) -> tuple[Arguments, int]:
    """The rows of the first batches as one, or of the first one where the next has another layout."""
    found = next(parts, None)
    rows = 0 if found is None else row_count(found) or 0
    while found is not None and 0 < rows < count and (more := next(parts, None)) is not None:
        added = row_count(more) or 0
        if _layout(found, rows) != _layout(more, added):
            break
        found = _appended(found, more)
        rows += added
    if found is None:
        return ((), {}), 0
    return (found if rows <= count else take(found, rows, slice(0, count))), min(rows, count)


def _appended(found: Arguments, more: Arguments) -> Arguments:
    rest = iter(_tensors(more))
    args, kwargs = mapped(found, lambda leaf: torch.cat([leaf, next(rest)]) if _is_rows(leaf) else leaf)
    return args, kwargs


def _is_rows(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.ndim > 0


def _tensors(tree: Any) -> list[Tensor]:
    found: list[Tensor] = []
    mapped(tree, lambda leaf: found.append(leaf) if _is_rows(leaf) else None)
    return found


def _layout(tree: Any, rows: int) -> str | None:
    """What two batches must have in common to be joined; None where parts have no row a sample."""
    if any(each.shape[0] != rows for each in _tensors(tree)):
        return None
    return structure(mapped(tree, lambda leaf: leaf[:0] if _is_rows(leaf) else leaf))


def groups_of(rows: int, size: int) -> list[list[int]]:
    """All samples in batches of a size.

    Example:
        >>> groups_of(5, 2)
        [[0, 1], [2, 3], [4]]
    """
    every = iter(range(rows))
    return list(iter(lambda: list(islice(every, size)), []))


def other_neighbours(rows: int, size: int) -> tuple[list[list[int]], list[list[int]]]:
    """Batches, and batches in which every sample has the same place and other neighbours.

    Example:
        >>> other_neighbours(7, 2)
        ([[0, 1], [2, 3], [4, 5]], [[0, 3], [2, 5], [4, 1]])
    """
    count = rows // size
    first = [list(range(k * size, (k + 1) * size)) for k in range(count)]
    return first, [[(k + place) % count * size + place for place in range(size)] for k in range(count)]


def samples_in(groups: list[list[int]]) -> list[int]:
    """The samples of batches, in their order."""
    return list(chain.from_iterable(groups))
