"""The mean of areas under ROC curves of the same samples, against sums over all pairs and over the classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from assay.stats.intervals import clopper_pearson_of, delong_error
from assay.stats.mean_areas import FEWEST, area_moves, mean_area_interval
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


@pytest.mark.parametrize("weighted", [False, True])
def test_the_variance_of_the_mean_has_the_covariances_of_delong(weighted):
    """By the covariances of pairs of areas, ``S10 / P + S01 / N`` for each sample, summed over pairs of classes."""
    sizes, areas, moves = np.bincount(CLASSES), [], np.zeros((3, 90))
    weights = sizes / 90 if weighted else np.full(3, 1 / 3)
    for k in range(3):
        own = k == CLASSES
        area, below, above = placements(SCORES[:, k], own)
        areas.append(area)
        moves[k, own] = (below - area) / math.sqrt(own.sum() * (own.sum() - 1))
        moves[k, ~own] = (above - area) / math.sqrt((~own).sum() * ((~own).sum() - 1))
    value = weights @ np.array(areas)
    each = weights @ moves
    if weighted:
        each = each + (np.array(areas) - value)[CLASSES] / 90
    parts = np.array([np.sum(each[k == CLASSES] ** 2) for k in range(3)])
    freedom = parts.sum() ** 2 / np.sum(parts**2 / (sizes - 1))
    half = stats.t.ppf(0.975, freedom) * math.sqrt(parts.sum()) / (value * (1 - value))
    expected = special.expit(special.logit(value) + half * np.array([-1, 1]))
    found = mean_area_interval(of_classes(), weighted=weighted)
    assert found == pytest.approx(tuple(expected))
    count = min(value * (1 - value) / parts.sum(), 2 / np.sum(weights**2 / np.minimum(sizes, 90 - sizes)))
    others = clopper_pearson_of(value * count, count, 0.95)
    safe = mean_area_interval(of_classes(), weighted=weighted, safe=True)
    assert safe == pytest.approx((min(expected[0], others[0]), max(expected[1], others[1])))
    assert safe[1] - safe[0] > found[1] - found[0]


def test_areas_that_say_the_same_say_no_more_than_one():
    """Four copies of one label have the interval of it; taken as independent they would have half of the width."""
    labels = RNG.integers(0, 2, 90)
    one = mean_area_interval([(SCORES[:, 0], labels)])
    many = mean_area_interval([(SCORES[:, 0], labels)] * 4)
    assert many[1] - many[0] == pytest.approx(one[1] - one[0], rel=0.02)


def test_few_positives_or_negatives_have_none():
    labels = (np.arange(90) < FEWEST).astype(int)
    assert mean_area_interval([(SCORES[:, 0], labels)] * 2) is not None
    assert mean_area_interval([(SCORES[:, 0], labels), (SCORES[:, 0], np.where(np.arange(90) < 1, 0, labels))]) is None
    assert mean_area_interval([(SCORES[:, 0], 1 - labels), (SCORES[:, 0], (np.arange(90) >= FEWEST - 1) * 1)]) is None
    assert mean_area_interval([(labels * 1.0, labels)] * 2) is None  # all areas are 1
    perfect = [((np.arange(90) % 3 == k) * 1.0, (np.arange(90) % 3 == k) * 1) for k in range(3)]
    assert mean_area_interval(perfect, weighted=True) is None
    assert mean_area_interval([]) is None
