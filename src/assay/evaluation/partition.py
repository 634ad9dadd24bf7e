"""Rows assigned to meters by a label: those of slices, and those of the groups that intervals come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from torch import Tensor

from assay.evaluation.observers import Array, SampleRows, Tensors, as_bytes, from_bytes, parts_of, prefixed
from assay.meter import Meter
from assay.meter.cells import CellMeters

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
        self._merged: dict[Label, Meter] = {}
        self._cell_of_code = np.full(0, -1, np.int64)
        self._read: dict[Label, Meter] = {}

    def __len__(self) -> int:
        return len(self._cells.keys() | self._merged.keys())

    def count(self, rows: SampleRows, codes: Array, label_of: Callable[[int], Label]) -> None:
        """Count rows.

        Args:
            rows: the rows.
            codes: integers `(N,)`, one for each label.
            label_of: the label of a number.
        """
        self._read = {}
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
        for code in np.unique(codes[cells < 0]).tolist():
            self._cell_of_code[code] = self._cell(label_of(code))
        return self._cell_of_code[codes]

    def _cell(self, label: Label) -> int:
        return self._cells.setdefault(label, len(self._cells))

    @property
    def meters(self) -> dict[Label, Meter]:
        """By label, what was counted."""
        if not self._read:
            self._read = {label: self._counted.meter(cell) for label, cell in self._cells.items()}
            for label, merged in self._merged.items():
                self._read[label] = self._read[label].merge(merged) if label in self._read else merged
        return self._read

    def state(self) -> dict[str, Tensor]:
        """What was counted, as tensors on the CPU."""
        tensors = {"labels": as_bytes(list(self.meters))}
        for number, meter in enumerate(self.meters.values()):
            tensors.update(prefixed(str(number), meter.state_dict()))
        return tensors

    def add_state(self, tensors: Tensors) -> None:
        """Add what `state` gave."""
        self._read = {}
        parts = parts_of(tensors)
        for number, label in enumerate(from_bytes(tensors["labels"])):
            counted = self.like.fresh()
            counted.load_state_dict(parts[str(number)])
            key = tuple(label)
            self._merged[key] = self._merged[key].merge(counted) if key in self._merged else counted
