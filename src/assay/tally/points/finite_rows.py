"""Kept rows of finite numbers: points with their clusters, features of two groups, and pairs of points."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from assay.tally.base import BAD_WEIGHTS, Batch, BatchLayout, InvalidValues, State, bad_weights, compute_batches
from assay.tally.layout_checks import check_weights
from assay.tally.points.cluster_sums import NOT_FINITE, ClusterSums, ClusterTotals, check_points, finite_rows
from assay.tally.stores.row_store import RowStore
from assay.tally.stores.sample_store import SampleStore
from assay.tally.sums import exact

_SLICE_BYTES = 1 << 26
"""Of the sums of kept points that are there at a time."""


@dataclass(frozen=True, eq=False)
class PointArrays:
    """Rows that have weight, in any order unless `in_order` gives one.

    Attributes:
        preds: float64 of shape `(N, D)`.
        target: float64 of shape `(N, E)`, or the number of each row's cluster, int64 of shape `(N,)`.
        weights: float64 of shape `(N,)`; None where there are none.
    """

    preds: np.ndarray
    target: np.ndarray
    weights: np.ndarray | None

    def in_order(self) -> PointArrays:
        """The same, sorted by their values: in one order for all dtypes in which they may have come."""
        columns = [each for each in (self.preds, self.target, self.weights) if each is not None]
        order = np.lexsort([key for each in reversed(columns) for key in np.atleast_2d(each.T)[::-1]])
        weights = None if self.weights is None else self.weights[order]
        return PointArrays(self.preds[order], self.target[order], weights)


@dataclass(frozen=True)
class FiniteRows(RowStore):
    """Every row of `preds (N, D)`, and of `target`: `(N, E)`, or the cluster of each row, an integer.

    State: that of `RowStore`. Rows that are not finite are invalid.
    """

    def check(self, layout: BatchLayout) -> None:
        if self.target == ():
            check_points(layout, *self.preds)
        else:
            super().check(layout)
            check_weights(layout.weights)

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        store = state["rows"]
        columns = [_column(store, name) for name in ("preds", *["target"] * bool(self.target))]
        problems = [InvalidValues(NOT_FINITE, _count_infinite(columns))]
        if self.weighted:
            problems.append(InvalidValues(BAD_WEIGHTS, int(bad_weights(store.column("weights")).sum())))
        return [problem for problem in problems if problem.count]

    def settle(self, state: State, rows: int) -> State:
        return state if self.target == () else super().settle(state, rows)  # no metric depends on the order of points

    def compute(self, state: State) -> PointArrays:  # type: ignore[override]  # the columns as arrays
        """The rows, with numbers from 0 on as their clusters; sorted by their values where they have no clusters."""
        points = self._rows(state)
        return replace(points, target=_numbered(points.target)) if self.target == () else points.in_order()

    def _rows(self, state: State) -> PointArrays:
        arrays = {}
        for name in self._tails:
            column = _column(state["rows"], name)
            arrays[name] = (column if name == "target" and not self.target else column.double()).numpy()
        if self.weighted:
            has_weight = arrays["weights"] > 0
            arrays = {name: each[has_weight] for name, each in arrays.items()}
        return PointArrays(arrays["preds"], arrays["target"], arrays.get("weights"))


def _column(store: SampleStore, name: str) -> Tensor:
    """All rows of a column on the CPU, which nobody may change: those of a single block are not copied."""
    blocks = store.blocks()
    return blocks[0][name] if len(blocks) == 1 else store.column(name)


def _numbered(labels: np.ndarray) -> np.ndarray:
    """For each of these integers the number of smaller ones that are among them."""
    if len(labels) and labels.dtype == np.int64 and labels.min() >= 0 and labels.max() < len(labels):
        present = np.bincount(labels) > 0  # no sorting
        numbers: np.ndarray = (np.cumsum(present) - 1)[labels]
    else:
        numbers = np.unique(labels, return_inverse=True)[1]
    return numbers


def _count_infinite(columns: Sequence[Tensor]) -> int:
    """In how many rows, on the CPU, a number is not finite."""
    if all(math.isfinite(each.sum().item()) for each in columns):  # the usual case; sums of finite numbers may not be
        return 0
    finite = finite_rows(columns[0])
    for each in columns[1:]:
        finite = finite & finite_rows(each)
    return int((~finite).sum())


TARGET_RANGE = "target is neither 0 (generated) nor 1 (real)"


@dataclass(frozen=True)
class FeatureGroups(FiniteRows):
    """The features of generated and of real samples: `target` is 0 and 1."""

    def settle(self, state: State, rows: int) -> State:
        return self.canonicalize(state, rows)

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        target = state["rows"].column("target").to(torch.int64)
        wrong = int((target != target.clamp(0, 1)).sum())
        return [*super().invalid_values(state), *[InvalidValues(TARGET_RANGE, wrong)] * (wrong > 0)]

    def compute(self, state: State) -> tuple[PointArrays, PointArrays]:  # type: ignore[override]  # one for each group
        """The generated and the real samples."""
        points = self._rows(state).in_order()
        first, second = (
            PointArrays(
                points.preds[rows], points.target[rows], None if points.weights is None else points.weights[rows]
            )
            for rows in (points.target == 0, points.target == 1)
        )
        return first, second


def totals_of_points(points: PointArrays, needs_squares: bool = True) -> Iterator[ClusterTotals]:
    """The sums of kept points and their clusters, for some features after the others, so that memory is bounded.

    Args:
        points: those.
        needs_squares: whether their squares are summed; otherwise their sum may be 0.
    """
    weighted, clusters = points.weights is not None, max(2, int(points.target.max(initial=0)) + 1)
    width = max(1, _SLICE_BYTES // (8 * exact.num_limbs(1 + weighted) * clusters))
    cluster = torch.from_numpy(points.target)
    weights = None if points.weights is None else torch.from_numpy(points.weights)
    for start in range(0, points.preds.shape[1], width):
        some = torch.from_numpy(np.ascontiguousarray(points.preds[:, start : start + width]))
        tally = ClusterSums(clusters, some.shape[1], weighted)
        if not needs_squares:
            state = tally.zero(torch.device("cpu"))
            if tally.add_without_squares(state, Batch(some, cluster)):
                yield tally.compute(state)
                continue
        step = max(1, (1 << 20) // some.shape[1])
        parts = (slice(first, first + step) for first in range(0, len(some), step))
        batches = (
            Batch(some[rows], cluster[rows], None if weights is None else weights[rows], compiled=True)
            for rows in parts
        )
        yield compute_batches(tally, *batches)
