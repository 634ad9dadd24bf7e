"""Samples of one batch that are held read as those of a store do."""

from __future__ import annotations

import pytest
import torch

from assay.errors import ShapeError
from assay.tally.base import TensorLayout
from assay.tally.stores.held_samples import HeldSamples
from assay.tally.stores.sample_store import ANY, SampleStore, canonical

COLUMNS = {"scores": TensorLayout(torch.float32, (2,)), "target": TensorLayout(ANY, ())}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("labels", [torch.bool, torch.int8, torch.int64])
def test_columns_are_those_of_a_store(dtype, labels):
    rows = {"target": torch.tensor([1, 0, 1]).to(labels), "scores": torch.tensor([[3, 1], [2, 5], [0, 4]]).to(dtype)}
    held, kept = HeldSamples(COLUMNS), SampleStore(COLUMNS)
    for store in (held, kept):
        store.append(**rows)
    for first, second in ((held, kept), (canonical(held), canonical(kept)), (held.copy(), kept.copy())):
        assert first.rows == second.rows == 3
        for name in COLUMNS:
            assert first.column(name).dtype == second.column(name).dtype
            assert torch.equal(first.column(name), second.column(name))


def test_a_column_is_a_copy():
    scores, held = torch.tensor([1.0, 2.0]), HeldSamples({"scores": TensorLayout(torch.float32, ())})
    held.append(scores=scores)
    held.column("scores").zero_()
    assert scores.tolist() == held.column("scores").tolist() == [1.0, 2.0]


def test_rows_that_a_function_writes():
    held = HeldSamples({"scores": TensorLayout(torch.float32, ())})
    held.append_by(3, lambda columns, row, start, count: columns["scores"][row : row + count].fill_(start + 7))
    assert held.column("scores").tolist() == [7.0, 7.0, 7.0]


def test_a_store_that_takes_samples_that_are_held_has_a_copy_of_them():
    kept, scores = SampleStore({"scores": TensorLayout(torch.float32, ())}), torch.tensor([1.0, 2.0])
    for _ in range(3):
        held = HeldSamples(kept.columns)
        held.append(scores=scores)
        kept.extend(held)
        scores += 2
    assert kept.column("scores").tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert len(kept.blocks()) == 1


LAYOUTS = {
    "plain": lambda rows: rows,
    "strided": lambda rows: rows.repeat_interleave(2, 0)[::2],
    "columns": lambda rows: rows.T.contiguous().T,
    "negated": lambda rows: torch._neg_view(-rows),
    "expanded": lambda rows: rows[:1].expand(len(rows), -1),
    "zeros": lambda rows: torch._efficientzerotensor(tuple(rows.shape), dtype=rows.dtype),
    "with a gradient": lambda rows: rows.clone().requires_grad_(),
    "a parameter": torch.nn.Parameter,
    "float64": lambda rows: rows.double(),
    "empty": lambda rows: rows[:0],
}


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("is_held", [False, True])
def test_rows_are_copied_from_wherever_they_lie(kind, is_held):
    kept, expected = SampleStore({"scores": TensorLayout(torch.float32, (2,))}), []
    for k in range(4):
        rows = torch.arange(6.0).view(3, 2) + 6 * k + 1
        given = rows if k == 1 else LAYOUTS[kind](rows)
        store = HeldSamples(kept.columns) if is_held else kept
        store.append(scores=given)
        if is_held:
            kept.extend(store)
        expected += given.clone().tolist()
    assert kept.rows == len(expected)
    assert kept.column("scores").tolist() == expected


@pytest.mark.parametrize(
    ("tensors", "what"),
    [
        ({"x": torch.zeros(2), "y": torch.zeros(3)}, "y"),
        ({"x": torch.zeros(2), "y": torch.zeros(2, 1)}, "y"),
        ({"x": torch.zeros(2)}, "append"),
        ({"x": torch.zeros(2), "z": torch.zeros(2)}, "append"),
        ({"x": torch.zeros(2), "y": torch.zeros(2), "z": torch.zeros(2)}, "append"),
    ],
)
def test_rows_that_are_none_of_a_store_with_room_are_refused(tensors, what):
    kept = SampleStore({name: TensorLayout(torch.float32, ()) for name in "xy"})
    kept.append(x=torch.ones(2), y=torch.ones(2))
    with pytest.raises(ShapeError, match=what):
        kept.append(**tensors)
    assert (kept.rows, kept.column("x").tolist()) == (2, [1.0, 1.0])


def test_rows_are_copied_into_the_room_of_a_store_only_within_its_budget():
    kept = SampleStore({"x": TensorLayout(torch.float32, ())}, host_budget=64)
    for k in range(10):
        kept.append(x=torch.full((4,), float(k)))
    assert kept.allocated["disk"] > 0
    assert kept.column("x").tolist() == [float(k) for k in range(10) for _ in range(4)]
