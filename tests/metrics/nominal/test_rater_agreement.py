"""Krippendorff's alpha and Gwet's AC1 against their definitions over pairs of ratings, and published values."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pyarrow as pa
import pytest
import torch

from assay import Meter, score
from assay.errors import ConfigError, DtypeError, InvalidValuesError, NoDataWarning, ShapeError
from assay.metrics import FleissKappa, GwetAC1, KrippendorffAlpha
from assay.tally.rows.rating_terms import MOST_RATERS
from thinning import draws

__ = -1
PAPER = torch.tensor(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, __, __, __],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, __, 3],
        [__, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, __],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, __],
    ]
).T
"""Twelve units and four observers: section C of Krippendorff (2011), which gives alpha at each level."""
LEVELS = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849, "ratio": 0.797}


def drawn(seed, categories=4, raters=5):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-1, categories, (2 + seed % 12, raters), generator=generator)


def distance(level, c, k, ratings):
    low, high = sorted((c, k))
    between = [ratings.count(each) for each in range(low, high + 1)]
    return {
        "nominal": Fraction(c != k),
        "interval": Fraction(c - k),
        "ratio": Fraction(c - k, c + k) if c != k else Fraction(0),
        "ordinal": Fraction(sum(between)) - Fraction(between[0] + between[-1], 2),
    }[level]


def alpha(table, level):
    """One minus the disagreement of the pairs of each unit, over that of all pairs of ratings; one pair at a time."""
    units = [[each for each in row if each >= 0] for row in table]
    units = [unit for unit in units if len(unit) > 1]
    ratings = [each for unit in units for each in unit]
    far = {(c, k): distance(level, c, k, ratings) ** 2 for c in set(ratings) for k in set(ratings)}
    observed = sum(
        (Fraction(sum(far[pair] for pair in permutations(unit, 2)), len(unit) - 1) for unit in units), Fraction(0)
    )
    expected = sum((far[pair] for pair in permutations(ratings, 2)), Fraction(0))
    return 1 - observed / len(ratings) * (len(ratings) * (len(ratings) - 1)) / expected if expected else None


def first_order(table, categories):
    """AC1 by shares of agreeing pairs and of ratings, one pair at a time."""
    rated = [unit for row in table if (unit := [each for each in row if each >= 0])]
    paired = [unit for unit in rated if len(unit) > 1]
    agreeing = [[a == b for a, b in permutations(unit, 2)] for unit in paired]
    agreement = sum(Fraction(sum(each), len(each)) for each in agreeing) / len(paired)
    shares = [sum(Fraction(unit.count(k), len(unit)) for unit in rated) / len(rated) for k in range(categories)]
    chance = sum(share * (1 - share) for share in shares) / (categories - 1)
    return (agreement - chance) / (1 - chance)


@pytest.mark.parametrize("level", LEVELS)
def test_alpha_is_that_of_the_paper(level):
    assert float(KrippendorffAlpha(num_classes=6, level=level)(PAPER)) == pytest.approx(LEVELS[level], abs=5e-4)


@pytest.mark.parametrize("level", LEVELS)
def test_alpha_is_exact_and_rounded_once(level):
    metric, compared = KrippendorffAlpha(num_classes=4, level=level), 0
    for seed in draws(100):
        table = drawn(seed)
        expected = alpha(table.tolist(), level)
        if expected is not None:
            compared += 1
            assert float(metric(table)) == float(expected)
    assert compared > 15


def test_ac1_is_exact_and_rounded_once():
    for seed in draws(100):
        table = drawn(seed)
        if any(sum(each >= 0 for each in row) > 1 for row in table.tolist()):
            assert float(GwetAC1(num_classes=4)(table)) == float(first_order(table.tolist(), 4))


def test_ac1_stays_high_where_nearly_all_ratings_are_of_one_category():
    """Two raters of 125 samples, 118 of them with the same rating: table 1 of Gwet (2008) in its kind."""
    table = torch.tensor([[0, 0]] * 118 + [[0, 1]] * 5 + [[1, 0]] * 2)
    counts = torch.nn.functional.one_hot(table, 2).sum(1)
    assert float(FleissKappa(num_classes=2)(counts)) < 0 < 0.93 < float(GwetAC1(num_classes=2)(table))


@pytest.mark.parametrize("kind", [KrippendorffAlpha, GwetAC1])
def test_missing_ratings_and_unrated_samples_say_nothing(kind):
    table = drawn(9)
    wider = torch.cat([table, torch.full((len(table), 3), -1)], 1)
    longer = torch.cat([table, torch.full((4, 5), -1)])
    metric = kind(num_classes=4)
    assert float(metric(wider)) == float(metric(longer)) == float(metric(table)) == float(metric(table.flip(1)))
    assert float(kind(num_classes=4, missing=99)(table.masked_fill(table == -1, 99))) == float(metric(table))


@pytest.mark.parametrize("kind", [KrippendorffAlpha, GwetAC1])
def test_a_weight_counts_samples(kind):
    table, weights = drawn(11), torch.arange(13)
    metric = kind(num_classes=4)
    assert float(metric(table, weights=weights)) == float(metric(table.repeat_interleave(weights, 0)))


def test_forty_raters_of_many_samples_are_exact():
    table = drawn(10, 3, MOST_RATERS).repeat(500, 1)
    meter = Meter(KrippendorffAlpha(num_classes=3))
    meter.update(table)
    assert float(meter.compute()["KrippendorffAlpha"]) == float(
        alpha_of_repeated(table[: len(table) // 500].tolist(), 500)
    )


def alpha_of_repeated(table, times):
    """The same with each unit so often: its pairs are, and the ratings are that many."""
    units = [unit for row in table if len(unit := [each for each in row if each >= 0]) > 1]
    observed = sum(Fraction(sum(a != b for a, b in permutations(unit, 2)), len(unit) - 1) for unit in units) * times
    counts = [sum(unit.count(k) for unit in units) * times for k in range(3)]
    size = sum(counts)
    expected = Fraction(size * size - sum(each * each for each in counts), size - 1)
    return 1 - observed / expected


@pytest.mark.parametrize("kind", [KrippendorffAlpha, GwetAC1])
def test_an_interval_is_that_of_resampled_samples(kind):
    """Two raters of three classes in equal shares, right in 0.8 of 300 samples: both values are 0.7, within 0.07."""
    generator = torch.Generator().manual_seed(0)
    table = torch.randint(0, 3, (300, 1), generator=generator).repeat(1, 2)
    table[::5, 0] = (table[::5, 0] + 1) % 3
    report = score(pa.table({"r": table.tolist()}), kind(num_classes=3), preds="r", target=None)
    (value,) = report.sections[0].values
    assert "bootstrap" in value.note.lower()
    assert value.value == pytest.approx(0.7, abs=0.005)
    assert 0.6 < value.lower < 0.66 < 0.74 < value.upper < 0.8


@pytest.mark.parametrize("kind", [KrippendorffAlpha, GwetAC1])
@pytest.mark.parametrize("table", [[[-1, -1]], [[0, -1], [-1, 2]]])
def test_one_rating_a_sample_is_undefined(kind, table):
    with pytest.warns(NoDataWarning, match="two or more ratings"):
        assert kind(num_classes=3)(torch.tensor(table)).isnan()


def test_bad_input_raises_one_clear_error():
    metric = KrippendorffAlpha(num_classes=3)
    with pytest.raises(InvalidValuesError, match="2 of the ratings are neither from 0 to 2 nor -1 \\(missing\\)"):
        metric(torch.tensor([[0, 3], [-2, 1]]))
    with pytest.raises(ShapeError, match="shape \\(N, raters\\) with 1 to 40 raters"):
        metric(torch.zeros(3, 41, dtype=torch.int64))
    with pytest.raises(ShapeError, match="raters in dimension 1"):
        metric(torch.zeros(3, dtype=torch.int64))
    with pytest.raises(DtypeError, match="integers"):
        metric(torch.zeros(3, 2))
    with pytest.raises(ConfigError, match="2 or more"):
        KrippendorffAlpha()
    with pytest.raises(ConfigError, match="no number from 0 to 2"):
        GwetAC1(num_classes=3, missing=1)
