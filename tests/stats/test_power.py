"""Numbers of samples, compared with SciPy's noncentral t (as statsmodels has it) and with simulated tests."""

import math

import numpy as np
import pytest
from scipy import stats

from assay.stats.hypothesis_tests import mcnemar
from assay.stats.power import Spread


def power_of_t(units, effect, deviation, confidence_level):
    """The power of Student's test of one sample, exactly."""
    shift, edge = effect / deviation * math.sqrt(units), stats.t.ppf((1 + confidence_level) / 2, units - 1)
    return stats.nct.sf(edge, units - 1, shift) + stats.nct.cdf(-edge, units - 1, shift)


@pytest.mark.parametrize(("effect", "deviation"), [(0.5, 1.0), (0.05, 0.4), (3.0, 4.0)])
@pytest.mark.parametrize(("level", "power"), [(0.95, 0.8), (0.99, 0.9)])
def test_numbers_need_as_many_samples_as_the_noncentral_t_says(effect, deviation, level, power):
    units = math.ceil(Spread(0, deviation**2).units_for(effect, level, power))
    assert power_of_t(units + 1, effect, deviation, level) >= power
    assert power_of_t(units - 2, effect, deviation, level) < power


@pytest.mark.parametrize(("effect", "differing"), [(0.05, 0.1), (0.03, 0.04), (0.1, 0.4)])
def test_paired_shares_need_as_many_samples_as_mcnemars_test_shows(effect, differing):
    units = math.ceil(Spread(0, 0.0, differing).units_for(effect))
    down, up = (differing - effect) / 2, (differing + effect) / 2
    draws = np.random.default_rng(0).multinomial(units, [down, up, 1 - down - up], size=4000)
    pairs, times = np.unique(draws[:, :2], axis=0, return_counts=True)
    found = sum(int(n) for (b, c), n in zip(pairs.tolist(), times, strict=True) if mcnemar(b, c) < 0.05)
    assert 0.77 < found / 4000 < 0.87


def test_independent_pairs_need_as_many_samples_as_two_proportions():
    p, q = 0.8, 0.75
    pairs = Spread(0, 0.0, p * (1 - q) + q * (1 - p)).units_for(p - q)
    mean, z, chance = (p + q) / 2, stats.norm.ppf(0.975), stats.norm.ppf(0.8)
    fleiss = (z * math.sqrt(2 * mean * (1 - mean)) + chance * math.sqrt(p * (1 - p) + q * (1 - q))) ** 2 / (p - q) ** 2
    assert pairs == pytest.approx(fleiss, rel=3e-3)


@pytest.mark.parametrize("differing", [None, 0.0, 0.02, 0.3])
def test_the_smallest_difference_needs_the_samples_that_there_are(differing):
    spread = Spread(500, 0.3, differing)
    assert spread.units_for(spread.smallest(0.9, 0.7), 0.9, 0.7) == pytest.approx(500)
    assert spread.smallest(units=2000) < spread.smallest()
    assert math.isinf(spread.smallest(units=1))
