"""Confusion matrices of groups of samples: the group of each sample is the column `groups` of a batch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from assay.errors import ConfigError, DtypeError, ShapeError, describe
from assay.tally.base import (
    BAD_WEIGHTS,
    Batch,
    BatchLayout,
    InvalidValues,
    Rule,
    State,
    Tally,
    TensorLayout,
    bad_weights,
    shown,
)
from assay.tally.conservation import HostCount, Laws, equal
from assay.tally.labels.confusion import Confusion, Counts, LabelTally, all_targets_counted, confusion_places
from assay.tally.labels.labels import Labels
from assay.tally.stores.sample_store import ANY, SampleStore, canonical
from assay.tally.sums import exact
from assay.tally.sums.fingerprints import Fingerprint
from assay.tally.sums.integer_weights import integer_weights

GROUPS = "groups"
GroupCounts = Mapping[int, Counts]
"""The confusion matrix of each group, by its number, in ascending order."""


@dataclass(frozen=True)
class GroupConfusion(LabelTally):
    """The confusion matrix of each of `num_groups` groups; samples of other groups are counted apart.

    The table has the shape `(num_groups + 1, labels, C + 3, C + 2)`, each part of it as in `Confusion`.
    """

    num_groups: int = 1
    columns: ClassVar[frozenset[str]] = frozenset({GROUPS})

    def __post_init__(self) -> None:
        if self.num_groups < 1:
            raise ConfigError(describe("num_groups", self.num_groups, "1 or more", "Give the number of groups"))
        super().__post_init__()

    @property
    def what_to_reduce(self) -> tuple[str, int, str]:
        return "num_groups", self.num_groups, "Leave num_groups out: then only the groups that occur take memory"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.num_groups + 1, *Confusion(self.labels).shape

    def check(self, layout: BatchLayout) -> None:
        super().check(layout)
        _check_groups(layout)

    def fingerprint(self, batch: Batch) -> Fingerprint:
        return self._fingerprint_at(batch, self._cells(batch))

    def _cells(self, batch: Batch) -> Tensor:
        """The place of each target in the table, laid out flat."""
        groups = _groups_of_targets(batch)
        outside = torch.ne(groups, groups.clamp(0, self.num_groups - 1))
        group = groups.masked_fill(outside, self.num_groups)
        return torch.add(confusion_places(self.labels, batch), group, alpha=math.prod(self.shape[1:]))

    def add(self, state: State, batch: Batch) -> None:
        cell = self._cells(batch)
        state["counts"].view(-1).scatter_add_(0, cell, torch.ones_like(cell))
        if self.weighted:
            exact.add_to(state["weights"].view(-1, exact.num_limbs(1)), self._weights(state, batch), cell)

    def count_invalid(self, counts: np.ndarray) -> tuple[int, int]:
        return Confusion(self.labels).count_invalid(counts[:-1].sum(0))

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        outside = int(state["counts"][-1, :, :-1].sum())
        problem = InvalidValues(f"groups are outside 0 ... {self.num_groups - 1}", outside)
        return [*super().invalid_values(state), *[problem] * (outside > 0)]

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from super().broken_laws(state, given)
        yield from all_targets_counted(state["counts"].numpy().sum((0, 2, 3)), given)

    def compute(self, state: State) -> GroupCounts:
        values, unit = self._values(state)
        return _without_margins(range(self.num_groups), values[:-1], unit)


@dataclass(frozen=True)
class GroupedLabels(Tally):
    """The group of every target, and its cell in the table of `Confusion`, kept: groups are any integers.

    State: one `SampleStore` of two integers a target, and its weight.
    """

    labels: Labels
    weighted: bool = False
    columns: ClassVar[frozenset[str]] = frozenset({GROUPS})
    fields: ClassVar[Mapping[str, Rule]] = {"targets": "samples"}

    def check(self, layout: BatchLayout) -> None:
        self.labels.check(layout)
        _check_groups(layout)

    def zero(self, device: torch.device) -> State:
        columns = {GROUPS: TensorLayout(torch.int64, ()), "cells": TensorLayout(torch.int32, ())}
        return {"targets": SampleStore(columns | ({"weights": TensorLayout(ANY, ())} if self.weighted else {}))}

    def add(self, state: State, batch: Batch) -> None:
        columns = {GROUPS: _groups_of_targets(batch), "cells": confusion_places(self.labels, batch).to(torch.int32)}
        state["targets"].append(**columns | ({"weights": self.labels.weights(batch)} if self.weighted else {}))

    def canonicalize(self, state: State, rows: int) -> State:
        return {"targets": canonical(state["targets"])}

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        counts = torch.zeros(Confusion(self.labels).shape, dtype=torch.int64, device="cpu")
        cells = state["targets"].column("cells").long()
        counts.view(-1).scatter_add_(0, cells, torch.ones_like(cells))
        problems = list(Confusion(self.labels).invalid_values({"counts": counts}))
        if self.weighted:
            bad = int(bad_weights(state["targets"].column("weights")).sum())
            problems += [InvalidValues(BAD_WEIGHTS, bad)] * (bad > 0)
        return problems

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from equal("every target is kept", given.targets, state["targets"].rows)

    def compute(self, state: State) -> GroupCounts:
        store = state["targets"]
        names, group = np.unique(store.column(GROUPS).numpy(), return_inverse=True)
        weights, unit = np.ones(store.rows, dtype=np.int64), 0
        if self.weighted:
            column = store.column("weights")
            weights, unit = integer_weights((column.double() if column.is_floating_point() else column).numpy())
            weights = weights.astype(object)
        shape = Confusion(self.labels).shape
        counts = np.zeros((len(names), math.prod(shape)), dtype=weights.dtype)
        np.add.at(counts, (group, store.column("cells").numpy()), weights)
        return _without_margins(map(int, names), counts.reshape(-1, *shape), unit)


def group_tally(labels: Labels, num_groups: int | None, weighted: bool) -> Tally:
    """A table of a known number of groups, or kept labels of groups that are any integers."""
    return GroupedLabels(labels, weighted) if num_groups is None else GroupConfusion(labels, weighted, num_groups)


def _check_groups(layout: BatchLayout) -> None:
    """Raise when `groups` is no integer for each sample or target."""
    groups, target = layout.columns.get(GROUPS), layout.target
    assert target is not None, "it was checked"
    if groups is None:
        do = "Pass groups=..., a tensor with the group of each sample"
        raise ShapeError(describe(GROUPS, "nothing", "one integer per sample", do))
    if groups.dtype.is_floating_point or groups.dtype.is_complex:
        do = "Pass groups.long(), after NaN was given a group of its own"
        raise DtypeError(describe(GROUPS, groups.dtype, "an integer dtype: the number of each sample's group", do))
    if groups.tail not in ((), target.tail):
        expected = " or ".join(dict.fromkeys(["shape (N,)", f"shape {shown(target.tail)}"]))
        raise ShapeError(describe(GROUPS, f"shape {shown(groups.tail)}", expected, "Give one group per sample"))


def _groups_of_targets(batch: Batch) -> Tensor:
    """The group of every target, int64 of shape `(rows,)`."""
    groups, target = batch.columns[GROUPS].to(torch.int64), batch.needed_target
    if groups.shape != target.shape:
        groups = groups.view(-1, *(1,) * (target.ndim - 1)).expand(target.shape)
    return groups.reshape(-1)


def _without_margins(names: Iterable[int], tables: np.ndarray, unit: int) -> GroupCounts:
    """The matrix of each group, without what was ignored."""
    return {name: Counts(table[:, 1:-2, 1:-1], unit) for name, table in zip(names, tables, strict=True)}
