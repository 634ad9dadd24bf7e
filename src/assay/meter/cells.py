"""Counts of some metrics for each of many cells that rows are in: slices, and groups of the bootstrap.

Tallies that are tables of counts or exact sums are counted for all cells in one pass, and so are those that have states
for many cells, such as scores. For the others rows are sorted by cell, and each cell has a meter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from assay.devices.placement import to_host
from assay.devices.policies import policy
from assay.meter.checks.cell_checks import CellChecks
from assay.meter.inputs.arguments import COPIED_BYTES, Arguments
from assay.meter.meter import Meter
from assay.tally.base import Batch, State, Tally
from assay.tally.composite import components
from assay.tally.inputs import readable
from assay.tally.late_items import LateItems
from assay.tally.row_cells import RowCells

LARGE_CHUNK = 8
"""How many times as many elements as in the cache are counted at once: rows of one cell are then many together."""

STAGE_BYTES = 1 << 14
"""Of the meter of a cell: rows come by the thousand, so staging them again gains little."""


@dataclass(frozen=True, eq=False)
class CellCounts:
    """What was counted of cells, in the form that is handed over.

    Attributes:
        rows: how many rows each cell has.
        tables: for each tally with tables its fields, whose first dimension is that of the cells.
        states: for each tally with states for many cells what `CellStates.packed` gave.
        meters: by cell, what was counted of the other metrics.
    """

    rows: NDArray[np.int64]
    tables: Sequence[State]
    states: Sequence[State]
    meters: Mapping[int, Meter]


class CellMeters:
    """What was counted of each cell; cells are numbered from 0.

    Args:
        like: the meter of the metrics.
    """

    def __init__(self, like: Meter) -> None:
        self._like = like
        self._tables = [tally for tally in like.tallies if tally.has_cells]
        self._tables_of: dict[torch.device, list[State]] = {}
        self._checks: dict[torch.device, CellChecks] = {}
        found = {tally: tally.cell_states() for tally in like.tallies if not tally.has_cells}
        self._states = {tally: states for tally, states in found.items() if states is not None}
        others = {
            name: metric
            for name, metric in like.metrics.items()
            if not all(map(self._is_counted_here, components(metric.batch_tally(like.weighted))))
        }
        self._others = like.fresh(others, stage_bytes=STAGE_BYTES) if others else None
        self._places = [[*self._tables, *self._states].index(tally) for tally in like.tallies] if not others else []
        self._empty = like.fresh(stage_bytes=STAGE_BYTES)
        self._meters: dict[int, Meter] = {}
        self._staged: list[tuple[Arguments, NDArray[np.int64]]] = []
        self._rows = np.zeros(0, np.int64)
        self._on_host: list[State] = []

    @property
    def rows(self) -> NDArray[np.int64]:
        """How many rows each cell has."""
        return self._rows

    def _is_counted_here(self, tally: Tally) -> bool:
        """Whether a tally needs no meter for each cell."""
        return tally.has_cells or tally in self._states

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
        self._rows, self._on_host = counts, []
        if len(cells) and (self._tables or self._states):
            checked = self._like.checked(batch)
            layout = tuple(None if each is None else each.shape for each in checked.tensors)
            if layout not in chunks:
                chunks[layout] = list(_chunks(checked, self._tables))
            self._count_chunks(checked, chunks[layout], cells, size)
        if self._others is not None:
            self._stage(self._others, batch, cells)

    def _stage(self, others: Meter, batch: Arguments, cells: NDArray[np.int64]) -> None:
        """Count rows into the meters of their cells, some thousand for each at a time; their tensors may be changed."""
        staged = sum(each.nbytes for each, _ in self._staged)
        if self._staged and (staged + batch.nbytes > COPIED_BYTES or not _fit(self._staged[0][0], batch)):
            self._flush()
        if 2 * batch.nbytes < COPIED_BYTES and not batch.ragged:
            self._staged.append((others.checked(batch).map(lambda each: each.detach().clone()), cells.copy()))
        else:
            self._count_each(batch, cells)

    def _flush(self) -> None:
        """Count what is staged."""
        staged, self._staged = self._staged, []
        if staged:
            self._count_each(Arguments.cat([each for each, _ in staged]), np.concatenate([each for _, each in staged]))

    def _count_each(self, batch: Arguments, cells: NDArray[np.int64]) -> None:
        assert self._others is not None
        for cell, rows in batch.by_code(cells):
            if cell not in self._meters:
                self._meters[cell] = self._others.fresh()
            self._meters[cell].count(rows)

    def _count_chunks(self, batch: Arguments, chunks: Sequence[Batch], cells: NDArray[np.int64], size: int) -> None:
        device = chunks[0].preds.device
        tables, moved, start = self._room(device, size), torch.from_numpy(cells).to(device), 0
        checks = self._checks_of(device)
        if checks is not None:
            checks.note(batch, np.bincount(cells, minlength=size))
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            for rows in chunks:
                own = slice(start, start + len(rows.preds))
                of_rows, start = RowCells(moved[own], size, cells[own]), own.stop
                for tally, table in zip(self._tables, tables, strict=True):
                    tally.add_cells(table, rows, of_rows)
                if checks is not None:
                    checks.add(rows)
                for states in self._states.values():
                    states.add(rows, of_rows)

    def _checks_of(self, device: torch.device) -> CellChecks | None:
        """What the tables of a device are checked by; None where the CPU itself counts."""
        if device == policy(device).read_on.value or not self._tables:
            return None
        if device not in self._checks:
            with torch.inference_mode(False):
                self._checks[device] = CellChecks(self._tables, device, self._like.options.fingerprints)
        return self._checks[device]

    def _room(self, device: torch.device, size: int) -> list[State]:
        """The tables on a device, with room for so many cells."""
        states = self._tables_of.setdefault(device, [{} for _ in self._tables])
        room = len(next(iter(states[0].values()), ())) if states else size
        if room < size:
            with torch.inference_mode(False):
                for tally, state in zip(self._tables, states, strict=True):
                    for name, zero in tally.zero(device).items():
                        grown = zero.new_zeros(max(size, 2 * room), *zero.shape)
                        if room:
                            grown[:room] = state[name]
                        state[name] = grown
        return states

    def counted(self, cell: int) -> tuple[Sequence[State], int]:
        """The states of a cell in the order of the tallies, and its rows; they can be read until more is counted."""
        self._flush()
        host, tallies, late = self._host_tables(), self._like.tallies, self._states
        found: list[State] = []

        def state(k: int) -> State:
            if tallies[k] in late:
                return late[tallies[k]].state(cell)
            if not found:
                tables = [{name: table[cell] for name, table in each.items()} for each in host]
                other = None if self._others is None else self._meters.get(cell, self._others)
                found.extend(self._in_order(tables, [{}] * len(late), other))
            return found[k]

        return LateItems(len(tallies), state), int(self._rows[cell])

    def tables_of(self, tally: Tally, cells: NDArray[np.int64]) -> State | None:
        """The states of some cells in a form to compute from, with a first dimension for the cells.

        None where the tally has no table of all cells.
        """
        if tally not in self._tables:
            return None
        index, tables = torch.from_numpy(cells), self._host_tables()[self._tables.index(tally)]
        return tally.canonicalize_cells({name: table[index] for name, table in tables.items()}, self._rows[cells])

    def area_sums(self, tally: Tally, part_of: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """What cells contribute to the areas of a tally, see `CellStates.area_sums`."""
        return self._states[tally].area_sums(part_of) if tally in self._states else None

    def sums_of(self, tally: Tally, cells: NDArray[np.int64]) -> State:
        """See `CellStates.sums_of`."""
        return self._states[tally].sums_of(cells)

    def meter(self, cell: int) -> Meter:
        """A meter with what was counted of a cell; it can be read until more is counted."""
        return self._meter(*self.counted(cell))

    def grouped(self, groups: NDArray[np.int64], count: int) -> list[Meter]:
        """Meters with what was counted of groups of cells; they can be read until more is counted.

        Args:
            groups: the group of each cell.
            count: how many groups there are.
        """
        self._flush()
        index, host = torch.from_numpy(groups), self._host_tables()
        tables = [
            {
                name: table.new_zeros(count, *table.shape[1:]).index_add_(0, index, table)
                for name, table in state.items()
            }
            for state in host
        ]
        apart = [each.states_of(groups, count) for each in self._states.values()]
        rows = np.bincount(groups, self._rows, count).astype(np.int64)
        return [
            self._meter(
                self._in_order(
                    [{name: table[k] for name, table in state.items()} for state in tables],
                    [states[k] for states in apart],
                    self._others_of(np.flatnonzero(groups == k).tolist()),
                ),
                int(rows[k]),
            )
            for k in range(count)
        ]

    def _others_of(self, cells: Sequence[int]) -> Meter | None:
        """What was counted of some cells of the metrics that have one meter a cell."""
        if self._others is None:
            return None
        meters = [self._meters[cell] for cell in cells if cell in self._meters]
        return meters[0] if len(meters) == 1 else self._others.fresh().merge(*meters)

    def total(self) -> Meter:
        """A meter with what was counted of all cells; it can be read until more is counted."""
        self._flush()
        tables = [{name: table.sum(0) for name, table in state.items()} for state in self._host_tables()]
        together = np.zeros(len(self._rows), np.int64)
        states = [each.states_of(together, 1)[0] for each in self._states.values()]
        other = None if self._others is None else self._others.fresh().merge(*self._meters.values())
        return self._meter(self._in_order(tables, states, other), int(self._rows.sum()))

    def _in_order(self, tables: Sequence[State], apart: Sequence[State], other: Meter | None) -> list[State]:
        """The states of all tallies of the meter, in their order."""
        if other is None:
            found = (*tables, *apart)
            return [found[place] for place in self._places]
        states = dict(zip((*self._tables, *self._states), (*tables, *apart), strict=True))
        states = dict(zip(other.tallies, other.counts.to_add()[0], strict=True)) | states
        return [states[tally] for tally in self._like.tallies]

    def _meter(self, states: Sequence[State], rows: int) -> Meter:
        whole = self._empty.fresh()
        whole.counts.borrow(states, rows)
        return whole

    def _host_tables(self) -> list[State]:
        """For each tally that has tables those of all cells, on the CPU.

        Raises:
            DeviceFaultError: those of a device break a conservation law, or have another fingerprint than its batches.
        """
        if len(self._on_host) != len(self._tables):
            parts = [self._tables_from(device) for device in self._tables_of]
            self._on_host = [self._added(k, tally, parts) for k, tally in enumerate(self._tables)]
        return self._on_host

    def _tables_from(self, device: torch.device) -> list[State]:
        """The tables of a device, on the CPU."""
        cells = len(self._rows)
        tables = [{name: to_host(each[:cells]) for name, each in state.items()} for state in self._tables_of[device]]
        if device in self._checks:
            self._checks[device].check(tables)
        return tables

    def _added(self, k: int, tally: Tally, parts: Sequence[Sequence[State]]) -> State:
        """The tables of a tally, from those of all devices."""
        host = {}
        for name, zero in tally.zero(torch.device("cpu")).items():
            tables = [part[k][name] for part in parts]
            host[name] = tables[0] if len(tables) == 1 else zero.new_zeros(len(self._rows), *zero.shape)
            for table in tables if len(tables) > 1 else ():
                host[name][: len(table)] += table
        return host

    def counts(self) -> CellCounts:
        """What was counted, in the form that all counts of the same rows have."""
        self._flush()
        pairs = zip(self._tables, self._host_tables(), strict=True)
        tables = [tally.canonicalize_cells(table, self._rows) if len(self._rows) else {} for tally, table in pairs]
        return CellCounts(self._rows, tables, [each.packed() for each in self._states.values()], self._meters)

    def add(self, counts: CellCounts, cells: NDArray[np.int64], size: int) -> None:
        """Add what was counted elsewhere.

        Args:
            counts: what `counts` of the same metrics gave.
            cells: for each cell there which one it is here.
            size: how many cells there are here.
        """
        self._flush()
        rows = np.zeros(size, np.int64)
        rows[: len(self._rows)] = self._rows
        rows[cells] += counts.rows
        self._rows, self._on_host = rows, []
        if self._tables and len(cells):
            index = torch.from_numpy(cells)
            for state, tables in zip(self._room(torch.device("cpu"), size), counts.tables, strict=True):
                for name, table in tables.items():
                    state[name].index_add_(0, index, table)
        for states, packed in zip(self._states.values(), counts.states, strict=True):
            states.add_packed(packed, cells, size)
        for cell, meter in counts.meters.items():
            own = int(cells[cell])
            if own not in self._meters:
                self._meters[own] = meter.fresh()
            self._meters[own].merge(meter)

    def meter_of_others(self) -> Meter:
        """An empty meter of the metrics that have one a cell."""
        assert self._others is not None
        return self._others.fresh()


def _fit(one: Arguments, other: Arguments) -> bool:
    """Whether rows of both can lie in one tensor."""
    pairs = zip(one.tensors, other.tensors, strict=True)
    return one.names == other.names and all(
        a is b
        or (a is not None and b is not None and (a.dtype, a.device, a.shape[1:]) == (b.dtype, b.device, b.shape[1:]))
        for a, b in pairs
    )


def _chunks(batch: Arguments, tallies: Sequence[Tally]) -> Iterator[Batch]:
    """The rows of a batch as tallies count them, on the device that counts, in chunks that fit its cache."""
    of_device = policy(batch.preds.device)
    elements, device = of_device.chunk_elements.value, of_device.tally_on.value
    compiled, rows = policy(device).compiled.value, len(batch.preds)
    scale = min((tally.chunk_scale for tally in tallies), default=LARGE_CHUNK)
    size = max(1, elements * scale * rows // max(1, batch.preds.numel()))
    for start in range(0, rows, size):
        part = batch.rows(slice(start, start + size)).map(lambda each: readable(each.detach().to(device)))
        _, target, weights, *others = part.tensors
        columns = {name: each for name, each in zip(part.names, others, strict=True) if each is not None}
        yield Batch(part.preds, target, weights, elements // 4, compiled, columns, part.ragged)


def uncounted(whole: Meter, counted: Meter) -> Meter | None:
    """A meter of the metrics that need more tallies than another one has; None where there are none.

    What both count is what the whole counts: see `put_together`.
    """
    tallies = set(counted.tallies)
    names = whole.plan.beyond(tallies)
    if not names:
        return None
    rest = whole.fresh({name: whole.metrics[name] for name in names})
    return rest if tallies.union(rest.tallies) >= set(whole.tallies) else whole.fresh()


def put_together(whole: Meter, *parts: Meter) -> Meter:
    """A meter like `whole` of rows that several meters have counted, which together have all of its tallies."""
    pairs = (zip(part.tallies, part.counts.to_add()[0], strict=True) for part in parts)
    states = dict(pair for of_part in pairs for pair in of_part)
    total = whole.fresh()
    total.counts.add(([states[tally] for tally in total.tallies], parts[0].rows))
    return total
