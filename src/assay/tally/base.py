"""What a tally is: a frozen description of an additive integer state.

A tally says how a batch turns into counts. Its state is a plain dictionary of tensors; states of the same tally add
up, so any split of the samples, any order and any number of devices or processes gives the same sum. Nothing in
here reads a value of a tensor on the CPU; that is left to `metrics`, which read a canonical state once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.tally.conservation import HostCount, Laws
from assay.tally.ragged import Ragged
from assay.tally.row_cells import RowCells
from assay.tally.term_log import TermLog, TermTolerance

if TYPE_CHECKING:
    from assay.tally.sums.fingerprints import Fingerprint, FingerprintSize

Rule = Literal["sum", "max", "late", "samples"]
"""How a field of a state merges.

* `sum`: an int64 tensor whose shape the description fixes; merged by addition.
* `max`: an int64 tensor whose shape the description fixes; merged by the elementwise maximum.
* `late`: as `sum`, but absent until the first count goes in (large tables that small data never need).
* `samples`: a `SampleStore`; merged by concatenation.
"""

NanPolicy = Literal["propagate", "ignore", "warn", "raise"] | float
"""What a NaN among values does: counts, is left out, is left out with a warning when the metric is computed, raises
then, or is replaced by a number."""

NAN_LEFT_OUT = "values are NaN, which were left out"
"""What is invalid with `nan_policy="warn"`."""

State = dict[str, Any]

Whole: TypeAlias = NDArray[np.int64]


Memo = TypeVar("Memo")


@dataclass(frozen=True)
class TensorLayout:
    """Metadata of one argument of `update`: its dtype and its shape without the leading sample dimension."""

    dtype: torch.dtype
    tail: tuple[int, ...]


@dataclass(frozen=True)
class BatchLayout:
    """Metadata of a whole batch: what can be checked at once, without reading a value."""

    preds: TensorLayout
    target: TensorLayout | None
    weights: TensorLayout | None
    columns: Mapping[str, TensorLayout] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows on one device: `preds (N, ...)`, `target (N, ...)`, `weights (N, ...)` named `columns (N, ...)`, and
    `ragged` columns, whose tensors may lie on other devices.

    `cache_elements` says how many elements a temporary may have to stay in the device's cache; `compiled` whether
    compiled code may read the tensors, because they are in host memory, `triton` whether kernels in Triton may, because
    they are on a GPU. `memoize` keeps what several tallies need of the same batch, such as the decided labels.
    `terms` records terms that are rounded, or gives those that were recorded.
    """

    preds: Tensor
    target: Tensor | None = None
    weights: Tensor | None = None
    cache_elements: int = 1 << 15
    compiled: bool = False
    columns: Mapping[str, Tensor] = field(default_factory=dict)
    ragged: Mapping[str, Ragged] = field(default_factory=dict)
    triton: bool = False
    terms: TermLog | None = None
    _memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def memoize(self, key: Hashable, make: Callable[[Batch], Memo]) -> Memo:
        """The result of `make(self)`, made at the first call with this key."""
        if key not in self._memo:
            self._memo[key] = make(self)
        value: Memo = self._memo[key]
        return value

    def rounded(
        self, key: Hashable, terms: Sequence[Tensor], rounding: float, is_of_inputs: bool = False
    ) -> list[Tensor]:
        """Terms that devices may round differently; all that are computed in floating point and not exact pass here.

        Args:
            key: the name of the terms.
            terms: tensors whose dimension 0 counts rows, or samples.
            rounding: how far apart two devices may compute them, as a part of the largest term of the batch.
            is_of_inputs: the same as a part of the largest input, too, as of differences of nearly equal inputs.
        """
        if self.terms is None:
            return list(terms)
        inputs = [each for each in (self.preds, self.target, *self.columns.values()) if each is not None]
        return self.terms.passed(key, terms, TermTolerance(rounding, is_of_inputs, inputs))

    def has(self, key: Hashable) -> bool:
        """Whether something was made with this key."""
        return key in self._memo

    @property
    def needed_target(self) -> Tensor:
        assert self.target is not None, "the layout was checked before"
        return self.target


