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


def test_conjugated_numbers_are_staged_as_what_they_are():
    stage, spectra = RowStage(CPU, 1 << 12, True), torch.tensor([1 + 2j, 3 - 4j])
    for batch in (spectra, spectra.conj(), spectra):
        stage.expect(Arguments((batch, None, None)))
        stage.add(Arguments((batch, None, None)))
    assert stage.staged().tensors[0].tolist() == [1 + 2j, 3 - 4j, 1 - 2j, 3 + 4j, 1 + 2j, 3 - 4j]


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


def stage_of(scores, labels, room=3):
    """A stage with so many batches like these ones in it, of which a last one has room."""
    stage = RowStage(CPU, (room + 1) * (scores.nbytes + (0 if labels is None else labels.nbytes)), True)
    for _ in range(room):
        stage.expect(Arguments((scores, labels, None)))
        stage.add(Arguments((scores, labels, None)))
    return stage


@pytest.mark.parametrize("labels", [torch.arange(4), None], ids=["with labels", "alone"])
def test_a_batch_like_the_last_one_is_moved(labels):
    scores = torch.randn(4, 5, generator=GENERATOR)
    stage = stage_of(torch.zeros(4, 5), None if labels is None else torch.zeros(4, dtype=torch.int64))
    assert stage.move(scores, labels) == 4
    staged = stage.staged().tensors
    assert torch.equal(staged[0], torch.cat([torch.zeros(12, 5), scores]))
    assert labels is None or staged[1].tolist() == [0] * 12 + [0, 1, 2, 3]
    assert stage.move(scores, labels) == 0  # there is no room
    assert stage.rows == 16


def test_a_batch_that_differs_from_the_last_one_is_not_moved():
    scores, labels = torch.zeros(4, 5), torch.zeros(4, dtype=torch.int64)
    freed, cut = torch.zeros(4, 5), torch.zeros(4, 5)
    freed.untyped_storage().resize_(0)
    cut.untyped_storage().resize_(40)
    others = [
        (scores[:3], labels),
        (scores, labels[:3]),
        (scores.double(), labels),
        (scores, labels.int()),
        (scores, None),
        (scores.t().contiguous().t(), labels),
        (scores, torch.zeros(8, dtype=torch.int64)[::2]),
        (torch._neg_view(scores), labels),
        (scores[:1].expand(4, 5), labels),
        (scores.to("meta"), labels),
        (scores.to_sparse(), labels),
        (torch.nn.Parameter(scores), labels),
        (scores.numpy(), labels),
        (freed, labels),
        (cut, labels),
    ]
    stage = stage_of(scores, labels)
    assert [stage.move(*each) for each in others] == [0] * len(others)
    assert stage.rows == 12
    weighted = RowStage(CPU, 1 << 12, True)
    for _ in range(2):
        weighted.expect(Arguments((scores, labels, torch.ones(4))))
        weighted.add(Arguments((scores, labels, torch.ones(4))))
    assert weighted.move(scores, labels) == 0
