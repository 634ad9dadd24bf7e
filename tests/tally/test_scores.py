"""Scores are kept or counted, and both ways hold the same samples."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.tally.base import Batch, merge
from assay.tally.scores.labelled_scores import score_spec
from assay.tally.scores.scores import ScoreTally

HOST = torch.device("cpu")


def counted(tally, *batches):
    state = tally.zero(HOST)
    for preds, target in batches:
        tally.add(state, Batch(preds, target))
    return state


def totals(rankings):
    return [(r.num_positives, r.num_negatives) for r in rankings]


@pytest.mark.parametrize("keep", [None, 0, 10, 1000])
@pytest.mark.parametrize("task", [{}, {"num_classes": 3}, {"num_labels": 2}])
def test_every_known_label_is_in_the_rankings_once(keep, task):
    generator = torch.Generator().manual_seed(0)
    groups = task.get("num_classes") or task.get("num_labels")
    top = task.get("num_classes", 2)
    shape = (50, *([groups] if groups else []))
    target_shape = shape if "num_labels" in task else (50,)
    preds = torch.rand(shape, generator=generator)
    target = torch.randint(-1, top, target_shape, generator=generator)  # -1 is ignored
    tally = ScoreTally(score_spec(task.get("num_classes"), task.get("num_labels"), ignore_index=-1), keep)
    found = totals(tally.compute(tally.canonicalize(counted(tally, (preds, target)), 50)))
    if "num_classes" in task:
        expected = [((target == c).sum(), ((target != c) & (target >= 0)).sum()) for c in range(groups)]
    else:
        columns = target.view(50, -1).unbind(1)
        expected = [((column == 1).sum(), (column == 0).sum()) for column in columns]
    assert found == [(int(p), int(n)) for p, n in expected]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(0, 12))
def test_states_of_parts_settle_to_the_state_of_the_whole(sizes, keep):
    generator = torch.Generator().manual_seed(sum(sizes))
    batches = [
        (torch.rand(size, generator=generator), torch.randint(0, 2, (size,), generator=generator)) for size in sizes
    ]
    tally = ScoreTally(score_spec(None), keep)
    rows = sum(sizes)
    whole = tally.canonicalize(counted(tally, *batches), rows)
    parts = tally.canonicalize(merge(tally, [counted(tally, batch) for batch in batches]), rows)
    assert whole.keys() == parts.keys()
    assert ("histogram" in whole) == (rows > keep or keep == 0)
    for a, b in zip(tally.compute(whole), tally.compute(parts), strict=True):
        for name in ("thresholds", "positives", "negatives", "single"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_settling_leaves_the_state_as_it_was():
    tally = ScoreTally(score_spec(None), 5)
    few, many = (counted(tally, (torch.rand(n), torch.ones(n, dtype=torch.long))) for n in (4, 9))
    merged = merge(tally, [few, many])
    before = merged["histogram"].clone()
    tally.canonicalize(merged, 13)
    assert torch.equal(merged["histogram"], before)
    assert merged["samples"].rows == 4


def test_a_kept_binary_score_takes_five_bytes():
    tally = ScoreTally(score_spec(None))
    state = counted(tally, (torch.rand(1000), torch.ones(1000, dtype=torch.long)))
    assert state["samples"].nbytes == 5000


@pytest.mark.parametrize("keep", [5, 100])
@pytest.mark.parametrize("num_classes", [None, 3])
def test_what_is_read_depends_on_no_order(keep: int, num_classes: int | None):
    """So samples are not sorted to compute a value; zeros of both signs are one score."""
    scores = torch.randn(20, *(() if num_classes is None else (3,)), generator=torch.Generator().manual_seed(0)).round()
    scores = torch.where(torch.arange(20).view(-1, *[1] * (scores.ndim - 1)) % 2 == 0, scores.abs() * -0.0, scores)
    target = torch.arange(20) % (num_classes or 2)
    tally = ScoreTally(score_spec(num_classes, logits=True), keep)
    found = []
    for order in (torch.arange(20), torch.arange(19, -1, -1), torch.randperm(20)):
        state = tally.zero(torch.device("cpu"))
        tally.add(state, Batch(scores[order], target[order]))
        for ready in (tally.settle(state, 20), tally.canonicalize(state, 20)):
            rankings = tally.compute(ready)
            found.append([(r.thresholds.tobytes(), r.positives.tobytes(), r.negatives.tobytes()) for r in rankings])
    assert all(each == found[0] for each in found)
