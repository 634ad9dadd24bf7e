"""Counts of some metrics for each of many cells that rows are in: slices, and groups of the bootstrap.

Tallies that are tables of counts or exact sums are counted for all cells in one pass. For the others rows are sorted by
cell, and each cell has a meter.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.devices.placement import to_host
from assay.devices.policies import policy
from assay.meter.arguments import Arguments
from assay.meter.meter import Meter
from assay.tally.base import Batch, State, Tally
from assay.tally.composite import components
from assay.tally.inputs import readable
from assay.tally.row_cells import RowCells

STAGE_BYTES = 1 << 14
"""Of the meter of a cell: rows come by the thousand, so staging them again gains little."""


class CellMeters:
    """What was counted of each cell; cells are numbered from 0.

    Args:
        like: the meter of the metrics.
    """

    def __init__(self, like: Meter) -> None:
        self._like = like
        self._tables = [tally for tally in like.tallies if tally.has_cells]
        self._tables_of: dict[torch.device, list[State]] = {}
        others = {
            name: metric
            for name, metric in like.metrics.items()
            if not all(tally.has_cells for tally in components(metric.batch_tally(like.weighted)))
        }
        self._others = like.fresh(others, stage_bytes=STAGE_BYTES) if others else None
        self._meters: dict[int, Meter] = {}
        self._rows = np.zeros(0, np.int64)

    def count(
        self, batch: Arguments, cells: NDArray[np.int64], size: int, chunks: MutableMapping[Any, list[Batch]]
    ) -> None:
        """Count rows.

        Args:
            batch: arguments of an update.
            cells: the cell of each row, `(N,)`.
            size: how many cells there are.
            chunks: what was made of the same rows before.
        """
        counts = np.bincount(cells, minlength=size)
        counts[: len(self._rows)] += self._rows
        self._rows = counts
        if self._tables:
            checked = self._like._checked(batch)
            layout = tuple(None if each is None else each.shape for each in checked.tensors)
            if layout not in chunks:
                chunks[layout] = list(_chunks(checked, self._tables))
            self._count_tables(chunks[layout], cells, size)
        if self._others is not None:
            for cell, rows in batch.by_code(cells):
                if cell not in self._meters:
                    self._meters[cell] = self._others.fresh()
                self._meters[cell].count(rows)

    def _count_tables(self, chunks: Sequence[Batch], cells: NDArray[np.int64], size: int) -> None:
        device = chunks[0].preds.device
        states, moved, start = self._room(device, size), torch.from_numpy(cells).to(device), 0
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            for rows in chunks:
                of_rows = RowCells(moved[start : start + len(rows.preds)], size)
                start += len(of_rows)
                for tally, state in zip(self._tables, states, strict=True):
                    tally.add_cells(state, rows, of_rows)

    def _room(self, device: torch.device, size: int) -> list[State]:
        """The tables on a device, with room for so many cells."""
        states = self._tables_of.setdefault(device, [{} for _ in self._tables])
        room = len(next(iter(states[0].values()), ()))
        if room < size:
            with torch.inference_mode(False):
                for tally, state in zip(self._tables, states, strict=True):
                    for name, zero in tally.zero(device).items():
                        grown = zero.new_zeros(max(size, 2 * room), *zero.shape)
                        if room:
                            grown[:room] = state[name]
                        state[name] = grown
        return states

    def meter(self, cell: int) -> Meter:
        """A meter with what was counted of a cell."""
        states: dict[Tally, State] = {
            tally: {name: self._table(k, name, cell, zero) for name, zero in tally.zero(torch.device("cpu")).items()}
            for k, tally in enumerate(self._tables)
        }
        if self._others is not None:
            other = self._meters.get(cell, self._others)
            states = dict(zip(other.tallies, other._counts_to_add()[0], strict=True)) | states
        whole = self._like.fresh(stage_bytes=STAGE_BYTES)
        whole._carry(([states[tally] for tally in whole.tallies], int(self._rows[cell])))
        return whole

    def _table(self, k: int, name: str, cell: int, zero: Tensor) -> Tensor:
        tables = [states[k][name] for states in self._tables_of.values()]
        return sum((to_host(table[cell]) for table in tables if cell < len(table)), start=zero)


def _chunks(batch: Arguments, tallies: Sequence[Tally]) -> Iterator[Batch]:
    """The rows of a batch as tallies count them, on the device that counts, in chunks that fit its cache."""
    of_device = policy(batch.preds.device)
    elements, device = of_device.chunk_elements.value, of_device.tally_on.value
    compiled, rows = policy(device).compiled.value, len(batch.preds)
    size = max(1, elements * min(tally.chunk_scale for tally in tallies) * rows // max(1, batch.preds.numel()))
    for start in range(0, rows, size):
        part = batch.rows(slice(start, start + size)).map(lambda each: readable(each.detach().to(device)))
        _, target, weights, *others = part.tensors
        columns = {name: each for name, each in zip(part.names, others, strict=True) if each is not None}
        yield Batch(part.preds, target, weights, elements // 4, compiled, columns, part.ragged)
