"""Samples that are all right, against the definition."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.decide import Argmax, Threshold
from assay.tally.base import Batch
from assay.tally.labels.labels import Labels
from assay.tally.labels.sample_hits import SampleHits

POSITIONS = 3
samples = st.lists(
    st.lists(st.tuples(st.integers(0, 1), st.integers(-1, 1)), min_size=POSITIONS, max_size=POSITIONS), max_size=12
)


@pytest.mark.parametrize("num_labels", [None, POSITIONS])
@given(samples)
def test_a_sample_is_right_when_all_that_is_not_ignored_is(num_labels, table):
    labels = Labels(2, Threshold(), num_labels=num_labels, ignore_index=-1, multiclass=False)
    tally = SampleHits(labels)
    state = tally.zero(torch.device("cpu"))
    pairs = torch.tensor(table, dtype=torch.long).view(-1, POSITIONS, 2)
    tally.add(state, Batch(pairs[..., 0], pairs[..., 1]))
    kept = [[(p, t) for p, t in row if t != -1] for row in table]
    right = sum(bool(row) and all(p == t for p, t in row) for row in kept)
    wrong = sum(any(p != t for p, t in row) for row in kept)
    assert state["counts"].tolist() == [len(table) - right - wrong, right, wrong, 0, 0]
    assert (tally.compute(state).right, tally.compute(state).wrong) == (right, wrong)


def test_what_should_not_be_there_is_counted():
    tally = SampleHits(Labels(3, Argmax(), ignore_index=9))
    state = tally.zero(torch.device("cpu"))
    tally.add(state, Batch(torch.tensor([0, 5, 5, 0, -1, 7]), torch.tensor([0, 1, 5, -2, 2, 9])))
    assert {problem.what.split()[0]: problem.count for problem in tally.invalid_values(state)} == {
        "targets": 2,
        "predictions": 2,
    }
