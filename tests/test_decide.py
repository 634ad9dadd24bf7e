"""Decisions: what they choose, how ties and NaN go, and that the dtype that carried the scores changes nothing."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.decide import Argmax, Rows, Threshold, TopK, first_largest, target_rank
from assay.errors import ConfigError

VALUES = [-math.inf, -1.5, -0.0, 0.0, 1e-45, 0.25, 3.0, math.inf]


def tables(classes: st.SearchStrategy[int], values: list[float]) -> st.SearchStrategy[torch.Tensor]:
    """Scores of shape `(N, C)` with many ties."""
    rows = classes.flatmap(
        lambda c: st.lists(st.lists(st.sampled_from(values), min_size=c, max_size=c), min_size=1, max_size=6)
    )
    return rows.map(lambda table: torch.tensor(table, dtype=torch.float32))


def best_of(row: list[float]) -> int:
    """By the definition: the first of the largest, or the number of classes where a score is NaN."""
    return len(row) if any(map(math.isnan, row)) else row.index(max(row))


def rank_of(row: list[float], wanted: int) -> int:
    return sum(score > row[wanted] or (score == row[wanted] and k < wanted) for k, score in enumerate(row))


@given(tables(st.one_of(st.integers(2, 6), st.integers(31, 40)), [*VALUES, math.nan]))
def test_the_first_of_the_largest_is_chosen(scores):
    expected = [best_of(row) for row in scores.tolist()]
    assert first_largest(scores).tolist() == expected
    assert first_largest(scores.double()).tolist() == expected
    assert Argmax()(Rows(scores, torch.zeros(len(scores), dtype=torch.long))).tolist() == expected


@given(tables(st.one_of(st.integers(2, 6), st.integers(31, 40)), VALUES), st.data())
def test_the_rank_counts_the_classes_that_come_before(scores, data):
    classes = scores.shape[1]
    target = data.draw(st.lists(st.integers(0, classes - 1), min_size=len(scores), max_size=len(scores)))
    expected = [rank_of(row, wanted) for row, wanted in zip(scores.tolist(), target, strict=True)]
    assert target_rank(scores, torch.tensor(target)).tolist() == expected


@given(tables(st.integers(2, 6), [*VALUES, math.nan]), st.data())
def test_top_k_is_the_target_where_it_is_among_them(scores, data):
    classes = scores.shape[1]
    k = data.draw(st.integers(1, classes))
    target = data.draw(st.lists(st.integers(-2, classes + 1), min_size=len(scores), max_size=len(scores)))
    expected = []
    for row, true in zip(scores.tolist(), target, strict=True):
        best = best_of(row)
        known = 0 <= true < classes and best < classes
        expected.append(true if known and rank_of(row, true) < k else best)
    decided = TopK(k)(Rows(scores, torch.tensor(target))).tolist()
    for label, should, true in zip(decided, expected, target, strict=True):
        if 0 <= true < classes:  # what is decided for other targets is not counted
            assert label == should


def test_more_than_32_classes_take_the_same_decisions_as_few():
    scores = torch.randint(0, 9, (64, 31), generator=torch.Generator().manual_seed(0)).float()
    wide = torch.cat([scores, torch.full((64, 9), -1.0)], 1)
    target = torch.arange(64) % 31
    assert torch.equal(first_largest(scores), first_largest(wide))
    assert torch.equal(target_rank(scores, target), target_rank(wide, target))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("logits", [False, True])
def test_a_score_must_be_above_the_threshold(dtype, logits):
    scores = torch.tensor([-math.inf, 0.0, 0.5, 0.75, math.nan, math.inf], dtype=dtype)
    target = torch.zeros(6, dtype=torch.long)
    above = Threshold(0.5, logits)(Rows(scores, target))
    assert above.dtype == torch.int64
    assert above.tolist() == ([0, 0, 1, 1, 2, 1] if logits else [2, 0, 0, 1, 2, 2])


@pytest.mark.parametrize(("threshold", "expected"), [(0.0, [0, 1, 1]), (1.0, [0, 0, 0]), (0.75, [0, 0, 1])])
def test_the_threshold_of_logits_is_a_probability(threshold, expected):
    scores = torch.tensor([-math.inf, math.log(3) - 1e-6, math.log(3) + 1e-6])
    assert Threshold(threshold, logits=True)(Rows(scores, torch.zeros(3).long())).tolist() == expected


def test_decisions_that_cannot_be():
    with pytest.raises(ConfigError, match=r"top_k: got 0, expected an integer of 1 or more\. Give the k of the top"):
        TopK(0)
    for threshold in (-0.1, 1.1, math.nan):
        with pytest.raises(ConfigError, match=r"threshold: got .*, expected a probability in \[0, 1\]"):
            Threshold(threshold)
