"""A stage gives the rows of successive batches as they came, whatever their memory looks like."""

from __future__ import annotations

import pytest
import torch

from assay.meter.counting.row_stage import RowStage
from assay.meter.inputs.arguments import Arguments

CPU = torch.device("cpu")
GENERATOR = torch.Generator().manual_seed(3)


def forms(rows):
    """Batches of equal dtypes and shapes, in several kinds of memory."""
    scores = torch.randn(rows, 5, generator=GENERATOR)
    labels = torch.randint(9, (rows,), generator=GENERATOR)
    yield scores, labels
    yield scores.t().contiguous().t(), labels.repeat_interleave(2)[::2]
    yield scores[:1].expand(rows, 5), labels[:1].expand(rows)
    yield torch._neg_view(scores), labels
    yield scores.clone().requires_grad_(), labels
    yield torch.cat([scores, scores])[rows:], torch.cat([labels, labels])[rows:]


@pytest.mark.parametrize("in_host_memory", [True, False])
@pytest.mark.parametrize("rows", [1, 3, 8])
def test_staged_rows_are_those_of_the_batches(rows, in_host_memory):
    stage, batches = RowStage(CPU, 1 << 12, in_host_memory), list(forms(rows))
    for _ in range(2):  # the second time in the buffers of the first
        for scores, labels in batches:
            stage.expect(Arguments((scores, labels, None)))
            stage.add(Arguments((scores, labels, None)))
        assert stage.rows == rows * len(batches)
        scores, labels, weights = stage.staged().tensors
        assert torch.equal(scores, torch.cat([each.detach() for each, _ in batches]))
        assert torch.equal(labels, torch.cat([each for _, each in batches]))
        assert weights is None
        stage.clear()


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int16, torch.bfloat16, torch.float64])
def test_rows_of_any_dtype_and_of_several_columns_are_staged(dtype):
    stage = RowStage(CPU, 1 << 12, True)
    batches = [Arguments((torch.rand(k), None, None, torch.randint(2, (k, 2, 3)).to(dtype)), ("b",)) for k in (2, 1, 4)]
    for batch in batches:
        stage.expect(batch)
        stage.add(batch)
    staged = stage.staged()
    assert staged.names == ("b",)
    assert torch.equal(staged.tensors[0], torch.cat([each.tensors[0] for each in batches]))
    assert torch.equal(staged.tensors[3], torch.cat([each.tensors[3] for each in batches]))


def test_what_is_written_into_a_batch_later_is_not_staged():
    stage, values = RowStage(CPU, 1 << 12, True), torch.ones(4)
    stage.expect(Arguments((values, None, None)))
    stage.add(Arguments((values, None, None)))
    values.zero_()
    assert stage.staged().tensors[0].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("in_host_memory", [True, False])
def test_a_batch_without_rows_adds_none(in_host_memory):
    stage = RowStage(CPU, 1 << 12, in_host_memory)
    for rows in (0, 2, 0):
        stage.expect(Arguments((torch.ones(rows), None, None)))
        stage.add(Arguments((torch.ones(rows), None, None)))
    assert stage.staged().tensors[0].tolist() == [1, 1]


def test_nothing_is_staged_without_memory():
    stage = RowStage(CPU, 0, True)
    stage.expect(Arguments((torch.ones(3), None, None)))
    assert stage.capacity == 0
