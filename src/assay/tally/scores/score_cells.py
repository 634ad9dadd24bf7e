"""Scores of many cells counted in one pass: samples in one store while a cell has few, then a histogram of the cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.devices.placement import move, to_host
from assay.devices.policies import policy
from assay.native.library import takes
from assay.tally.base import Batch, CellStates, State
from assay.tally.row_cells import RowCells
from assay.tally.scores.labelled_scores import KINDS, ScoreRows, ScoreSpec
from assay.tally.scores.score_histogram import ScoreHistogram
from assay.tally.scores.sorted_scores import RowsOfBatch, SortedScores
from assay.tally.stores.sample_store import SampleStore, canonical_order
from assay.tally.sums.row_sums import add_invalid

Cells = NDArray[np.int64]

Rows = Mapping[str, Tensor]
"""Rows as a store has them: its columns by name."""

SHARED_ROWS = 1 << 14
"""Of a batch with as many, all stores that keep it share one copy; of smaller ones each store makes its own block."""


class CellSamples:
    """Samples of all cells, each once, in one store. Which cell a row is in is known on the CPU.

    Args:
        make: makes an empty store.
    """

    def __init__(self, make: Callable[[], SampleStore]) -> None:
        self._make = make
        self._clear()

    def _clear(self) -> None:
        self._store, self._cells = self._make(), np.zeros(0, np.int32)
        self._more: list[NDArray[np.int32]] = []
        self._starts: Cells | None = None
        self._sorted: dict[str, Tensor] = {}
        self._batches: list[RowsOfBatch] | None = []

    def __len__(self) -> int:
        return self._store.rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of a sample."""
        return tuple(self._store.columns)

    def copied(self, rows: Rows) -> SampleStore:
        """A store with a copy of rows."""
        store = self._make()
        store.append(**rows)
        return store

    def add(
        self, rows: Rows, cells: Cells, batch: RowsOfBatch | None = None, copied: SampleStore | None = None
    ) -> None:
        """Keep rows, each in its cell.

        Args:
            rows: the rows.
            cells: the cell of each.
            batch: stands for them where they are all rows of a batch.
            copied: a copy of them that other cells keep, too; None to make one.
        """
        if copied is None:
            self._store.append(**rows)
        else:
            self._store.extend(copied)
        self._more.append(cells.astype(np.int32))
        self._starts, self._sorted = None, {}
        if batch is None:
            self._batches = None
        elif self._batches is not None:
            if not self._batches:
                batch.keepers.add(self)
            self._batches.append(batch)

    def __getstate__(self) -> dict[str, Any]:
        """A copy, or what another process gets, sorts its rows itself."""
        return vars(self) | {"_batches": None}

    def _all_cells(self) -> NDArray[np.int32]:
        """The cell of each row in the store."""
        if self._more:
            self._cells, self._more = np.concatenate([self._cells, *self._more]), []
        return self._cells

    def take(self, chosen: NDArray[np.bool_], count: Callable[[Rows, RowCells], None]) -> None:
        """Have the rows of some cells counted elsewhere, and keep the others.

        Args:
            chosen: for each cell whether its rows are taken.
            count: counts rows that are in those cells; it gets rows of others, too.
        """
        blocks, cells, start = self._store.blocks(), self._all_cells(), 0
        self._clear()
        while blocks:
            block = blocks.pop(0)  # so that its memory is free before that of the next one
            own = cells[start : start + len(next(iter(block.values())))].astype(np.int64)
            start += len(own)
            taken = chosen[own]
            if taken.any():
                count(block, RowCells(torch.from_numpy(own), len(chosen)))
            if not taken.all():
                left = np.flatnonzero(~taken)
                self.add(selected(block, left), own[left])

    def area_sums(self, data: ScoreSpec, part_of: Cells) -> Cells | None:
        """What cells contribute to areas under ROC curves, see `CellStates.area_sums`."""
        return self._sorted_scores(data).area_sums(self._all_cells(), part_of.astype(np.int32))

    def _sorted_scores(self, data: ScoreSpec) -> SortedScores:
        """The rows, sorted once for all stores of the same batches in the same order."""
        if not self._batches:
            return SortedScores(data, self._store.column, [self._all_cells()])
        first, *others = self._batches
        found = first.sorted_rows.get((data, *others))
        if found is None:
            divisions = [each._all_cells() for each in first.keepers if each._batches == self._batches]
            found = first.sorted_rows[data, *others] = SortedScores(data, self._store.column, divisions)
        return found

    def of(self, cell: int) -> SampleStore:
        """The samples of a cell: views of those of all, which are sorted by cell for it."""
        if self._starts is None:
            self._starts = self._sort()
        if cell + 1 >= len(self._starts):
            return self._make()
        rows = slice(int(self._starts[cell]), int(self._starts[cell + 1]))
        return self._make().replaced({name: each[rows] for name, each in self._sorted.items()})

    def grouped(self, groups: Cells, is_wanted: NDArray[np.bool_]) -> list[SampleStore]:
        """The samples of groups of cells.

        Args:
            groups: the group of each cell.
            is_wanted: for each group whether its samples are wanted; the stores of others are empty.
        """
        stores = [self._make() for _ in is_wanted]
        if not is_wanted.any():
            return stores
        columns = {name: self._store.column(name) for name in self._store.columns}
        if len(stores) == 1:
            return [stores[0].replaced(columns)]
        starts, order = RowCells(torch.from_numpy(groups[self._all_cells()]), len(stores)).segments
        ends = starts.tolist()
        for k in np.flatnonzero(is_wanted).tolist():
            rows = order[ends[k] : ends[k + 1]].numpy()
            of_group = {name: torch.from_numpy(np.take(each.numpy(), rows, 0)) for name, each in columns.items()}
            stores[k] = stores[k].replaced(of_group)
        return stores

    def parts(self) -> Iterator[tuple[Rows, Cells]]:
        """All rows in pieces, on the CPU, and the cell of each."""
        cells, start = self._all_cells(), 0
        for block in self._store.blocks():
            end = start + len(next(iter(block.values())))
            yield {name: to_host(each) for name, each in block.items()}, cells[start:end].astype(np.int64)
            start = end

    def canonical(self) -> tuple[Cells, dict[str, Tensor]]:
        """The cells of all samples and the samples, by cell, and those of a cell in their canonical order."""
        cells, columns = self._all_cells().astype(np.int64), {n: self._store.column(n) for n in self._store.columns}
        if not len(cells):
            return cells, columns
        order = canonical_order(list(columns.values()))
        order = order[np.argsort(cells[order], kind="stable")]
        index = torch.from_numpy(order)
        return cells[order], {name: each.index_select(0, index) for name, each in columns.items()}

    def _sort(self) -> Cells:
        """Sort all rows by cell, on the CPU; where those of each cell start."""
        cells = self._all_cells().astype(np.int64)
        starts, order = RowCells(torch.from_numpy(cells), int(cells.max(initial=-1)) + 1).segments
        columns = {name: self._store.column(name).index_select(0, order) for name in self._store.columns}
        self._store, self._sorted = self._store.replaced(columns), columns
        self._cells, self._batches = self._cells[order.numpy()], None
        return starts.numpy()