PreparedAdd = Callable[[Tensor, Tensor | None, Tensor | None], None]
"""Counts a batch of contiguous `preds`, `target` and `weights`."""


@dataclass(frozen=True)
class InvalidValues:
    """Values that should not have been in the data, found when a state is read."""

    what: str
    count: int
    fatal: bool = True


class CellStates(ABC):
    """The states of one tally for many cells, where a table of equal shape for each cell would take too much."""

    @abstractmethod
    def add(self, batch: Batch, cells: RowCells) -> None:
        """Count each row of a batch into the state of its cell; no value is read from the device."""

    @abstractmethod
    def state(self, cell: int) -> State:
        """What was counted of a cell, on the CPU; nobody may change it, and it is right until more is counted."""

    @abstractmethod
    def states_of(self, groups: Whole, count: int) -> list[State]:
        """What was counted of groups of cells, as `state`.

        Args:
            groups: the group of each cell.
            count: how many groups there are.
        """

    def area_sums(self, part_of: Whole) -> Whole | None:
        """What each cell contributes to the areas under ROC curves of the part that it is in.

        Args:
            part_of: the part of each cell, from 0.

        Returns:
            Integers of shape `(classes or labels, cells, 4)`, see `Tally.area_sums`; None where that takes the states.
        """
        return None

    def sums_of(self, cells: Whole) -> State:
        """The state of some cells together without its samples, where `area_sums` gives something."""
        raise NotImplementedError

    @abstractmethod
    def packed(self) -> dict[str, Tensor]:
        """What was counted of all cells, as tensors on the CPU: one form for all orders of the same rows."""

    @abstractmethod
    def add_packed(self, tensors: Mapping[str, Tensor], cells: Whole, size: int) -> None:
        """Add what `packed` gave.

        Args:
            tensors: that.
            cells: for each cell there which one it is here; no two are the same.
            size: how many cells there are here.
        """


