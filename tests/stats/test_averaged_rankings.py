"""Averages over rankings of the same samples, against sums over all pairs and over the classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from assay.stats.averaged_rankings import AREA, FEWEST, PRECISION, averaged_interval
from assay.stats.intervals import clopper_pearson_of
from assay.stats.rankings import area_moves, delong_error, precision_bias_of_samples, precision_moves
from assay.tally.scores.curves import of_samples

RNG = np.random.default_rng(11)
SCORES = np.round(RNG.normal(size=(90, 3)), 1)
CLASSES = np.repeat([0, 1, 2], [50, 28, 12])


def placements(scores, positive):
    kernel = (scores[positive][:, None] > scores[~positive]) + (scores[positive][:, None] == scores[~positive]) / 2
    return kernel.mean(), kernel.mean(1), kernel.mean(0)


def of_classes():
    return [(SCORES[:, k], (k == CLASSES).astype(int)) for k in range(3)]


def test_the_squares_of_moves_are_delongs_variance():
    labels = RNG.integers(-1, 2, 90)
    area, moves = area_moves(SCORES[:, 0], labels)
    known = labels >= 0
    ranking = of_samples(SCORES[known, 0], labels[known] == 1)
    assert math.sqrt(np.sum(moves**2)) == pytest.approx(delong_error(ranking.positives, ranking.negatives))
    assert area == pytest.approx(placements(SCORES[known, 0], labels[known] == 1)[0])
    assert not moves[~known].any()
    assert moves.sum() == pytest.approx(0)


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_the_variance_of_the_mean_has_the_covariances_of_delong(average):
    """By the covariances of pairs of areas, ``S10 / P + S01 / N`` for each sample, summed over pairs of classes."""
    sizes, areas, moves = np.bincount(CLASSES), [], np.zeros((3, 90))
    weights = sizes / 90 if average == "weighted" else np.full(3, 1 / 3)
    for k in range(3):
        own = k == CLASSES
        area, below, above = placements(SCORES[:, k], own)
        areas.append(area)
        moves[k, own] = (below - area) / math.sqrt(own.sum() * (own.sum() - 1))
        moves[k, ~own] = (above - area) / math.sqrt((~own).sum() * ((~own).sum() - 1))
    value = weights @ np.array(areas)
    each = weights @ moves
    if average == "weighted":
        each = each + (np.array(areas) - value)[CLASSES] / 90
    parts = np.array([np.sum(each[k == CLASSES] ** 2) for k in range(3)])
    freedom = parts.sum() ** 2 / np.sum(parts**2 / (sizes - 1))
    half = stats.t.ppf(0.975, freedom) * math.sqrt(parts.sum()) / (value * (1 - value))
    expected = special.expit(special.logit(value) + half * np.array([-1, 1]))
    found = averaged_interval(of_classes(), AREA, average=average)
    assert found == pytest.approx(tuple(expected))
    count = min(value * (1 - value) / parts.sum(), 2 / np.sum(weights**2 / np.minimum(sizes, 90 - sizes)))
    others = clopper_pearson_of(value * count, count, 0.95)
    safe = averaged_interval(of_classes(), AREA, average=average, safe=True)
    assert safe == pytest.approx((min(expected[0], others[0]), max(expected[1], others[1])))
    assert safe[1] - safe[0] > found[1] - found[0]


def test_few_positives_or_negatives_have_none():
    labels = (np.arange(90) < FEWEST).astype(int)
    assert averaged_interval([(SCORES[:, 0], labels)] * 2, AREA) is not None
    assert (
        averaged_interval([(SCORES[:, 0], labels), (SCORES[:, 0], np.where(np.arange(90) < 1, 0, labels))], AREA)
        is None
    )
    assert (
        averaged_interval([(SCORES[:, 0], 1 - labels), (SCORES[:, 0], (np.arange(90) >= FEWEST - 1) * 1)], AREA) is None
    )
    assert averaged_interval([(labels * 1.0, labels)] * 2, AREA) is None  # all areas are 1
    perfect = [((np.arange(90) % 3 == k) * 1.0, (np.arange(90) % 3 == k) * 1) for k in range(3)]
    assert averaged_interval(perfect, AREA, average="weighted") is None
    assert averaged_interval([], AREA) is None


@pytest.mark.parametrize("safe", [False, True])
@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
@pytest.mark.parametrize("of", [AREA, PRECISION])
@pytest.mark.parametrize("seed", range(10))
def test_rankings_that_say_the_same_say_no_more_than_one(seed, of, average, safe):
    """Taken as independent they would say more: four copies would have half of the width."""
    rng = np.random.default_rng(seed)
    scores, labels = np.round(rng.normal(size=90), 1), rng.integers(0, 2, 90)
    one = averaged_interval([(scores, labels)], of, average=average, safe=safe)
    many = averaged_interval([(scores, labels)] * 4, of, average=average, safe=safe)
    assert many[1] - many[0] == pytest.approx(one[1] - one[0], rel=0.02)


def newcombe(area, positives, negatives):
    """The roots of ``|A - t| = z sqrt(V(t))``, with the variance of Hanley and McNeil of as many of each."""
    k = (positives + negatives) / 2 - 1

    def beyond(t):
        variance = t * (1 - t) * (1 + k * (1 - t) / (2 - t) + k * t / (1 + t)) / (positives * negatives)
        return abs(area - t) - stats.norm.ppf(0.975) * math.sqrt(variance)

    return optimize.brentq(beyond, 1e-9, area), optimize.brentq(beyond, area, 1 - 1e-9)


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
@pytest.mark.parametrize(("positives", "is_few"), [(24, True), (98, True), (102, False)])
def test_the_mean_area_of_few_positives_has_the_interval_of_few(positives, is_few, average):
    """One positive is below a twentieth of the negatives, so placements show little spread. Four copies are as one."""
    labels = (np.arange(positives + 400) < positives).astype(int)
    scores = np.random.default_rng(positives).random(len(labels)) + labels
    scores[0] = 0.95
    area, moves = area_moves(scores, labels)
    half = stats.t.ppf(0.975, positives - 1) * math.sqrt(np.sum(moves**2)) / (area * (1 - area))
    ends, few = special.expit(special.logit(area) + half * np.array([-1, 1])), newcombe(area, positives, 400)
    outer = min(ends[0], few[0]), max(ends[1], few[1])
    assert outer[0] < ends[0] - 0.001
    found = averaged_interval([(scores, labels)] * 4, AREA, average=average)
    assert found == pytest.approx(outer if is_few else tuple(ends), abs=5e-4)


def test_pooled_labels_have_the_variance_of_their_rows():
    labels = RNG.integers(-1, 2, (3, 90))
    value, moves = area_moves(SCORES.T.ravel(), labels.ravel())
    error = math.sqrt(np.sum(moves.reshape(3, 90).sum(0) ** 2))
    freedom = min((labels == 1).any(0).sum(), (labels == 0).any(0).sum()) - 1
    half = stats.t.ppf(0.975, freedom) * error / (value * (1 - value))
    expected = special.expit(special.logit(value) + half * np.array([-1, 1]))
    assert error**2 < np.sum(moves**2)  # no design effect
    least, most = newcombe(value, *((labels == kind).sum() for kind in (1, 0)))
    found = averaged_interval(zip(SCORES.T, labels, strict=True), AREA, average="micro")
    assert found == pytest.approx((min(expected[0], least), max(expected[1], most)))
    few = np.where(np.arange(90) < FEWEST - 1, 1, 0)
    assert averaged_interval([(SCORES[:, 0], few)] * 2, AREA, average="micro") is None
    assert averaged_interval([], AREA, average="micro") is None


def test_the_mean_precision_is_at_least_as_uncertain_as_shares_of_the_positives():
    rankings = of_classes()
    found = [precision_moves(*each) for each in rankings]
    value, moves = np.mean([value for value, _ in found]), np.mean([moves for _, moves in found], 0)
    assert 0.1 < value < 0.9
    positives = np.bincount(CLASSES)
    least = math.sqrt(sum(v * (1 - v) / p for (v, _), p in zip(found, positives, strict=True))) / 3
    parts = np.array([np.sum(moves[k == CLASSES] ** 2) for k in range(3)])
    freedom = parts.sum() ** 2 / np.sum(parts**2 / (positives - 1))
    error = max(1.959964 * least, stats.t.ppf(0.975, freedom) * math.sqrt(parts.sum()))
    expected = special.expit(special.logit(value) + error / (value * (1 - value)) * np.array([-1, 1]))
    assert averaged_interval(rankings, PRECISION) == pytest.approx(tuple(expected), abs=1e-6)
    bias = np.mean([precision_bias_of_samples(*each) for each in rankings])
    count = min(value * (1 - value) / parts.sum(), 9 / np.sum(1 / positives))
    others = clopper_pearson_of(value * count, count, 0.95)
    safe = averaged_interval(rankings, PRECISION, safe=True)
    assert bias > 0
    assert safe == pytest.approx((min(expected[0], others[0]) - bias, max(expected[1], others[1])), abs=1e-6)
