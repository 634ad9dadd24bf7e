"""Contingency tables: how often each pair of labels occurs, for labels that may be any numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from assay.errors import DtypeError, describe
from assay.native.readings import pairs_of_labels
from assay.tally.base import BatchLayout, InvalidValues, State
from assay.tally.labels.confusion import Counts
from assay.tally.stores.sample_store import SampleStore
from assay.tally.stores.samples import SampleArrays, UnorderedSamples
from assay.tally.sums.integer_weights import integer_weights

Whole = np.ndarray[Any, Any]
NanStrategy = Literal["drop", "replace"]


@dataclass(frozen=True, eq=False)
class ContingencyTable:
    """The cells of a contingency table that have counts, as Python integers in units of `2 ** unit`.

    Attributes:
        counts: of each cell.
        preds: the row of each cell, an index of `preds_totals`.
        target: the column of each cell, an index of `target_totals`.
        preds_totals: the sum of each row.
        target_totals: the sum of each column.
        unit: 0 where the samples had no weights; the counts are then numbers of samples.
    """

    counts: Whole
    preds: Whole
    target: Whole
    preds_totals: Whole
    target_totals: Whole
    unit: int = 0

    @cached_property
    def size(self) -> int:
        """The sum of all counts."""
        return int(self.counts.sum()) if len(self.counts) else 0

    def matrix(self) -> Whole:
        """The whole table, of shape `(clusters, classes)`."""
        matrix = np.zeros((len(self.preds_totals), len(self.target_totals)), dtype=object)
        matrix[self.preds, self.target] = self.counts
        return matrix

    @classmethod
    def of(cls, counts: Counts | SampleArrays) -> ContingencyTable:
        """The table of a confusion matrix, or of labels that were kept."""
        return cls.of_matrix(counts) if isinstance(counts, Counts) else cls.of_samples(counts)

    @classmethod
    def of_samples(cls, samples: SampleArrays) -> ContingencyTable:
        """The table of labels that were kept."""
        preds, target = samples["preds"].reshape(-1), samples["target"].reshape(-1)
        weights, unit = None, 0
        if samples.weights is None and (table := _small_table(preds, target)) is not None:
            return cls.of_counts(table)
        if samples.weights is not None:
            has_weight = samples.weights.reshape(-1) > 0
            preds, target = preds[has_weight], target[has_weight]
            weights, unit = integer_weights(samples.weights.reshape(-1)[has_weight])
        row, column = (np.unique(labels, return_inverse=True)[1] for labels in (preds, target))
        columns = int(column.max(initial=-1)) + 1
        cell = row * columns + column
        if weights is None:
            cell, counts = np.unique(cell, return_counts=True)
        else:
            cell, place = np.unique(cell, return_inverse=True)
            counts = _sums(place, weights, len(cell))
        return cls.of_cells(cell // max(columns, 1), cell % max(columns, 1), counts, unit)

    @classmethod
    def of_counts(cls, table: Whole) -> ContingencyTable:
        """The table of a matrix of counts, some of whose rows and columns may be 0."""
        rows, columns = table.sum(1), table.sum(0)
        if np.count_nonzero(rows) < len(rows) or np.count_nonzero(columns) < len(columns):
            table, rows, columns = table[rows > 0][:, columns > 0], rows[rows > 0], columns[columns > 0]
        row, column = table.nonzero()
        return cls(table[row, column].astype(object), row, column, rows.astype(object), columns.astype(object))

    @classmethod
    def of_store(cls, samples: SampleStore) -> ContingencyTable | None:
        """The table of labels that a store on the CPU has, in compiled code; None where that does not take them."""
        found = pairs_of_labels(samples.given_column("preds"), samples.given_column("target"))
        if found is None:
            return None
        counts, rows, columns = (each.astype(object) for each in (found.counts, *found[3:]))
        return cls(counts, found.preds, found.target, rows, columns)

    @classmethod
    def of_matrix(cls, counts: Counts) -> ContingencyTable:
        """The table of a confusion matrix, without what does not occur."""
        target, preds = np.nonzero(counts.values[0])
        row, column = (np.unique(labels, return_inverse=True)[1] for labels in (preds, target))
        return cls.of_cells(row, column, counts.values[0][target, preds], counts.unit)

    @classmethod
    def of_cells(cls, preds: Whole, target: Whole, counts: Whole, unit: int) -> ContingencyTable:
        """The table of these cells, in the largest unit."""
        if unit and len(counts):
            shift = min((int(count) & -int(count)).bit_length() - 1 for count in counts)
            counts, unit = counts >> shift, unit + shift
        rows, columns = (_sums(labels, counts, int(labels.max(initial=-1)) + 1) for labels in (preds, target))
        return cls(counts.astype(object), preds, target, rows.astype(object), columns.astype(object), unit)


def _small_table(preds: Whole, target: Whole) -> Whole | None:
    """How often integer labels that lie close together occur with each other: a row for each that `preds` may have.

    None of labels that are floats, or of which there may be many more than samples.
    """
    if not len(preds) or preds.dtype != np.int64 or target.dtype != np.int64:
        return None
    first, last, low, high = (int(each) for each in (preds.min(), preds.max(), target.min(), target.max()))
    shape = last - first + 1, high - low + 1
    if shape[0] * shape[1] > 4 * len(preds):
        return None
    return np.bincount((preds - first) * shape[1] + (target - low), minlength=shape[0] * shape[1]).reshape(shape)


def _sums(index: Whole, values: Whole, size: int) -> Whole:
    """The sum of the values of each index."""
    sums = np.zeros(size, dtype=values.dtype)
    np.add.at(sums, index, values)
    return sums


@dataclass(frozen=True)
class LabelPairs(UnorderedSamples):
    """The two labels of every sample, kept: labels are any integers, and nobody said how many there are.

    Args:
        floats: labels may be floats, too.
        nan_strategy: what is done with a sample that has a NaN: it is an error, dropped, or the NaN is replaced,
        nan_replace_value: by this label.
    """

    floats: bool = False
    nan_strategy: NanStrategy | None = None
    nan_replace_value: float = 0.0

    def check(self, layout: BatchLayout) -> None:
        super().check(layout)
        for name, column in (("preds", layout.preds), ("target", layout.target)):
            if column is not None and column.dtype.is_floating_point and not self.floats:
                do = f"Pass {name}.long(), or {name}.argmax(1) of scores"
                raise DtypeError(describe(name, column.dtype, "labels of an integer dtype", do))

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        return [
            each if each.fatal else InvalidValues("labels are NaN", each.count)
            for each in super().invalid_values(state)
            if each.fatal or self.nan_strategy is None
        ]

    def compute(self, state: State) -> SampleArrays:
        """The labels, without NaN."""
        samples = super().compute(state)
        preds, target, weights = samples["preds"], samples["target"], samples.weights
        if preds.dtype.kind != "f" and target.dtype.kind != "f":  # which have no NaN
            return samples
        if self.nan_strategy == "replace":
            value = self.nan_replace_value
            preds, target = (np.where(np.isnan(labels), value, labels) for labels in (preds, target))
        elif self.nan_strategy == "drop":
            labelled = ~(np.isnan(preds) | np.isnan(target))
            preds, target = preds[labelled], target[labelled]
            weights = None if weights is None else weights[labelled]
        return SampleArrays({"preds": preds, "target": target}, weights)