class Tally(ABC):
    """A frozen description of a state that batches are counted into.

    Subclasses are frozen dataclasses: two tallies are the same when their descriptions are equal, and then a meter
    counts them once.
    """

    @property
    def chunk_scale(self) -> int:
        """How many times as many elements a batch may have: above 1 where nothing is gained by staying in the cache."""
        return 1

    @property
    def compiled_chunk_scale(self) -> int:
        """The same where compiled code counts in host memory."""
        return self.chunk_scale

    @property
    def uses_target(self) -> bool:
        """Whether the target is counted, or only `preds`."""
        return True

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns that must be given in addition to `preds`, `target` and `weights`."""
        return frozenset()

    @property
    @abstractmethod
    def fields(self) -> Mapping[str, Rule]:
        """The names of the state's fields and how each merges."""

    @abstractmethod
    def check(self, layout: BatchLayout) -> None:
        """Raise an `InputError` when a batch of this layout cannot be counted."""

    @abstractmethod
    def zero(self, device: torch.device) -> State:
        """The state without any sample, on a device. `late` fields are left out."""

    def zero_of_batch(self, device: torch.device) -> State:
        """The state for one batch whose value is computed alone: as `zero` gives it, or smaller where that is large.

        `add`, `canonicalize`, `compute` and `invalid_values` take it; `absorb` adds it to a state.
        """
        return self.zero(device)

    def absorb(self, state: State, other: State) -> None:
        """Add to a host state, in place, what `add` counted into `zero_of_batch`."""
        merge_into(self, state, other)

    @abstractmethod
    def add(self, state: State, batch: Batch) -> None:
        """Count a batch into a state, in place, without synchronizing with the device."""

    def counts_of(self, batch: Batch) -> Any:
        """What `compute` gives of the state of this batch alone, without a state; None where it takes one.

        It does so where something is invalid, and where no state would be slower. Nobody keeps what it gives.

        Args:
            batch: of contiguous tensors in host memory, without weights and columns.
        """
        return None

    def prepare(self, state: State, batch: Batch) -> PreparedAdd | None:
        """A shorter `add` into this state for batches of `preds`, `target` and `weights` like these, or None.

        Two batches have one layout if their tensors have the same shapes and dtypes; all are contiguous in host memory.
        Tensors of the state stay where they are.
        """
        return None

    prepares_compiled_calls: bool = True
    """Whether what `prepare` gives is compiled calls alone: a small batch is counted so in the time of a copy."""

    @property
    def has_cells(self) -> bool:
        """Whether `add_cells` is there: one pass over rows counts them into many states."""
        return False

    def add_cells(self, states: State, batch: Batch, cells: RowCells) -> None:
        """Count each row of a batch into the state of its cell, in place, without synchronizing with the device.

        Args:
            states: as `zero` gives them, each field with a first dimension for the cells, of which there may be more.
            batch: the rows.
            cells: the cell of each row.
        """
        raise NotImplementedError

    def cell_states(self) -> CellStates | None:
        """What counts rows into the states of many cells where `add_cells` does not; None where nothing does."""
        return None

    @abstractmethod
    def compute(self, state: State) -> Any:
        """What metrics read from a canonical state: counts or exact sums on the CPU."""

    def area_sums(self, state: State, codes: Whole, groups: int) -> Whole | None:
        """What groups of samples contribute to areas under ROC curves, as `assay.stats.linear.AreaPlaces.sums` says it.

        Args:
            state: of all samples, on the CPU; canonical or not.
            codes: the group of each sample that the state keeps.
            groups: how many groups there are.

        Returns:
            Integers of shape `(classes or labels, groups, 4)`; None where the tally keeps no scores in float32.
        """
        return None

    def pairs_of_draws(self, state: State, codes: Whole, draws: Whole) -> NDArray[np.float64] | None:
        """The pairs of positives and negatives of resampled samples, from which areas under ROC curves follow.

        Args:
            state: see `area_sums`.
            codes: see there.
            draws: how often each group counts in each replicate, `(replicates, groups)`.

        Returns:
            Of shape `(classes or labels, 3, replicates)`, integers: twice the pairs in which the positive has the
            higher score, and once those with equal scores; the positives; the negatives. None where the tally keeps
            no scores, or an integer may be 2 ** 53 or more.
        """
        return None

    def compute_repeated(self, state: State) -> Callable[[Whole], Any] | None:
        """What `compute` gives where each of the rows that a state keeps counts so many times, int64 `(rows,)`.

        None where nothing is cheaper than `compute` of the repeated rows.
        """
        return None

    def canonicalize(self, state: State, rows: int) -> State:
        """The one form, on the CPU, that every state of the same samples has; `rows` is how many were counted."""
        return state

    def canonicalize_cells(self, states: State, rows: Whole) -> State:
        """`canonicalize` of the states of many cells, as `add_cells` takes them, on the CPU.

        Args:
            states: fields with a first dimension for the cells.
            rows: how many each cell has.
        """
        if type(self).canonicalize is Tally.canonicalize or not len(rows):
            return states
        each = [
            self.canonicalize({name: table[cell] for name, table in states.items()}, count)
            for cell, count in enumerate(rows.tolist())
        ]
        return {name: torch.stack([state[name] for state in each]) for name in states}

    def settle(self, state: State, rows: int) -> State:
        """A form that any number of others may be added to, and of which `compute` gives the bits of the canonical one.

        By default that is the canonical one; where the order of samples changes no value, they need not be sorted.
        """
        return self.canonicalize(state, rows)

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        """What the canonical state says of values that should not have been there."""
        return ()

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        """The conservation laws that a state on the CPU breaks, canonical or not.

        A law must hold for every sound state, of any samples, valid or not, in any split. Without a law of its own
        nothing of a state is checked, and `declares_laws` is false.

        Args:
            state: what was counted.
            given: what the host counted of the same batches.
        """
        yield from ()

    @property
    def declares_laws(self) -> bool:
        """Whether `broken_laws` checks anything."""
        return type(self).broken_laws is not Tally.broken_laws

    @property
    def fingerprint_size(self) -> FingerprintSize | None:
        """How much the `fingerprint` has; None for a tally without one, as those that only keep samples: their stores
        have checksums."""
        return None

    def fingerprint(self, batch: Batch) -> Fingerprint:
        """What `add` of this batch adds to a state, by other operators than those that add; reads no value.

        It comes after `add`, and takes from the batch what that has computed in floating point.
        """
        raise NotImplementedError

    def fingerprint_of(self, state: State) -> Fingerprint:
        """The fingerprint of all that a state on the CPU, not canonical, has counted."""
        raise NotImplementedError

    def union(self, other: Tally) -> Tally | None:
        """A tally from whose state both can be read, or None if counting both is cheaper."""
        return self if self == other else None

    def extract(self, state: State, wanted: Tally) -> State:
        """The state of `wanted`, read from a state of this union of it."""
        return state


