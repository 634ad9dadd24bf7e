"""Tallies of samples that were resampled: weighted sums of the states of groups of samples.

A replicate draws how often each group counts, from Poisson(1). Its state is then the sum of the groups' states times
these integers: exact, and the same bits however the samples of the groups were counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.stats.bootstrap import LEAST, Whole
from assay.tally.base import InvalidValues, State, Tally, merge
from assay.tally.composite import CompositeTally
from assay.tally.stores.sample_store import SampleStore

CHUNK_BYTES = 1 << 26  # of the states of replicates that are there at a time
READ_ELEMENTS = 1 << 24
"""How many kept numbers, or cells of large tables, the replicates of one tally may read in all."""

_EXACT = 1 << 53  # integers up to here are exact in float64, in which products of matrices are fast
_HALF = 31  # bits


@dataclass(frozen=True, eq=False)
class GroupStates:
    """The states of one tally for groups of samples.

    Args:
        tally: what was counted.
        states: of each group, on the CPU; canonical or not.
        rows: how many samples each group has.
        stacked: the same states with a first dimension for the groups, where they are known so.
    """

    tally: Tally
    states: Sequence[State]
    rows: Whole
    stacked: State | None = None

    def replicates(self, draws: Whole, wanted: Tally) -> Iterator[State]:
        """The canonical state of `wanted` for each of the draws."""
        if any(rule in ("samples", "late") for rule in self.tally.fields.values()):
            return self._one_by_one(draws, wanted)
        return self._together(draws, wanted)

    def readings(self, draws: Whole, wanted: Tally) -> Iterator[Any]:
        """What `wanted` computes for each of the draws."""
        compute = self._compute_repeated() if wanted == self.tally else None
        return map(compute or wanted.compute, draws if compute else self.replicates(draws, wanted))

    def _compute_repeated(self) -> Callable[[Whole], Any] | None:
        """What the tally computes of a draw, where it keeps samples and sorts them but once."""
        group = self.sample_groups
        compute = None if group is None else self.tally.compute_repeated(self.whole)
        return None if compute is None else lambda times: compute(times[group])

    @cached_property
    def sample_groups(self) -> Whole | None:
        """The group of each sample that is kept, in the order of `whole`; None where no single store holds them."""
        names = [name for name, rule in self.tally.fields.items() if rule == "samples"]
        if len(names) != 1 or any(names[0] not in state for state in self.states):
            return None
        return np.repeat(np.arange(len(self.states)), [state[names[0]].rows for state in self.states])

    @cached_property
    def whole(self) -> State:
        """The state of all samples; those that are kept are in the order of the groups."""
        return merge(self.tally, self.states)

    def affordable(self, n_resamples: int, budget: int | None = None) -> int:
        """How many replicates to read: fewer where each has to sort many samples or to go through a large table.

        The budget is `READ_ELEMENTS` by default.
        """
        budget = READ_ELEMENTS if budget is None else budget
        stores = [value for state in self.states for value in state.values() if isinstance(value, SampleStore)]
        rows = sum(store.rows * sum(math.prod(each.tail) for each in store.columns.values()) for store in stores)
        late = [name for name, rule in self.tally.fields.items() if rule == "late"]
        cells = max((state[name].numel() for state in self.states for name in late if name in state), default=0)
        elements = rows + cells
        return n_resamples if not elements else min(n_resamples, max(LEAST, budget // elements))

    def _together(self, draws: Whole, wanted: Tally) -> Iterator[State]:
        """Of tables of a fixed shape: many replicates at a time."""
        rows = int(self.rows.sum())
        for states in self.tables(draws):
            for k in range(len(next(iter(states.values())))):
                yield self._read_form({name: values[k] for name, values in states.items()}, rows, wanted)

    def tables(self, draws: Whole) -> Iterator[State]:
        """The tables of many draws at a time, which have a dimension of the draws before theirs."""
        stacked = self.stacked
        if stacked is None:
            stacked = {name: torch.stack([state[name] for state in self.states]) for name in self.tally.fields}
        size = max(1, CHUNK_BYTES // max(1, sum(stack[0].nbytes for stack in stacked.values())))
        for start in range(0, len(draws), size):
            some = draws[start : start + size]
            yield {name: self._combined(name, some, stack) for name, stack in stacked.items()}

    def _read_form(self, state: State, rows: int, wanted: Tally) -> State:
        canonical = self.tally.canonicalize(state, rows)
        return canonical if wanted == self.tally else self.tally.extract(canonical, wanted)

    def _combined(self, name: str, draws: Whole, stacked: Tensor) -> Tensor:
        """A field of each replicate, of shape `(n_resamples, *shape)`."""
        if self.tally.fields[name] == "max":
            nothing = self.tally.zero(torch.device("cpu"))[name]
            return torch.stack(
                [torch.cat([stacked[torch.from_numpy(row > 0)], nothing[None]]).amax(0) for row in draws]
            )
        return torch.from_numpy(combined(draws, stacked.flatten(1).numpy())).view(len(draws), *stacked.shape[1:])

    def _one_by_one(self, draws: Whole, wanted: Tally) -> Iterator[State]:
        """Of samples that were kept, or tables that may be absent."""
        whole = self.whole
        late = any(rule == "late" and name in whole for name, rule in self.tally.fields.items())
        samples = [name for name in whole if isinstance(whole[name], SampleStore)]
        stores = {name: _GroupSamples.of(name, whole[name], self.states) for name in samples}
        tables = {name: self._table(name, whole[name]) for name in whole if name not in stores}
        for row in draws:
            state: State = {name: self._combined(name, row[None], stack)[0] for name, stack in tables.items()}
            state |= {name: store.drawn(row) for name, store in stores.items()}
            ragged = len(stores) > 1  # several stores, whose canonical order decides in which one terms are added
            if late or not stores or ragged or isinstance(self.tally, CompositeTally):  # some may keep no samples
                yield self._read_form(state, int(row @ self.rows), wanted)
            else:  # samples need no order to be read
                yield state if wanted == self.tally else self.tally.extract(state, wanted)

    def _table(self, name: str, like: Tensor) -> Tensor:
        absent = torch.zeros_like(like)
        return torch.stack([state.get(name, absent) for state in self.states])


class KnownSums(Protocol):
    """What groups contribute to areas under ROC curves, and their tables, without the state of each group."""

    def areas(self, tally: Tally) -> Whole | None:
        """See `Tally.area_sums`; None where it follows from the states."""

    def state(self, tally: Tally) -> State:
        """The state of all groups together without its samples, where `areas` gives something."""

    def tables(self, tally: Tally) -> State | None:
        """The states of a tally with a first dimension for the groups; None where each group has its own."""


@dataclass(frozen=True, eq=False)
class GroupReadings:
    """What a tally computes of each group of samples.

    Args:
        counted: the states of the groups.
        wanted: the tally.
        sums: see `CountedGroups`.
    """

    counted: GroupStates
    wanted: Tally
    sums: KnownSums | None = None

    def __iter__(self) -> Iterator[Any]:
        each = np.eye(len(self.counted.states), dtype=np.int64)
        return map(self.wanted.compute, self.counted.replicates(each, self.wanted))

    @cached_property
    def whole_state(self) -> State:
        """The state of all samples."""
        once = np.ones((1, len(self.counted.states)), np.int64)
        return next(self.counted.replicates(once, self.wanted))

    @cached_property
    def whole(self) -> Any:
        """What the tally computes of all samples."""
        return self.wanted.compute(self.whole_state)

    @cached_property
    def by_group(self) -> tuple[Any, Whole] | None:
        """What the tally computes of all samples in the order of the groups, and the group of each."""
        counted = self.counted
        if self.wanted != counted.tally:
            return None
        return self.wanted.compute(counted.whole), np.repeat(np.arange(len(counted.states)), counted.rows)

    @cached_property
    def invalid_values(self) -> Sequence[InvalidValues]:
        """What is invalid in all samples."""
        if self.sums is None or self._known_areas is None:
            return self.wanted.invalid_values(self.whole_state)
        return self.wanted.invalid_values(self.sums.state(self.wanted))

    @cached_property
    def _known_areas(self) -> Whole | None:
        """What groups contribute to areas, where their states need not be made for it."""
        return self.sums.areas(self.wanted) if self.sums is not None and self.wanted == self.counted.tally else None

    @cached_property
    def area_sums(self) -> Whole | None:
        """What groups contribute to areas under ROC curves; None where that follows from what is computed of them."""
        if self._known_areas is not None:
            return self._known_areas
        codes, tally = self._codes, self.counted.tally
        return None if codes is None else tally.area_sums(self.counted.whole, codes, len(self.counted.states))

    def pairs_of_draws(self, draws: Whole) -> NDArray[np.float64] | None:
        """The pairs of positives and negatives of draws of the groups; None where each draw must be computed."""
        codes = self._codes
        return None if codes is None else self.counted.tally.pairs_of_draws(self.counted.whole, codes, draws)

    def tables_of_draws(self, draws: Whole) -> Iterator[Any] | None:
        """What a tally of integer tables computes of many draws at a time; None where another tally is read."""
        counted = self.counted
        return map(self.wanted.compute, counted.tables(draws)) if self.wanted == counted.tally else None

    @property
    def _codes(self) -> Whole | None:
        """The group of each sample that the tally keeps; None where another tally is read."""
        return self.counted.sample_groups if self.wanted == self.counted.tally else None


@dataclass(frozen=True, eq=False)
class _GroupSamples:
    """Samples of all groups, group by group, and how many each has."""

    store: SampleStore
    columns: Mapping[str, Tensor]
    rows: Whole

    @staticmethod
    def of(name: str, store: SampleStore, states: Sequence[State]) -> _GroupSamples:
        rows = np.array([state[name].rows if name in state else 0 for state in states])
        return _GroupSamples(store, {column: store.column(column) for column in store.columns}, rows)

    def drawn(self, times: Whole) -> SampleStore:
        """Every group as often as it was drawn, whole: what lies in several stores stays together."""
        if (times == 1).all():
            return self.store.replaced(self.columns)
        groups = np.repeat(np.arange(len(times)), times)
        starts, sizes = (np.cumsum(self.rows) - self.rows)[groups], self.rows[groups]
        places = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        index = torch.from_numpy(np.repeat(starts, sizes) + places)
        return self.store.replaced({name: column.index_select(0, index) for name, column in self.columns.items()})


def combined(draws: Whole, stacked: Whole) -> Whole:
    """The product of two matrices of integers, exactly; the first has no negative ones.

    Where sums may pass 2 ** 53, both halves of the numbers are multiplied in float64, which is exact up to there.

    Args:
        draws: `(n_resamples, groups)`.
        stacked: `(groups, cells)`, int64.

    Example:
        >>> combined(np.array([[2, 1]]), np.array([[2**60], [-1]])) == 2**61 - 1
        array([[ True]])
    """
    used = np.flatnonzero(stacked.any(0))  # most words of an exact sum are 0
    total = np.zeros((len(draws), stacked.shape[1]), np.int64)
    total[:, used] = _product(draws, stacked[:, used])
    return total


def _product(draws: Whole, stacked: Whole) -> Whole:
    most = int(draws.sum(1).max(initial=0))
    largest = max(abs(int(stacked.max(initial=0))), abs(int(stacked.min(initial=0))))
    if most * largest < _EXACT:
        return np.asarray((draws.astype(np.float64) @ stacked.astype(np.float64)).astype(np.int64))
    low, high = stacked & ((1 << _HALF) - 1), stacked >> _HALF
    return _product(draws, low) + (_product(draws, high) << _HALF)
