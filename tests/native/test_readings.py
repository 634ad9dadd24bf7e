"""Contingency tables that compiled code counts are those that NumPy counts, and it takes only what it can read."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay import Meter
from assay.meter.values import plain_value
from assay.metrics import AdjustedRandScore, CramersV, MutualInfoScore, PearsonsContingencyCoefficient, TheilsU
from assay.native.library import MISSING, library
from assay.native.readings import pairs_of_labels
from assay.tally.labels.contingency import ContingencyTable
from assay.tally.stores.samples import SampleArrays

pytestmark = pytest.mark.skipif(library() is None, reason=MISSING)

LABELS = st.integers(-3, 5) | st.integers(2**62, 2**62 + 3)


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=60))
def test_tables_are_those_of_numpy(samples):
    preds, target = torch.tensor(samples).T.contiguous()
    rows, columns = sorted(set(preds.tolist())), sorted(set(target.tolist()))
    table = np.zeros((len(rows), len(columns)), np.int64)
    for pred, label in samples:
        table[rows.index(pred), columns.index(label)] += 1
    found = pairs_of_labels(preds, target)
    spans = (max(each) - min(each) + 1 for each in (preds.tolist(), target.tolist()))
    if np.prod([float(span) for span in spans]) > 4 * len(samples):
        assert found is None
        return
    row, column = table.nonzero()
    for given_, expected in zip(found, (table[row, column], row, column, table.sum(1), table.sum(0)), strict=True):
        assert given_.tolist() == expected.tolist()


@given(st.lists(st.tuples(st.integers(-2, 4), st.integers(0, 3)), min_size=1, max_size=300))
def test_the_table_of_a_store_is_the_one_of_its_samples(samples):
    preds, target = torch.tensor(samples).T.contiguous()
    meter = Meter(value=CramersV())
    meter.update(preds, target)
    (state,) = meter.states()
    found = ContingencyTable.of_store(state["samples"])
    if found is not None:
        expected = ContingencyTable.of(SampleArrays({"preds": preds.numpy()[None], "target": target.numpy()[None]}))
        for name in ("counts", "preds", "target", "preds_totals", "target_totals"):
            assert getattr(found, name).tolist() == getattr(expected, name).tolist()
            assert getattr(found, name).dtype == getattr(expected, name).dtype
        assert found.unit == expected.unit


PLAIN = torch.tensor([0, 1, 1, 2, 0, 1])
LAYOUTS = {
    "strided": PLAIN.repeat_interleave(2)[::2],
    "negated": torch._neg_view(-PLAIN),
    "empty": PLAIN[:0],
    "float64": PLAIN.double(),
    "int32": PLAIN.int(),
    "expanded": PLAIN[:1].expand(6),
    "two columns": PLAIN.view(3, 2),
    "a subclass": torch.nn.Parameter(PLAIN, requires_grad=False),
}


@pytest.mark.parametrize("kind", LAYOUTS)
def test_other_tensors_are_left_to_numpy(kind):
    labels = LAYOUTS[kind]
    assert pairs_of_labels(labels, labels) is None
    if kind != "empty":
        assert pairs_of_labels(labels, PLAIN) is pairs_of_labels(PLAIN, labels) is None


def test_lists_of_different_lengths_are_left_to_numpy():
    assert pairs_of_labels(PLAIN, PLAIN[:5]) is None


def test_labels_whose_table_has_more_than_four_cells_a_sample_are_not_counted_in_one():
    labels = torch.tensor([0, 3, 1, 2])
    found = pairs_of_labels(labels, labels)
    assert found is not None  # 16 cells of 4 samples
    assert found.counts.tolist() == [1, 1, 1, 1]
    assert pairs_of_labels(labels, torch.tensor([0, 4, 1, 2])) is None


METRICS = [CramersV(), PearsonsContingencyCoefficient(), TheilsU(), MutualInfoScore(), AdjustedRandScore()]


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_values_are_read_from_the_table_with_the_bits_of_the_long_way(metric):
    generator = torch.Generator().manual_seed(3)
    meter, batches = Meter(value=metric), []
    for size in (7, 300, 40, 2_000):
        batches.append(torch.randint(-2, 6, (2, size), generator=generator))
        meter.update(*batches[-1])
        plain = plain_value(meter, "value")
        assert plain is not None
        assert torch.equal(plain, metric.compute(meter.counts_of("value")))


@pytest.mark.parametrize(
    "batch",
    [
        (torch.tensor([0, 0, 0]), torch.tensor([0, 1, 2])),
        (torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 1.0, 1.0])),
        (torch.tensor([0, 10**9, 2]), torch.tensor([0, 1, 1])),
    ],
)
def test_other_labels_and_undefined_values_are_left_to_compute(batch):
    meter = Meter(value=CramersV())
    meter.update(*batch)
    assert plain_value(meter, "value") is None