def compute_batches(tally: Tally, *batches: Batch) -> Any:
    """What a tally computes from these batches alone, or from none, on the CPU."""
    state = tally.zero(torch.device("cpu"))
    for batch in batches:
        tally.add(state, batch)
    return tally.compute(tally.canonicalize(state, sum(len(batch.preds) for batch in batches)))


def merge(tally: Tally, states: Sequence[State]) -> State:
    """One host state with everything that the given host states counted."""
    if len(states) == 1:
        (alone,) = states
        return {name: _MERGE[rule]((alone[name],)) for name, rule in tally.fields.items() if name in alone}
    merged: State = {}
    for name, rule in tally.fields.items():
        parts = [state[name] for state in states if name in state]
        if parts:
            merged[name] = _MERGE[rule](parts)
    return merged


def merge_into(tally: Tally, state: State, other: State) -> None:
    """Add to a host state, in place, what another one counted."""
    for name, rule in tally.fields.items():
        if name in other and name not in state:
            with torch.inference_mode(False):
                state[name] = _MERGE[rule]([other[name]])
        elif name in other and rule == "samples":
            state[name].extend(other[name])
        elif name in other and rule == "max":
            torch.maximum(state[name], other[name], out=state[name])
        elif name in other:
            state[name] += other[name]


def _added(parts: Sequence[Tensor]) -> Tensor:
    total = parts[0].to_dense() if parts[0].is_sparse else parts[0].clone()
    for part in parts[1:]:
        total += part
    return total


def _largest(parts: Sequence[Tensor]) -> Tensor:
    largest = parts[0].clone()
    for part in parts[1:]:
        torch.maximum(largest, part, out=largest)
    return largest


def _concatenated(parts: Sequence[Any]) -> Any:
    store = parts[0].copy()
    for part in parts[1:]:
        store.extend(part)
    return store


_MERGE: dict[Rule, Callable[[Sequence[Any]], Any]] = {
    "sum": _added,
    "late": _added,
    "max": _largest,
    "samples": _concatenated,
}


BAD_WEIGHTS = "weights are negative, infinite or NaN"


def bad_weights(weights: Tensor) -> Tensor:
    """Which weights are invalid: booleans. A weight says how many samples one stands for."""
    fine = weights >= 0
    return ~(fine & (weights < math.inf) if weights.dtype.is_floating_point else fine)  # NaN is neither


def shown(tail: tuple[int, ...]) -> str:
    """A shape with the sample dimension, for messages."""
    return "(N" + "".join(f", {size}" for size in tail) + ("" if tail else ",") + ")"
