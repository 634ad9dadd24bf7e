"""Samples of one batch that are held read as those of a store do."""

from __future__ import annotations

import pytest
import torch

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
