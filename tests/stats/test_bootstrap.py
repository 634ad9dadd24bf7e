"""The bootstrap of groups: the paired test, and digests of samples."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import pytest
from scipy import stats

from assay.stats.bootstrap import _CUMULATIVE, paired_bootstrap, poisson_draws, replicate_error, replicate_skewness
from assay.stats.intervals import skewed_ends
from assay.stats.sampling import SampleDigest, groups_of, row_numbers

RNG = np.random.default_rng(3)


def test_the_error_of_a_mean_is_that_of_its_groups():
    values = RNG.normal(size=128)
    draws = poisson_draws(4000, 128, seed=1)
    error, freedom = replicate_error(draws @ values / draws.sum(1), 128)
    assert error == pytest.approx(stats.sem(values), rel=0.05)
    assert freedom == pytest.approx(1 / (1 / 127 + 1 / 3999))


def test_each_draw_is_the_place_of_a_random_number_among_the_levels_of_the_distribution():
    numbers, levels = np.random.Philox(key=1).random_raw(40 * 128).tolist(), _CUMULATIVE.tolist()
    assert poisson_draws(40, 128, seed=1).ravel().tolist() == [bisect_right(levels, number) for number in numbers]


def test_the_interval_is_students_and_its_p_value_belongs_to_it():
    replicates = RNG.normal(0.1, 0.05, size=400)
    error, freedom = replicate_error(replicates, 32)
    lower, upper, p = paired_bootstrap(0.12, replicates, 32, 0.9)
    assert (lower, upper) == pytest.approx(stats.t.interval(0.9, freedom, 0.12, error))
    assert p == pytest.approx(2 * stats.t.sf(0.12 / error, freedom))
    assert paired_bootstrap(0.12, replicates, 32, 1 - p)[0] == pytest.approx(0)


def test_the_skewness_of_replicates_is_that_of_the_mean_of_the_groups():
    values = RNG.exponential(size=64)
    draws = poisson_draws(400, 64, seed=2)
    replicates = draws @ values / draws.sum(1)
    expected = stats.skew(values) / np.sqrt(64)
    assert replicate_skewness(replicates, draws) == pytest.approx(expected, rel=0.1)
    assert replicate_skewness(-replicates, draws) == pytest.approx(-expected, rel=0.1)
    assert replicate_skewness(replicates) == pytest.approx(
        max(0, stats.skew(replicates) - 2 * np.sqrt(6 / 400)), abs=0.01
    )
    assert replicate_skewness(np.append(replicates, np.inf)) == np.inf


def test_the_interval_is_longer_on_the_side_of_the_long_tail():
    replicates = RNG.normal(0.1, 0.05, size=400)
    error, freedom = replicate_error(replicates, 128)
    lower, upper, p = paired_bootstrap(0.1, replicates, 128, skewness=-0.2)
    assert (lower, upper) == skewed_ends(0.1, error, -0.2, freedom + 1)
    assert lower < paired_bootstrap(0.1, replicates, 128)[0]
    assert p == paired_bootstrap(0.1, replicates, 128)[2]


def test_draws_are_of_a_poisson_distribution():
    drawn = poisson_draws(400, 1000, seed=5)
    shares = np.bincount(drawn.ravel(), minlength=12)[:12] / drawn.size
    assert shares == pytest.approx(stats.poisson.pmf(range(12), 1), abs=0.003)


def test_digests_tell_samples_apart_and_add_up_in_any_order():
    ids, targets = RNG.integers(-(2**62), 2**62, 500), row_numbers(RNG.normal(size=(500, 3)))
    whole, order = SampleDigest.of(ids, targets), RNG.permutation(500)
    parts = [SampleDigest.of(ids[each], targets[each]) for each in np.array_split(order, 7)]
    assert sum(parts, SampleDigest()) == whole
    assert SampleDigest.of(ids, targets[order]).ids == whole.ids
    assert SampleDigest.of(ids, targets[order]).targets != whole.targets
    assert SampleDigest.of(np.append(ids[1:], 7), targets).ids != whole.ids
    assert (SampleDigest.of(ids, None) + whole).targets is None


def test_groups_of_slices_divide_those_of_all_samples():
    numbers = np.arange(1000)
    assert np.array_equal(groups_of(numbers, 5, 128) % 32, groups_of(numbers, 5, 32))
