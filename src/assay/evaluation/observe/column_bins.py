"""A column of numbers as slices: ranges that hold about as many samples each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from assay.errors import ConfigError, describe
from assay.evaluation.observe.slice_values import MISSING

MAX = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class ColumnBins:
    """The range that each sample of a batch falls into.

    Args:
        column: the name of the column.
        edges: rising numbers; a bin holds its lower edge and not its upper one, the last bin holds both. Infinite
            numbers have bins of their own, unless the edges are infinite.
    """

    column: str
    edges: tuple[float, ...]

    @classmethod
    def of(cls, column: str, values: Any, count: int) -> Self:
        """Bins between quantiles of all values; fewer than asked for where many values are equal.

        Example:
            >>> ColumnBins.of("age", [20, 30, 30, 40, 50, 60], 3).labels
            ('[20, 30)', '[30, 50)', '[50, 60]')
        """
        where = f"--slice {column}:bins={count}"
        if count < 2:
            raise ConfigError(describe(where, f"{count} bins", "2 or more", f"Write --slice {column}:bins=5"))
        array = np.asarray(values)
        if array.dtype.kind not in "iuf" or array.ndim != 1:
            got = "a column of text" if array.dtype.kind in "OUS" else f"values of shape {array.shape}, {array.dtype}"
            raise ConfigError(describe(where, got, "one number a sample", f"Slice by its values: --slice {column}"))
        finite = array[np.isfinite(array)]
        if not len(finite):
            raise ConfigError(
                describe(where, "no finite number", "numbers", f"Leave out --slice {column}:bins={count}")
            )
        return cls(column, tuple(quantile_edges(*np.unique(finite, return_counts=True), count).tolist()))

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each bin."""
        edges = _as_text(self.edges)
        bins = [f"[{low}, {high})" for low, high in pairwise(edges)]
        return (*bins[:-1], f"[{edges[-2]}, {edges[-1]}]") if bins else edges

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each bin, and of the values that are in none."""
        return (*self.labels, "-inf", "inf", MISSING)

    def __call__(self, batch: Mapping[str, Any]) -> list[str]:
        """The label of each sample of a batch."""
        names = self.names
        return [names[k] for k in self.places(batch[self.column]).tolist()]

    def places(self, values: Any) -> NDArray[np.int64]:
        """The number of the name of each value, in `names`."""
        numbers, bins = np.asarray(values, dtype=np.float64), max(1, len(self.edges) - 1)
        place = np.clip(np.searchsorted(self.edges, numbers, side="right") - 1, 0, bins - 1)
        place = np.where(numbers < min(self.edges[0], -MAX), bins, place)
        place = np.where(numbers > max(self.edges[-1], MAX), bins + 1, place)
        return np.where(np.isnan(numbers), bins + 2, place)


def quantile_edges(values: NDArray[Any], counts: NDArray[np.int64], bins: int) -> NDArray[Any]:
    """The distinct edges between so many bins of about as many samples each: the quantiles that are values.

    Args:
        values: the distinct values, in their order.
        counts: how many samples have each.
        bins: how many bins.

    Example:
        >>> quantile_edges(np.array([20, 30, 40, 50, 60]), np.array([1, 2, 1, 1, 1]), 3).tolist()
        [20, 30, 50, 60]
    """
    ends = np.cumsum(counts)
    ranks = np.ceil((ends[-1] - 1) * np.linspace(0, 1, bins + 1)).astype(np.int64)
    return np.unique(values[np.searchsorted(ends, ranks, side="right")])


def _as_text(edges: Sequence[float]) -> tuple[str, ...]:
    """Numbers with as few digits as tell them apart, and at least four."""
    for digits in range(4, 17):
        texts = tuple(f"{edge:.{digits}g}" for edge in edges)
        if len(set(texts)) == len(texts):
            return texts
    return tuple(map(repr, edges))