def selected(rows: Rows, positions: Cells) -> Rows:
    """The rows at these positions."""
    index = torch.from_numpy(positions)
    return {name: each.index_select(0, move(index, each.device)) for name, each in rows.items()}


@dataclass(frozen=True)
class ScoreKeeping:
    """Which scores are kept as samples.

    Args:
        store: makes an empty store.
        most_rows: how many rows of a cell are kept; None for all, 0 for none.
        always: whether a state has samples, also where none are kept.
    """

    store: Callable[[], SampleStore]
    most_rows: int | None
    always: bool

    def is_full(self, rows: Cells) -> NDArray[np.bool_]:
        """For so many rows of each cell whether they are too many to be kept."""
        return np.zeros(len(rows), bool) if self.most_rows is None else rows > self.most_rows


class ScoreCells(CellStates):
    """The states of a `ScoreTally` for many cells.

    The samples of all cells lie in one store. Those of a cell that has too many are counted into its histogram
    together with those of others, when they are half of the store, or when a state is read.

    Args:
        histogram: how scores are counted.
        keeping: which scores are kept.
        columns: gives rows as the store has them.
    """

    def __init__(self, histogram: ScoreHistogram, keeping: ScoreKeeping, columns: Callable[[ScoreRows], Rows]) -> None:
        self._histogram, self._keeping, self._columns = histogram, keeping, columns
        self._samples = CellSamples(keeping.store)
        self._rows = np.zeros(0, np.int64)
        self._stored = np.zeros(0, np.int64)
        self._invalid: dict[torch.device, Tensor] = {}
        self._histograms: dict[torch.device, dict[int, State]] = {}

    def add(self, batch: Batch, cells: RowCells) -> None:
        rows = self._histogram.data.ranked_rows(batch)
        cells = cells.repeated(len(rows.scores) // max(1, len(cells)))
        self._grow(cells.count)
        counts = np.bincount(cells.on_host, minlength=len(self._rows))
        is_full = self._keeping.is_full(self._rows + counts)
        are_counted = is_full & (counts > 0)
        self._rows += counts
        self._add_invalid(rows, batch, cells)
        if not are_counted.any():
            self._keep(rows, batch, cells.on_host)
            self._stored += counts
        else:
            self._keep_some(rows, batch, cells.on_host, ~is_full)
            known = self._histogram.data.known(rows)
            self._count(are_counted, rows.scores, known, cells, batch.compiled)
        if 2 * self._stored[is_full].sum() > len(self._samples):
            self._empty()

    def _grow(self, size: int) -> None:
        more = np.zeros(max(0, size - len(self._rows)), np.int64)
        self._rows, self._stored = np.append(self._rows, more), np.append(self._stored, more)

    def _keep(self, rows: ScoreRows, batch: Batch, cells: Cells) -> None:
        """Keep all rows of a batch."""
        columns, whole = self._columns_of(rows, batch)
        copied = None
        if len(cells) >= SHARED_ROWS:
            key = self._histogram.data, "copied rows"
            copied = batch.memoize(key, lambda _: self._samples.copied(columns))
        self._samples.add(columns, cells, whole, copied)

    def _keep_some(self, rows: ScoreRows, batch: Batch, cells: Cells, is_kept: NDArray[np.bool_]) -> None:
        """Keep the rows of some cells."""
        kept = np.flatnonzero(is_kept[cells])
        if len(kept):
            self._samples.add(selected(self._columns_of(rows, batch)[0], kept), cells[kept])
            self._stored += np.bincount(cells[kept], minlength=len(self._stored))

    def _columns_of(self, rows: ScoreRows, batch: Batch) -> tuple[Rows, RowsOfBatch]:
        """The rows of a batch as a store has them, and what stands for them."""
        key = self._histogram.data, "kept rows"
        return batch.memoize(key, lambda _: (self._columns(rows), RowsOfBatch()))

    def _count(self, chosen: NDArray[np.bool_], scores: Tensor, known: Tensor, cells: RowCells, compiled: bool) -> None:
        """Count rows of some cells into their histograms."""
        states = self._histograms.setdefault(scores.device, {})
        for cell in (numbers := np.flatnonzero(chosen).tolist()):
            self._histogram.open(states.setdefault(cell, {}), scores.device)
        self._histogram.count_cells({cell: states[cell] for cell in numbers}, scores, known, cells, compiled)

    def _empty(self) -> None:
        """Count what is stored of cells that have too many rows to be kept."""
        is_full = self._keeping.is_full(self._rows)

        def count(rows: Rows, cells: RowCells) -> None:
            scores, compiled = rows["scores"], policy(rows["scores"].device).compiled.value
            self._count(is_full & (self._stored > 0), scores, rows["target"].to(torch.int64), cells, compiled)

        if self._stored[is_full].any():
            self._samples.take(is_full, count)
            self._stored[is_full] = 0

    def _add_invalid(self, rows: ScoreRows, batch: Batch, cells: RowCells) -> None:
        device, data = rows.scores.device, self._histogram.data
        table = self._invalid_table(device, cells.count)
        is_counted = batch.compiled and takes(rows.scores) and rows.weights is None
        if is_counted and not batch.memoize((data, "has invalid rows"), lambda _: self._has_invalid(rows)):
            return  # as nearly always
        add_invalid(table, batch, data.invalid_rows(rows), cells)

    def _has_invalid(self, rows: ScoreRows) -> bool:
        """Whether a row without weights has something that should not be there."""
        found = torch.zeros(len(KINDS), dtype=torch.int64, device="cpu")
        self._histogram.data.add_invalid(found, rows, compiled=True)
        return bool(found.any())

    def _invalid_table(self, device: torch.device, size: int) -> Tensor:
        """What is invalid in each cell, on a device; for so many cells or more."""
        table = self._invalid.get(device)
        if table is None or len(table) < size:
            with torch.inference_mode(False):
                grown = torch.zeros(len(self._rows), len(KINDS), dtype=torch.int64, device=device)
            if table is not None:
                grown[: len(table)] = table
            self._invalid[device] = table = grown
        return table

    def state(self, cell: int) -> State:
        self._empty()
        cells = np.arange(cell, min(cell + 1, len(self._rows)))  # none of a cell that has no rows yet
        return self._state(cells, self._samples.of(cell) if self._keeping.always else None)

    def states_of(self, groups: Cells, count: int) -> list[State]:
        self._empty()
        self._grow(len(groups))
        is_full = self._keeping.is_full(np.bincount(groups, self._rows, count))
        stores: list[SampleStore | None] = [None] * count
        if self._keeping.always:
            stores = [*self._samples.grouped(groups, ~is_full)]
        states = [self._state(np.flatnonzero(groups == k), store) for k, store in enumerate(stores)]
        if is_full.any() and len(self._samples):
            self._fill({k: states[k] for k in np.flatnonzero(is_full).tolist()}, groups, count)
        return states

    def _fill(self, states: Mapping[int, State], groups: Cells, count: int) -> None:
        """Count what is stored of groups that have too many rows to be kept into their histograms."""
        device = torch.device("cpu")
        for state in states.values():
            state.update({name: state[name].clone() for name in ("histogram", "unclear") if name in state})
            self._histogram.open(state, device)
        compiled = policy(device).compiled.value
        for rows, cells in self._samples.parts():
            scores, known = rows["scores"], rows["target"].to(torch.int64)
            if count == 1:
                self._histogram.count(states[0], scores, known, compiled)
            else:
                of_rows = RowCells(torch.from_numpy(groups[cells]), count)
                self._histogram.count_cells(states, scores, known, of_rows, compiled)

    def area_sums(self, part_of: Cells) -> Cells | None:
        is_whole = self._keeping.always and len(self._samples) == self._rows.sum() and not self._histograms
        if not is_whole or "weights" in self._samples.columns:
            return None
        return self._samples.area_sums(self._histogram.data, part_of)

    def sums_of(self, cells: Cells) -> State:
        rows, invalid = self._rows[cells].sum(keepdims=True), self._all_invalid()[cells].sum(0)
        return {"count": torch.from_numpy(rows), "invalid": torch.from_numpy(invalid)}

    def _state(self, cells: Cells, samples: SampleStore | None) -> State:
        """What was counted of some cells together, with their samples where any are kept."""
        state = self.sums_of(cells)
        if samples is not None:
            state["samples"] = samples
        histograms = [states[cell] for states in self._histograms.values() for cell in cells.tolist() if cell in states]
        if histograms or samples is None:
            state.update(self._whole(histograms))
        return state

    def _all_invalid(self) -> Cells:
        """What is invalid in each cell, on the CPU."""
        invalid = np.zeros((len(self._rows), len(KINDS)), np.int64)
        for table in self._invalid.values():
            invalid[: len(table)] += to_host(table).numpy()
        return invalid

    def packed(self) -> dict[str, Tensor]:
        self._empty()
        invalid = torch.from_numpy(self._all_invalid())
        tensors = {"rows": torch.from_numpy(self._rows.copy()), "invalid": invalid}  # shared memory is not writable
        if len(self._samples):
            cells, columns = self._samples.canonical()
            tensors["cells"] = torch.from_numpy(cells.astype(np.int32))
            tensors |= {f"samples.{name}": each for name, each in columns.items()}
        full = sorted({cell for states in self._histograms.values() for cell in states})
        if full:
            whole = [self._whole([s[cell] for s in self._histograms.values() if cell in s]) for cell in full]
            flat = [each["histogram"].view(-1) for each in whole]
            places = [each.nonzero()[:, 0] for each in flat]
            tensors["full"] = torch.tensor(full, dtype=torch.int64, device="cpu")
            tensors["unclear"] = torch.stack([each["unclear"] for each in whole])
            tensors["filled"] = torch.tensor([len(each) for each in places], dtype=torch.int64, device="cpu")
            tensors["places"] = torch.cat(places)
            tensors["counts"] = torch.cat([each[place] for each, place in zip(flat, places, strict=True)])
        return tensors

    def add_packed(self, tensors: Mapping[str, Tensor], cells: Cells, size: int) -> None:
        self._grow(size)
        own = cells[: len(tensors["rows"])]
        self._rows[own] += tensors["rows"].numpy()
        if tensors["invalid"].any():
            self._invalid_table(torch.device("cpu"), len(self._rows))[torch.from_numpy(own)] += tensors["invalid"]
        if "cells" in tensors:
            of_samples = cells[tensors["cells"].numpy()]
            self._samples.add({name: tensors[f"samples.{name}"] for name in self._samples.columns}, of_samples)
            self._stored += np.bincount(of_samples, minlength=len(self._stored))
        if "full" in tensors:
            self._add_histograms(tensors, cells)
        is_full = self._keeping.is_full(self._rows)
        if 2 * self._stored[is_full].sum() > len(self._samples):
            self._empty()

    def _add_histograms(self, tensors: Mapping[str, Tensor], cells: Cells) -> None:
        device = torch.device("cpu")
        states, sizes = self._histograms.setdefault(device, {}), tensors["filled"].tolist()
        filled = [torch.split(tensors[name], sizes) for name in ("places", "counts")]
        parts = zip(*filled, tensors["unclear"], strict=True)
        for cell, (places, counts, unclear) in zip(cells[tensors["full"].numpy()].tolist(), parts, strict=True):
            state = states.setdefault(cell, {})
            self._histogram.open(state, device)
            state["histogram"].view(-1).index_add_(0, places, counts)
            state["unclear"] += unclear

    def _whole(self, parts: list[State]) -> State:
        """The histogram of a cell on the CPU, from those of devices."""
        parts = [{name: to_host(each) for name, each in part.items()} for part in parts]
        if len(parts) == 1:
            return parts[0]
        whole: State = {}
        self._histogram.open(whole, torch.device("cpu"))
        for part in parts:
            for name, each in part.items():
                whole[name] += each
        return whole
