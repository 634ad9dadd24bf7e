"""Exact sums of the points of each cluster, which centroids and variances are computed from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from assay.errors import ConfigError, DtypeError, ShapeError, describe
from assay.native import clusters as native
from assay.native.library import takes
from assay.native.sums import DTYPES
from assay.tally.base import BAD_WEIGHTS, Batch, BatchLayout, InvalidValues, Rule, State, Tally, bad_weights, shown
from assay.tally.conservation import BrokenLaw, HostCount, Laws, between, no_sum_without_counts, not_negative
from assay.tally.layout_checks import AS_INTEGERS, check_real, check_weights
from assay.tally.row_cells import RowCells
from assay.tally.sums import exact
from assay.tally.sums.fingerprints import (
    Fingerprint,
    FingerprintSize,
    of_limbs,
    of_limbs_at,
    of_places,
    of_table,
    reduced,
    residues,
    residues_at,
    times,
)
from assay.tally.sums.row_sums import add_products

NOT_FINITE = "points are NaN or infinite"


@dataclass(frozen=True, eq=False)
class ClusterTotals:
    """Exact sums on the CPU, of the clusters that have weight.

    Attributes:
        weights: of each cluster; without weights the number of its points.
        sums: for each cluster the sum of every feature, in units of `2 ** unit`.
        unit: of the sums.
        squares: the sum of the squares of all features of all points.
    """

    weights: Sequence[Fraction]
    sums: Sequence[Sequence[int]]
    unit: int
    squares: Fraction

    def centroids(self) -> np.ndarray:
        """The mean of each cluster, each number of it rounded once."""
        up, down = 1 << max(self.unit, 0), 1 << max(-self.unit, 0)
        parts = [(up * w.denominator, down * w.numerator) for w in self.weights]  # Python divides integers correctly
        return np.array([[x * a / b for x in row] for row, (a, b) in zip(self.sums, parts, strict=True)])

    def spread(self) -> tuple[Fraction, Fraction]:
        """The sums of squared distances between the centroids and the mean, and between points and their centroids."""
        scale, below = exact.fraction(1, 2 * self.unit), math.lcm(*(w.numerator for w in self.weights))
        above = sum(
            _squared(row) * w.denominator * (below // w.numerator)
            for row, w in zip(self.sums, self.weights, strict=True)
        )
        each = Fraction(above, below) * scale
        total = Fraction(_squared([sum(column) for column in zip(*self.sums, strict=True)]))
        mean = total / sum(self.weights) * scale
        return each - mean, self.squares - each


def _squared(values: Sequence[int]) -> int:
    return sum(value * value for value in values)


class _Terms(NamedTuple):
    """Points as they are counted: clusters, 1 where they count, what is summed, weights, and how many are invalid."""

    cluster: Tensor
    counted: Tensor
    points: Tensor
    weights: Tensor | None
    invalid: Tensor

    @property
    def factors(self) -> list[Tensor]:
        """What is multiplied and summed: each number of each point, and its weight."""
        weights = [] if self.weights is None else [self.weights[:, None].expand_as(self.points).contiguous()]
        return [self.points, *weights]

    def channel(self) -> Tensor:
        """The place of each number of each point among the features of all clusters."""
        features = self.points.shape[1]
        return self.cluster[:, None] * features + torch.arange(features, device=self.points.device)


@dataclass(frozen=True)
class ClusterSums(Tally):
    """The exact sum of `preds (N, num_features)` of each cluster, `target (N,)`, and the sum of all squares.

    State, all int64: `count` of shape `(num_classes,)`; `invalid` of shape `(3,)`, the numbers of points that are not
    finite, of labels out of range, and of invalid weights; `sums`, limbs of shape `(num_classes, num_features, words)`;
    `squares`, limbs of one sum; weighted also `weights`, limbs of shape `(num_classes, words)`. Size: 0.6 KiB for each
    feature of each cluster, and 1.1 weighted.
    """

    num_classes: int
    num_features: int
    weighted: bool = False

    def __post_init__(self) -> None:
        for name, least in (("num_classes", 2), ("num_features", 1)):
            if getattr(self, name) < least:
                do = f"Give the number of {'clusters' if least == 2 else 'features of a point'}"
                raise ConfigError(describe(name, getattr(self, name), f"{least} or more", do))

    @property
    def fields(self) -> Mapping[str, Rule]:
        return dict.fromkeys(["count", "invalid", "sums", "squares", *["weights"] * self.weighted], "sum")

    def check(self, layout: BatchLayout) -> None:
        check_points(layout, self.num_features)

    def zero(self, device: torch.device) -> State:
        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.int64, device=device)

        order = 1 + self.weighted
        state = {
            "count": zeros(self.num_classes),
            "invalid": zeros(3),
            "sums": zeros(self.num_classes, self.num_features, exact.num_limbs(order)),
            "squares": zeros(1, exact.num_limbs(order + 1)),
        }
        return state | ({"weights": zeros(self.num_classes, exact.num_limbs(1))} if self.weighted else {})

    def add(self, state: State, batch: Batch) -> None:
        if batch.compiled and self.add_without_squares(state, batch):
            numbers = batch.preds.reshape(-1, 1)
            add_products(state["squares"][None], batch, [numbers, numbers])
            return
        of_rows = batch.memoize(self, self._terms)
        state["invalid"] += of_rows.invalid
        state["count"].scatter_add_(0, of_rows.cluster, of_rows.counted)
        if batch.compiled and takes(*of_rows.factors, dtypes=DTYPES):
            self._add_compiled(state, batch, of_rows)
            return
        if of_rows.weights is not None:
            exact.add_to(state["weights"], exact.parts(of_rows.weights), of_rows.cluster)
        points, *weights = map(exact.parts, of_rows.factors)
        values, channel = exact.product(points, weights[0]) if weights else points, of_rows.channel()
        exact.add_to(state["sums"].view(-1, state["sums"].shape[-1]), values, channel)
        exact.add_to(state["squares"], exact.product(values, points), torch.zeros_like(channel))

    def add_without_squares(self, state: State, batch: Batch) -> bool:
        """Count points without weights in one pass, all but their squares; false where one is invalid, or without
        compiled code, and then nothing was counted."""
        cluster = batch.needed_target.to(torch.int64)
        given = state["sums"], state["count"], batch.preds, cluster, exact.origin(1)
        return not self.weighted and native.add_points(*given)

    def _add_compiled(self, state: State, batch: Batch, of_rows: _Terms) -> None:
        cells, factors = RowCells(of_rows.cluster, self.num_classes), of_rows.factors
        add_products(state["sums"], batch, factors, cells=cells)
        numbers, *weights = (each.reshape(-1, 1) for each in factors)
        add_products(state["squares"][None], batch, [numbers, numbers, *weights])
        if of_rows.weights is not None:
            add_products(state["weights"][:, None], batch, [of_rows.weights[:, None]], cells=cells)

    @property
    def fingerprint_size(self) -> FingerprintSize | None:
        return FingerprintSize(2 + self.weighted)

    def fingerprint(self, batch: Batch) -> Fingerprint:
        of_rows = batch.memoize(self, self._terms)
        factors = [reduced(residues(exact.parts(each))) for each in of_rows.factors]
        found = [residues_at(times(*factors), of_rows.channel()), times(*factors, factors[0]).sum()]
        if of_rows.weights is not None:
            found.append(residues_at(residues(exact.parts(of_rows.weights)), of_rows.cluster))
        return Fingerprint(of_places(of_rows.cluster, of_rows.counted), torch.stack(found))

    def fingerprint_of(self, state: State) -> Fingerprint:
        sums = of_limbs_at(state["sums"].view(-1, state["sums"].shape[-1]))
        weights = [of_limbs_at(state["weights"])] if self.weighted else []
        return Fingerprint(of_table(state["count"]), torch.stack([sums, of_limbs(state["squares"])[0], *weights]))

    def _terms(self, batch: Batch) -> _Terms:
        """What is counted of each point, and where."""
        points, labels = batch.preds, batch.needed_target.to(torch.int64)
        cluster = labels.clamp(0, self.num_classes - 1)
        outside, infinite = labels != cluster, ~finite_rows(points)
        counted, bad = ~(outside | infinite), torch.zeros_like(outside)
        weights = None
        if self.weighted and batch.weights is not None:
            bad = bad_weights(batch.weights)
            counted = counted & ~bad & (batch.weights != 0)
            weights = torch.where(counted, batch.weights, 0)
        invalid = torch.stack([infinite.sum(), outside.sum(), bad.sum()])
        return _Terms(cluster, counted.to(torch.int64), torch.where(counted[:, None], points, 0), weights, invalid)

    def canonicalize(self, state: State, rows: int) -> State:
        limbs = ("sums", "squares", *["weights"] * self.weighted)
        return state | {name: exact.canonical(state[name]) for name in limbs}

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        whats = NOT_FINITE, f"labels are outside 0 ... {self.num_classes - 1}", BAD_WEIGHTS
        counts = zip(whats, state["invalid"].tolist(), strict=True)
        return [InvalidValues(what, count) for what, count in counts if count]

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from not_negative(state, "count", "invalid")
        count = state["count"].numpy()
        least = None if self.weighted else given.rows - int(state["invalid"].sum())
        law = "points of clusters and invalid ones are the rows"
        yield from between(law, least, given.rows, int(count.sum()))
        yield from no_sum_without_counts("a cluster without points has no sum", count[:, None], state["sums"])
        if exact.to_integers(state["squares"])[0] < 0:
            yield BrokenLaw("the sum of squares is not negative", "0 or more", "less")

    def compute(self, state: State) -> ClusterTotals:
        occupied = np.flatnonzero(state["count"].numpy())
        order = 1 + self.weighted
        weights = exact.fractions(state["weights"], 1) if self.weighted else [*map(Fraction, state["count"].tolist())]
        sums, unit = exact.integers(state["sums"], order)
        rows = [sums[k * self.num_features : (k + 1) * self.num_features] for k in occupied]
        (squares,) = exact.fractions(state["squares"], order + 1)
        return ClusterTotals([weights[k] for k in occupied], rows, unit, squares)


def check_points(layout: BatchLayout, num_features: int) -> None:
    """Raise where `preds` are no points of so many features, or `target` is no integer for each."""
    preds, target = layout.preds, layout.target
    check_real("preds", preds)
    if preds.tail != (num_features,):
        expected = f"shape (N, {num_features}), a point each row"
        raise ShapeError(describe("preds", f"shape {shown(preds.tail)}", expected, "Check num_features"))
    if target is None or target.tail:
        got = "nothing" if target is None else f"shape {shown(target.tail)}"
        do = "Pass the cluster of each point, or whether features are real (1) or generated (0)"
        raise ShapeError(describe("target", got, "shape (N,)", do))
    if target.dtype.is_floating_point or target.dtype.is_complex:
        raise DtypeError(describe("target", target.dtype, "an integer dtype: the clusters", AS_INTEGERS))
    check_weights(layout.weights)


def finite_rows(values: Tensor) -> Tensor:
    """Which rows have finite numbers only: booleans of shape `(N,)`."""
    if not values.dtype.is_floating_point:
        return torch.ones(len(values), dtype=torch.bool, device=values.device)
    return (values - values == 0).all(1)
