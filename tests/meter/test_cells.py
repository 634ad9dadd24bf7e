"""Many cells counted in one pass, against one meter a cell."""

from __future__ import annotations

import math
import warnings
from contextlib import suppress

import numpy as np
import pytest
import torch

from assay.errors import InvalidValuesError
from assay.meter import Meter
from assay.meter.cells import CellMeters, put_together, uncounted
from assay.metrics import Accuracy, ConfusionMatrix, LogLoss, Mean, MeanAbsoluteError, R2Score
from assay.tally.base import Batch, State, Tally
from assay.tally.row_cells import RowCells
from laws import bits, feed
from tally_laws import TALLY_CASES, TallyCase
from thinning import every

TABLES = [
    case
    for case in TALLY_CASES
    if not case.raw and any(tally.has_cells or tally.cell_states() for tally in case.meter().tallies)
]
CELLS = 5


def cells_of(rows: int) -> np.ndarray:
    """Cells of rows, without the last one."""
    return np.random.default_rng(rows).integers(0, CELLS - 1, rows)


@every(TABLES, lambda case: (type(case.metric), type(case.tally)), turns=1)  # batches of each layout are cut into cells
def test_cells_are_counted_as_one_meter_a_cell_does(case: TallyCase):
    batches = [case.data(seed, rows) for seed, rows in ((1, 30), (2, 1), (3, 25))]
    counted, chosen = CellMeters(case.meter()), [cells_of(batch.count) for batch in batches]
    meters = [case.meter() for _ in range(CELLS)]
    for batch, cells in zip(batches, chosen, strict=True):
        counted.count(arguments(case, batch), cells, CELLS, {})
        for cell, meter in enumerate(meters):
            feed(meter, batch.rows(torch.from_numpy(np.flatnonzero(cells == cell))))
    for cell, meter in enumerate(meters):
        assert bits(counted.meter(cell).states()) == bits(meter.states())
        assert counted.meter(cell).rows == meter.rows
    cells = np.array([3, 0, 4])
    for k, tally in enumerate(counted.meter(0).tallies):
        tables = counted.tables_of(tally, cells)
        assert (tables is not None) is (tally.has_cells)
        for place, cell in enumerate(cells if tables else ()):
            assert bits({name: each[place] for name, each in tables.items()}) == bits(meters[cell].states()[k])


@every(TABLES)
def test_groups_of_cells_are_counted_as_one_meter_a_group_does(case: TallyCase):
    counted, meters = CellMeters(case.meter()), [case.meter() for _ in range(3)]
    groups = np.arange(CELLS) * 2 % 3
    for seed, rows in ((1, 30), (2, 25)):
        batch = case.data(seed, rows)
        cells = cells_of(batch.count)
        counted.count(arguments(case, batch), cells, CELLS, {})
        for group, meter in enumerate(meters):
            feed(meter, batch.rows(torch.from_numpy(np.flatnonzero(groups[cells] == group))))
        found = counted.grouped(groups, 3)
        assert [bits(each.states()) for each in found] == [bits(meter.states()) for meter in meters]
        assert [each.rows for each in found] == [meter.rows for meter in meters]
        assert bits(counted.meter(0).states()) == bits(counted.grouped(np.arange(CELLS), CELLS)[0].states())


@every(TABLES)
def test_cells_that_are_handed_over_add_up_to_those_of_one_process(case: TallyCase):
    batches = [case.data(seed, rows) for seed, rows in ((1, 30), (2, 25))]
    chosen, whole = [cells_of(batch.count) for batch in batches], case.meter()
    both, first, second = (CellMeters(case.meter()) for _ in range(3))
    for batch, cells, each in zip(batches, chosen, (first, second), strict=True):
        feed(whole, batch)
        both.count(arguments(case, batch), cells, CELLS, {})
        each.count(arguments(case, batch), cells, CELLS, {})
    renumbered = np.arange(CELLS)[::-1].copy()
    added = CellMeters(case.meter())
    added.add(first.counts(), renumbered, CELLS)
    added.add(second.counts(), renumbered, CELLS + 2)
    for cell in range(CELLS):
        assert bits(added.meter(int(renumbered[cell])).states()) == bits(both.meter(cell).states())
    for counted in (both, added):
        assert bits(counted.total().states()) == bits(whole.states())
        assert counted.total().rows == whole.rows


