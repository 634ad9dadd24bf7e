"""Scores that are sorted once for all divisions of the rows."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch

from assay.native import rankings
from assay.native.library import MISSING, library
from assay.tally.base import Batch
from assay.tally.row_cells import RowCells
from assay.tally.scores import sorted_scores
from assay.tally.scores.labelled_scores import score_spec
from assay.tally.scores.score_cells import ScoreCells
from assay.tally.scores.scores import ScoreTally
from assay.tally.scores.sorted_scores import joint_cells

pytestmark = pytest.mark.skipif(library() is None, reason=MISSING)

ROWS = 500


def divisions_of(*counts: int) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.integers(0, count, ROWS).astype(np.int32) for count in counts]


@pytest.mark.parametrize("counts", [(3,), (1, 4), (4, 30, 2), (2, 3, 4, 5)])
@pytest.mark.parametrize("rows", [0, 1, ROWS])
def test_a_joint_cell_has_one_cell_of_each_division(counts: tuple[int, ...], rows: int) -> None:
    divisions = [each[:rows] for each in divisions_of(*counts)]
    joint, tables = joint_cells(divisions)
    for cells, table in zip(divisions, tables, strict=True):
        assert table is not None
        assert np.array_equal(table[joint], cells)


def test_cells_by_the_parts_of_others_are_no_more_than_those() -> None:
    (cells,) = divisions_of(30)
    joint, (table, *_) = joint_cells([cells % 6, cells, cells // 6])
    assert table is not None
    assert len(table) == 30
    assert len(set(zip(joint.tolist(), cells.tolist(), strict=True))) == 30


def test_a_division_with_too_many_cells_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_scores, "MOST_PAIRS", 100)
    divisions = divisions_of(30, 20, 3)
    joint, tables = joint_cells(divisions)
    assert tables[1] is None
    for k in (0, 2):
        assert np.array_equal(tables[k][joint], divisions[k])


def states_of(divisions: list[np.ndarray], batches: list[Batch]) -> list[ScoreCells]:
    """What counts batches by each division: by the first two all of them, by others only the first batch."""
    found = []
    for k, cells in enumerate(divisions):
        states = ScoreTally(score_spec(3), None).cell_states()
        assert isinstance(states, ScoreCells)
        for batch in batches if k < 2 else batches[:1]:
            numbers = torch.from_numpy(cells[: len(batch.preds)].astype(np.int64))
            states.add(batch, RowCells(numbers, int(cells.max()) + 1))
        found.append(states)
    return found


@pytest.mark.parametrize(("most_pairs", "times"), [(0, (3, 3, 3)), (1 << 22, (3, 0, 3))])
def test_areas_are_those_of_each_division_alone(
    most_pairs: int, times: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of three classes is sorted once for the first two divisions, unless there are too many cells."""
    divisions = divisions_of(30, 20, 3)
    scores, target = torch.rand(ROWS, 3).softmax(1), torch.randint(0, 3, (ROWS,))
    monkeypatch.setattr(sorted_scores, "MOST_PAIRS", most_pairs)
    together = states_of(divisions, [Batch(scores, target, compiled=True) for _ in range(2)])
    sorted_rows, plain = [], rankings.order_scores
    monkeypatch.setattr(rankings, "order_scores", lambda *given: sorted_rows.append(len(given[0])) or plain(*given))
    for k, states in enumerate(together):
        alone = states_of(divisions, [Batch(scores, target, compiled=True) for _ in range(2)])[k]
        part_of = np.arange(int(divisions[k].max()) + 1) % 3
        own = alone._samples._store
        cells, known = torch.from_numpy(alone._samples._all_cells()), own.column("target")[:, 0]
        sorted_rows.clear()
        found = states.area_sums(part_of)
        assert len(sorted_rows) == times[k]
        assert found is not None
        for part in range(3):
            inside = torch.from_numpy(part_of)[cells.long()] == part
            for group, sums in enumerate(found):
                scores_of = own.column("scores")[inside, group]
                expected = rankings.area_sums(scores_of, known[inside], cells[inside], group, len(part_of))
                assert np.array_equal(sums[part_of == part], expected[part_of == part])


def test_stores_of_one_batch_do_not_keep_each_other() -> None:
    first, *others = states_of(
        divisions_of(4, 5), [Batch(torch.rand(ROWS, 3).softmax(1), torch.randint(0, 3, (ROWS,)))]
    )
    first.area_sums(np.zeros(4, np.int64))
    gone = weakref.ref(others.pop()._samples)
    gc.disable()
    try:
        assert gone() is None
    finally:
        gc.enable()
