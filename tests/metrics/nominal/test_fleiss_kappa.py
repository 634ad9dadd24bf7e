"""Fleiss' kappa against its definition in exact fractions, and the example of its paper."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from assay.errors import ConfigError, DtypeError, InvalidValuesError, NoDataWarning, ShapeError
from assay.metrics import CohenKappa, FleissKappa
from assay.tally.labels.ratings import MOST_RATINGS
from thinning import draws

PAPER = [
    *([0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1]),
    *([7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]),
]
"""Ten subjects rated by 14 raters; kappa is 0.210 there."""


def drawn(seed: int, categories: int = 4, raters: int = 5) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    choices = torch.randint(0, categories, (1 + seed % 12, raters), generator=generator)
    return torch.nn.functional.one_hot(choices, categories).sum(1)


def defined(table: list[list[int]]) -> Fraction | None:
    samples, raters = len(table), sum(table[0])
    observed = Fraction(sum(n * (n - 1) for row in table for n in row), samples * raters * (raters - 1))
    chance = sum(Fraction(sum(column), samples * raters) ** 2 for column in zip(*table, strict=True))
    return (observed - chance) / (1 - chance) if chance != 1 else None


def test_it_is_that_of_the_paper():
    assert float(FleissKappa(num_classes=5)(torch.tensor(PAPER))) == pytest.approx(0.210, abs=5e-4)


def test_it_is_exact_and_rounded_once():
    for seed in draws(200):
        table = drawn(seed)
        expected = defined(table.tolist())
        if expected is not None:
            assert float(FleissKappa(num_classes=4)(table)) == float(expected)
            assert float(FleissKappa(num_classes=4)(table, weights=torch.full((len(table),), 0.75))) == float(expected)


def test_very_many_ratings_are_exact():
    table = [[MOST_RATINGS - 7, 3, 4], [5, MOST_RATINGS - 9, 4], [MOST_RATINGS // 2, 0, MOST_RATINGS // 2 + 1]]
    assert float(FleissKappa(num_classes=3)(torch.tensor(table))) == float(defined(table))


def test_a_weight_counts_samples():
    table, weights = drawn(11), torch.arange(12)
    repeated = table.repeat_interleave(weights, 0)
    metric = FleissKappa(num_classes=4)
    assert float(metric(table, weights=weights)) == float(metric(repeated))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_raters_choose_the_category_with_the_highest_score(dtype):
    scores = torch.randn(20, 6, 3, generator=torch.Generator().manual_seed(0)).to(dtype)
    counts = torch.nn.functional.one_hot(scores.argmax(1), 6).sum(1)
    value = float(FleissKappa(num_classes=6, mode="probs")(scores))
    assert value == float(FleissKappa(num_classes=6)(counts))


def test_of_two_raters_who_agree_it_is_cohens():
    a = torch.randint(0, 3, (50,), generator=torch.Generator().manual_seed(1))
    counts = 2 * torch.nn.functional.one_hot(a, 3)
    assert float(FleissKappa(num_classes=3)(counts)) == float(CohenKappa(num_classes=3)(a, a)) == 1


@pytest.mark.parametrize("table", [[[5, 0], [5, 0]], [[1, 0], [0, 1]], [[0, 0]]])
def test_it_is_undefined_for_one_category_and_for_one_rater(table):
    with pytest.warns(NoDataWarning, match="two or more ratings"):
        assert FleissKappa(num_classes=2)(torch.tensor(table)).isnan()


def test_bad_input_raises_one_clear_error():
    metric, scores = FleissKappa(num_classes=3), FleissKappa(num_classes=3, mode="probs")
    with pytest.raises(InvalidValuesError, match="different numbers of ratings"):
        metric(torch.tensor([[2, 1, 0], [1, 1, 0]]))
    with pytest.raises(InvalidValuesError, match="1 of the ratings are negative or NaN"):
        metric(torch.tensor([[4, -1, 0], [1, 1, 1]]))
    for large in ([1 << 62, 0, 0], [MOST_RATINGS, 1, 0], [(1 << 63) - 1] * 3):
        with pytest.raises(InvalidValuesError, match=f"1 of the samples have more than {MOST_RATINGS} ratings"):
            metric(torch.tensor([large, [1, 1, 1]]))
    with pytest.raises(InvalidValuesError, match="1 of the ratings are negative or NaN"):
        scores(torch.tensor([[[0.0, 1], [float("nan"), 0], [1, 2]]]))
    with pytest.raises(ShapeError, match=r"preds: got shape \(N, 2\)"):
        metric(torch.ones(4, 2, dtype=torch.int64))
    with pytest.raises(ShapeError, match="raters"):
        scores(torch.rand(4, 3))
    with pytest.raises(DtypeError, match="preds"):
        metric(torch.rand(4, 3))
    with pytest.raises(DtypeError, match="preds"):
        scores(torch.ones(4, 3, 2, dtype=torch.int64))
    for wrong in (None, 1):
        with pytest.raises(ConfigError, match="num_classes"):
            FleissKappa(num_classes=wrong)
    with pytest.raises(ConfigError, match="mode: got 'labels'"):
        FleissKappa(num_classes=3, mode="labels")
