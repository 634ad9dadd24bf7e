"""Scores of many cells counted in one pass, against one meter a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from assay.devices import policy
from assay.errors import InvalidValuesError
from assay.meter import Meter
from assay.meter.cells import CellMeters
from assay.metrics import AUROC, Accuracy, AveragePrecision
from assay.metrics.base import Metric
from assay.native.library import MISSING, library
from assay.pretend import pretend
from assay.tally.base import Batch, merge
from assay.tally.row_cells import RowCells
from assay.tally.scores.labelled_scores import score_spec
from assay.tally.scores.score_cells import SHARED_ROWS
from assay.tally.scores.scores import ScoreTally
from laws import bits
from thinning import TURNS, draws, one_of_each

CELLS = 6
EMPTY = 4
ROWS = (70, 1, 400, 0, 130, 60)


@dataclass(frozen=True)
class Task:
    """Which scores are drawn, and how metrics are told of them."""

    name: str
    options: dict[str, Any]
    shape: tuple[int, ...] = ()
    classes: int = 2

    def __str__(self) -> str:
        return self.name

    def draw(self, rows: int, seed: int) -> tuple[Tensor, Tensor]:
        random = torch.Generator().manual_seed(seed)
        logits = torch.randn(rows, *self.shape, generator=random) * 3
        labels = self.shape if "num_labels" in self.options else ()
        target = torch.randint(0, self.classes, (rows, *labels), generator=random)
        if self.options.get("logits"):
            return logits, target
        return (logits.softmax(1) if "num_classes" in self.options else logits.sigmoid()), target


TASKS = [
    Task("binary", {}),
    Task("binary logits", {"logits": True}),
    Task("classes", {"num_classes": 3}, (3,), 3),
    Task("logits of classes", {"num_classes": 3, "logits": True}, (3,), 3),
    Task("ignored", {"num_classes": 3, "ignore_index": 1}, (3,), 3),
    Task("labels", {"num_labels": 4}, (4,)),
]


def drawn_cells(rows: int) -> np.ndarray:
    """Cells of very different sizes, one of them empty."""
    cells = np.random.default_rng(rows).choice(CELLS, rows, p=[0.6, 0.2, 0.1, 0.07, 0.0, 0.03])
    return cells.astype(np.int64)


def metrics_of(task: Task, limit: int) -> dict[str, Metric]:
    ranked = {"auroc": AUROC(exact_up_to=limit, **task.options), "ap": AveragePrecision(exact=True, **task.options)}
    return {**ranked, "acc": Accuracy(**task.options)}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("limit", [0, 60, 10**6])
@pytest.mark.parametrize("task", TASKS, ids=str)
@one_of_each(lambda task, limit, **_: (str(task), limit > 0), TURNS)
def test_states_are_those_of_one_meter_a_cell(task: Task, limit: int, weighted: bool):
    """Some cells pass the limit with the first rows, some later, some never; and states are read in between."""
    like = Meter(weighted=weighted, **metrics_of(task, limit))
    counted, meters = CellMeters(like), [like.fresh() for _ in range(CELLS)]
    for seed, rows in enumerate(ROWS):
        preds, target = task.draw(rows, seed)
        if seed == 4:
            preds = preds.double()
        preds = preds.t().contiguous().t() if task.shape and seed % 2 == 0 else preds
        weights = torch.rand(rows) if weighted else None
        cells = drawn_cells(rows)
        counted.count(like.arguments(preds, target, weights, {}), cells, CELLS, {})
        for cell, meter in enumerate(meters):
            chosen = torch.from_numpy(np.flatnonzero(cells == cell))
            meter.update(preds[chosen], target[chosen], weights=None if weights is None else weights[chosen])
        if seed in (2, 5):
            for cell, meter in enumerate(meters):
                assert bits(counted.meter(cell).states()) == bits(meter.states())
    assert counted.meter(EMPTY).rows == 0
    whole = like.fresh().merge(*meters)
    assert bits(counted.total().states()) == bits(whole.states())


@pytest.mark.parametrize("limit", [0, 150, 900, 10**6])
@pytest.mark.parametrize("task", TASKS, ids=str)
@one_of_each(lambda task, limit, **_: (str(task), limit > 0), TURNS)
def test_groups_of_cells_have_a_histogram_where_they_are_too_large_together(task: Task, limit: int):
    """Some of them or all, of cells of which some have one as well, and which count on."""
    like = Meter(**metrics_of(task, limit))
    groups, counted, meters = np.array([0, 1, 1, 2, 2, 0]), CellMeters(like), [like.fresh() for _ in range(CELLS)]
    for seed, rows in enumerate((250, 130, 60)):
        batch, cells = like.arguments(*task.draw(rows, seed), None, {}), drawn_cells(rows)
        counted.count(batch, cells, CELLS, {})
        for cell, part in batch.by_code(cells):
            meters[cell].count(part)
        for count, numbers in ((3, groups), (1, np.zeros(CELLS, np.int64)), (3, groups)):
            found = counted.grouped(numbers, count)
            for k, each in enumerate(found):
                own = [meters[cell] for cell in np.flatnonzero(numbers == k)]
                assert bits(each.states()) == bits(like.fresh().merge(*own).states())


@pytest.mark.parametrize("limit", [0, 90, 10**6])
@pytest.mark.parametrize("task", TASKS, ids=str)
@one_of_each(lambda task, limit, **_: (str(task), limit > 0), TURNS)
def test_parts_that_are_handed_over_add_up(task: Task, limit: int):
    """Cells that are few in each part, and too many together; more may be counted where parts were added."""
    like = Meter(**metrics_of(task, limit))
    first, second, whole = (CellMeters(like) for _ in range(3))
    order = np.array([3, 0, 5, 1, 4, 2])
    for seed, part in enumerate((first, second, second)):
        batch, cells = like.arguments(*task.draw(200, seed), None, {}), drawn_cells(200)
        part.count(batch, cells, CELLS, {})
        whole.count(batch, order[cells], CELLS, {})
    second_of = CellMeters(like)
    for part in (first, second):
        second_of.add(part.counts(), order, CELLS)
    batch, cells = like.arguments(*task.draw(50, 9), None, {}), drawn_cells(50)
    for each in (second_of, whole):
        each.count(batch, cells, CELLS, {})
    for cell in range(CELLS):
        assert bits(second_of.meter(cell).states()) == bits(whole.meter(cell).states())
    assert bits(second_of.total().states()) == bits(whole.total().states())


@pytest.mark.parametrize("keep", [0, 12, None])
@pytest.mark.parametrize("task", TASKS, ids=str)
@one_of_each(lambda task, **_: str(task))
def test_compiled_code_counts_as_torch_does(task: Task, keep: int | None):
    options = {name: task.options.get(name) for name in ("num_classes", "num_labels", "ignore_index")}
    tally = ScoreTally(score_spec(**options, logits=bool(task.options.get("logits"))), keep)
    found = []
    for compiled in (True, False):
        states = tally.cell_states()
        for seed in range(3):
            cells = RowCells(torch.from_numpy(drawn_cells(90)), CELLS)
            states.add(Batch(*task.draw(90, seed), compiled=compiled), cells)
        found.append([bits(tally.canonicalize(states.state(cell), 270)) for cell in range(CELLS)])
    assert found[0] == found[1]


@pytest.mark.parametrize("limit", [0, 60, 10**6])
@pytest.mark.parametrize("device", ["mps", "cuda:1", "xpu"])
@one_of_each(lambda device, **_: device)
def test_devices_count_the_bits_of_the_cpu_and_are_not_read(device: str, limit: int):
    task = TASKS[2]
    like = Meter(**metrics_of(task, limit))
    batches = [(like.arguments(*task.draw(rows, rows), None, {}), drawn_cells(rows)) for rows in (80, 30, 90)]
    expected = CellMeters(like)
    for batch, cells in batches:
        expected.count(batch, cells, CELLS, {})
    with pretend(device) as pretended:
        policy(pretended.device)  # the self-test at the first use of a device reads what it computed
        counted, moved = CellMeters(like), [each.map(lambda tensor: tensor.to(pretended.device)) for each, _ in batches]
        pretended.events.clear()
        for batch, (_, cells) in zip(moved, batches, strict=True):
            counted.count(batch, cells, CELLS, {})
        copies = {event.where.function for event in pretended.events if event.where}
        assert copies <= {"_to", "CellMeters._count_chunks"}, "the numbers of rows and cells go to the device"
        for cell in range(CELLS):
            assert bits(counted.meter(cell).states()) == bits(expected.meter(cell).states())


@pytest.mark.parametrize("limit", [0, 10, 10**6])
def test_what_is_invalid_is_invalid_in_its_cell(limit: int):
    like = Meter(AUROC(num_classes=3, exact_up_to=limit))
    preds, target = TASKS[2].draw(60, 0)
    cells = np.arange(60, dtype=np.int64) % 3
    preds[4, 2], target[8] = torch.nan, 3  # both in cells 1 and 2
    counted = CellMeters(like)
    counted.count(like.arguments(preds, target, None, {}), cells, 3, {})
    assert counted.meter(0).compute()
    for cell, what in ((1, "scores are NaN"), (2, "targets are outside")):
        with pytest.raises(InvalidValuesError, match=what):
            counted.meter(cell).compute()
    with pytest.raises(InvalidValuesError):
        counted.total().compute()


def test_samples_are_kept_once():
    """However many cells there are, and none of a cell that has a histogram."""
    tally = ScoreTally(score_spec(None), 1000)
    states = tally.cell_states()
    for seed in draws(20):
        preds, target = TASKS[0].draw(1000, seed)
        cells = np.where(np.arange(1000) < 900, 0, seed % 5 + 1)
        states.add(Batch(preds, target, compiled=True), RowCells(torch.from_numpy(cells), 6))
        kept = sum(states.state(cell)["samples"].rows for cell in range(6))
        assert kept == (900 if seed == 0 else 0) + 100 * (seed + 1)


@pytest.mark.parametrize("rows", [SHARED_ROWS - 1, SHARED_ROWS])
def test_cells_by_several_columns_keep_one_copy_of_a_large_batch(rows: int):
    """Which is their own: the tensors of the batch may be written over, and more rows come into each of them."""
    tally = ScoreTally(score_spec(None), None)
    both, expected = [tally.cell_states(), tally.cell_states()], []
    for seed, count in enumerate((rows, 5, rows)):
        preds, target = TASKS[0].draw(count, seed)
        expected.append(preds.clone())
        batch, cells = Batch(preds, target, compiled=True), torch.arange(count)
        for k, states in enumerate(both):
            states.add(batch, RowCells(cells % (k + 2), k + 2))
        preds.zero_()
    addresses = []
    for k, states in enumerate(both):
        addresses.append([block["scores"].data_ptr() for block in states._samples._store.blocks()])
        for cell in range(k + 2):
            own = torch.cat([each[cell :: k + 2] for each in expected])
            found = states.state(cell)["samples"].column("scores")[:, 0]
            assert found.sort().values.tolist() == own.sort().values.tolist()
    assert len({*addresses[0]} & {*addresses[1]}) == (2 if rows >= SHARED_ROWS else 0)


PART_OF = np.array([0, 1, 0, 2, 1, 1])
compiled_code = pytest.mark.skipif(library() is None, reason=MISSING)


@compiled_code
@pytest.mark.parametrize("task", TASKS, ids=str)
def test_areas_of_parts_of_the_cells(task: Task):
    """From rows in the order in which they came, then by cell, and with more behind those."""
    metric = AUROC(**task.options)
    tally, like = metric.tally(False), Meter(auroc=metric)
    counted, plain = CellMeters(like), CellMeters(like)
    for seed, rows in enumerate((400, 130, 60)):
        for each in (counted, plain):
            each.count(like.arguments(*task.draw(rows, seed), None, {}), drawn_cells(rows), CELLS, {})
        check_areas(counted, plain, tally)
        if seed == 1:
            counted.meter(0).states()
            check_areas(counted, plain, tally)


def check_areas(counted: CellMeters, plain: CellMeters, tally: ScoreTally) -> None:
    """Compare the areas of all parts with those of the rows of each alone, and what is known without rows."""
    found = counted.area_sums(tally, PART_OF)
    assert found is not None
    for part in range(3):
        cells = np.flatnonzero(part == PART_OF)
        own = [plain.counted(cell)[0][0] for cell in cells]
        whole = merge(tally, own)
        codes = np.repeat(np.arange(len(cells)), [state["samples"].rows for state in own])
        assert np.array_equal(found[:, cells], tally.area_sums(whole, codes, len(cells)))
        assert bits(counted.sums_of(tally, cells)) == bits({name: whole[name] for name in ("count", "invalid")})


@pytest.mark.parametrize(
    ("options", "weighted"), [({"exact_up_to": 60}, False), ({"exact_up_to": 0}, False), ({}, True)]
)
def test_scores_in_bins_or_with_weights_have_no_areas(options: dict[str, int], weighted: bool):
    metric = AUROC(**options)
    like = Meter(weighted=weighted, auroc=metric)
    counted = CellMeters(like)
    weights = torch.ones(400) if weighted else None
    counted.count(like.arguments(*TASKS[0].draw(400, 0), weights, {}), drawn_cells(400), CELLS, {})
    assert counted.area_sums(metric.tally(weighted), PART_OF) is None
