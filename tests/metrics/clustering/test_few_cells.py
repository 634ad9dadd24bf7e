"""Labels that lie close together are counted in a table, others are sorted: the values are the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.metrics import RandScore
from assay.tally.labels.contingency import ContingencyTable
from assay.tally.stores.samples import SampleArrays

FAR_APART = 10**9


@pytest.mark.parametrize("seed", range(8))
def test_the_table_is_that_of_labels_that_lie_far_apart(seed):
    random = np.random.default_rng(seed)
    preds, target = random.integers(-3, 4, 40), random.integers(5, 5 + 1 + seed, 40)
    few, many = (
        ContingencyTable.of(SampleArrays({"preds": scale * preds[None], "target": scale * target[None]}))
        for scale in (1, FAR_APART)
    )
    assert np.array_equal(few.matrix(), many.matrix())
    assert np.array_equal(few.preds, many.preds)
    assert np.array_equal(few.target, many.target)
    assert few.size == 40
    expected = np.zeros_like(few.matrix())
    np.add.at(expected, tuple(np.unique(each, return_inverse=True)[1] for each in (preds, target)), 1)
    assert np.array_equal(few.matrix(), expected)


@pytest.mark.parametrize(("preds", "target"), [([0, 1, 0], [0, 2, 2]), ([0, 2, 2], [0, 1, 0])])
def test_labels_between_those_that_occur_have_no_row_and_no_column(preds, target):
    table = ContingencyTable.of(SampleArrays({"preds": np.array([preds]), "target": np.array([target])}))
    assert table.matrix().shape == (2, 2)
    assert sorted(table.preds_totals) == sorted(table.target_totals) == [1, 2]


def test_labels_at_both_ends_of_int64_are_sorted():
    ends = torch.tensor([-(2**63), 2**63 - 1, 0])
    assert RandScore()(ends, ends).item() == 1