def test_what_no_cell_needs_is_counted_besides():
    accuracy, matrix, loss = Accuracy(num_classes=3), ConfusionMatrix(num_classes=3), LogLoss(num_classes=3)
    whole = Meter(accuracy=accuracy, matrix=matrix, loss=loss)
    assert uncounted(whole, Meter(acc=accuracy, other=loss)) is None
    rest = uncounted(whole, Meter(acc=accuracy))
    assert rest is not None
    assert list(rest.metrics) == ["loss"]
    scores, target = torch.rand(20, 3).softmax(1), torch.randint(3, (20,))
    counted = Meter(acc=accuracy)
    for meter in (whole, rest, counted):
        meter.update(scores, target)
    assert bits(put_together(whole, counted, rest).states()) == bits(whole.states())


def arguments(case: TallyCase, batch):
    return case.meter().arguments(batch.preds, batch.target, batch.weights, batch.columns)


@every(TABLES)
def test_compiled_cells_have_the_bits_of_torch(case: TallyCase):
    data = case.data(4, 40)
    cells = RowCells(torch.from_numpy(cells_of(40)), CELLS)
    for tally in case.meter().tallies:
        if tally.has_cells:
            batches = (Batch(*data[:3], compiled=compiled, columns=data.columns) for compiled in (True, False))
            compiled, plain = (of_cells(tally, batch, cells) for batch in batches)
            assert compiled == plain


def of_cells(tally: Tally, batch: Batch, cells: RowCells) -> list:
    zero = tally.zero(torch.device("cpu"))
    states: State = {name: each.new_zeros(CELLS + 3, *each.shape) for name, each in zero.items()}
    tally.add_cells(states, batch, cells)
    own = ({name: each[k].clone() for name, each in states.items()} for k in range(CELLS))
    return [bits(tally.canonicalize(state, 40)) for state in own]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
@pytest.mark.parametrize("weighted", [False, True])
def test_cells_tell_apart_what_is_not_finite(dtype, weighted):
    preds = torch.tensor([1.0, math.inf, 2.0, math.nan, 3.0, -math.inf, 1e30, 4.0], dtype=torch.float64)
    preds = preds.to(dtype) if dtype.is_floating_point else torch.arange(8)
    target, cells = torch.arange(8.0), np.array([0, 1, 0, 2, 3, 1, 3, 0])
    like = Meter(r2=R2Score(), mae=MeanAbsoluteError(), weighted=weighted)
    weights = torch.linspace(0, 1, 8) if weighted else None
    counted = CellMeters(like)
    counted.count(like.arguments(preds, target, weights, {}), cells, CELLS, {})
    for cell in range(CELLS):
        rows = torch.from_numpy(np.flatnonzero(cells == cell))
        meter = like.fresh()
        meter.update(preds[rows], target[rows], weights=None if weights is None else weights[rows])
        assert bits(counted.meter(cell).states()) == bits(meter.states())


@every(TALLY_CASES)
def test_reading_a_value_changes_no_count(case: TallyCase):
    meter = case.meter()
    feed(meter, case.data(1, 30))
    merged = case.meter().merge(meter)
    before = bits(merged.states())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(InvalidValuesError):
            merged.compute()
    assert bits(merged.states()) == before


@pytest.mark.parametrize("nan_policy", ["ignore", "warn"])
def test_nan_is_left_out_of_its_cell(nan_policy):
    values, cells = torch.randn(40), cells_of(40)
    values[::7] = math.nan
    whole = Meter(mean=Mean(nan_policy=nan_policy))
    counted = CellMeters(whole)
    counted.count(whole.arguments(values, None, None, {}), cells, CELLS, {})
    for cell in range(CELLS):
        meter = whole.fresh()
        meter.update(values[torch.from_numpy(cells == cell)])
        assert bits(counted.meter(cell).states()) == bits(meter.states())
