"""Rows assigned to meters by a label: those of slices, and those of the groups that intervals come from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from assay.evaluation.observe.observers import (
    Array,
    SampleRows,
    Tensors,
    as_bytes,
    from_bytes,
    part_of,
    parts_of,
    prefixed,
)
from assay.meter import Meter
from assay.meter.cells import CellCounts, CellMeters
from assay.tally.base import State, Tally

Label: TypeAlias = tuple[str, ...]

MOST_CODES = 1 << 22
"""Codes below are looked up in a table."""


class Partition:
    """Equal meters, one a label, each of which counts the rows with that label.

    Args:
        like: the meter that they are made like.
    """

    def __init__(self, like: Meter) -> None:
        self.like = like
        self.clear()

    def clear(self) -> None:
        """Forget what was counted."""
        self._counted = CellMeters(self.like)
        self._cells: dict[Label, int] = {}
        self._cell_of_code = np.full(0, -1, np.int64)
        self._changed()

    def _changed(self) -> None:
        """Forget what was read."""
        self._areas: dict[Tally, Array | None] = {}

    def __len__(self) -> int:
        return len(self._cells)

    def count(self, rows: SampleRows, codes: Array, label_of: Callable[[int], Label]) -> None:
        """Count rows.

        Args:
            rows: the rows.
            codes: integers `(N,)`, one for each label.
            label_of: the label of a number.
        """
        self._changed()
        cells = self._cells_of(codes, label_of)
        self._counted.count(rows.batch, cells, len(self._cells), rows.chunks)

    def _cells_of(self, codes: Array, label_of: Callable[[int], Label]) -> Array:
        """The cell of each row."""
        last = int(codes.max(initial=-1))
        if last >= MOST_CODES:
            present, where = np.unique(codes, return_inverse=True)
            cells: Array = np.array([self._cell(label_of(int(code))) for code in present], np.int64)[where]
            return cells
        if last >= len(self._cell_of_code):
            more = np.full(last + 1 - len(self._cell_of_code), -1, np.int64)
            self._cell_of_code = np.concatenate([self._cell_of_code, more])
        cells = self._cell_of_code[codes]
        if cells.min(initial=0) < 0:
            new = np.unique(codes[cells < 0])
            self._cell_of_code[new] = [self._cell(label_of(code)) for code in new.tolist()]
            cells = self._cell_of_code[codes]
        return cells

    def _cell(self, label: Label) -> int:
        return self._cells.setdefault(label, len(self._cells))

    @property
    def labels(self) -> Collection[Label]:
        """The labels that have rows."""
        return self._cells.keys()

    def counted(self, label: Label) -> tuple[Sequence[State], int]:
        """The states of the tallies for a label, and its rows."""
        return self._counted.counted(self._cells[label])

    def rows_of(self, labels: Sequence[Label]) -> Array:
        """How many rows labels have."""
        return self._counted.rows[self._cells_with(labels)]

    def sums_of(self, labels: Sequence[Label]) -> LabelSums:
        """What labels contribute to the areas of the labels that are like them but for the last text."""
        return LabelSums(self, self._cells_with(labels))

    def _cells_with(self, labels: Sequence[Label]) -> Array:
        return np.array([self._cells[label] for label in labels], np.int64)

    def area_sums(self, tally: Tally) -> Array | None:
        """What all cells contribute to areas, see `CellStates.area_sums`."""
        if tally not in self._areas:
            numbers: dict[Label, int] = {}
            part_of = [numbers.setdefault(label[:-1], len(numbers)) for label in self._cells]
            self._areas[tally] = self._counted.area_sums(tally, np.array(part_of, np.int64))
        return self._areas[tally]

    def state_of(self, tally: Tally, cells: Array) -> State:
        """See `CellStates.sums_of`."""
        return self._counted.sums_of(tally, cells)

    def tables_of(self, tally: Tally, cells: Array) -> State | None:
        """See `CellMeters.tables_of`."""
        return self._counted.tables_of(tally, cells)

    def grouped(self, group_of: Callable[[Label], Label]) -> dict[Label, Meter]:
        """By group, which a function gives of a label, what was counted of the labels of each."""
        numbers: dict[Label, int] = {}
        groups = [numbers.setdefault(group_of(label), len(numbers)) for label in self._cells]
        meters = self._counted.grouped(np.array(groups, np.int64), len(numbers))
        return dict(zip(numbers, meters, strict=True))

    def total(self) -> Meter:
        """A meter with what was counted of all labels."""
        return self._counted.total()

    def state(self) -> dict[str, Tensor]:
        """What was counted, as tensors on the CPU."""
        counts = self._counted.counts()
        tensors = {"labels": as_bytes(list(self._cells)), "rows": torch.tensor(counts.rows, device="cpu")}
        for number, tables in enumerate(counts.tables):
            tensors.update(prefixed(f"tables/{number}", tables))
        for number, packed in enumerate(counts.states):
            tensors.update(prefixed(f"states/{number}", packed))
        for cell, meter in counts.meters.items():
            tensors.update(prefixed(f"meters/{cell}", meter.state_dict()))
        return tensors

    def add_state(self, tensors: Tensors) -> None:
        """Add what `state` gave."""
        self._changed()
        cells = np.array([self._cell(tuple(label)) for label in from_bytes(tensors["labels"])], np.int64)
        tables = parts_of(part_of("tables", tensors))
        meters = {}
        for cell, each in parts_of(part_of("meters", tensors)).items():
            meters[int(cell)] = self._counted.meter_of_others()
            meters[int(cell)].load_state_dict(each)
        states = parts_of(part_of("states", tensors))
        counts = CellCounts(tensors["rows"].numpy(), _in_order(tables), _in_order(states), meters)
        self._counted.add(counts, cells, len(self._cells))


@dataclass(frozen=True, eq=False)
class LabelSums:
    """What was counted of the groups of a part of the samples together, see `KnownSums`.

    Args:
        partition: what was counted.
        cells: the cells of the groups.
    """

    partition: Partition
    cells: Array

    def areas(self, tally: Tally) -> Array | None:
        found = self.partition.area_sums(tally)
        return None if found is None else found[:, self.cells]

    def state(self, tally: Tally) -> State:
        return self.partition.state_of(tally, self.cells)

    def tables(self, tally: Tally) -> State | None:
        return self.partition.tables_of(tally, self.cells)


def _in_order(parts: Mapping[str, dict[str, Tensor]]) -> list[dict[str, Tensor]]:
    """Parts that are called by their numbers."""
    return [parts[str(number)] for number in range(len(parts))]
