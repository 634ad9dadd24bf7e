"""Samples resampled: the draws, exact products, and states that are those of the samples drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from assay import AUROC
from assay.meter.resampling import resample
from assay.meter.resampling.replicates import values_of_draws
from assay.meter.resampling.resample import combined
from assay.metrics.base import named_numbers
from assay.stats import bootstrap
from assay.stats.bootstrap import poisson_draws
from laws import CASES, value
from tally_laws import TALLY_CASES
from thinning import every

DRAWS = np.array([[1, 1, 1, 1], [0, 2, 1, 3], [3, 0, 0, 1]])


def test_draws_are_poisson_and_depend_on_the_seed_alone():
    draws = poisson_draws(400, 128, seed=5)
    assert draws.shape == (400, 128)
    counts = np.bincount(draws.ravel(), minlength=8)[:8]
    expected = stats.poisson.pmf(np.arange(8), 1) * draws.size
    assert stats.chisquare(counts[:6], expected[:6] / expected[:6].sum() * counts[:6].sum()).pvalue > 1e-3
    assert np.array_equal(draws, poisson_draws(400, 128, seed=5))
    assert np.array_equal(draws[:100], poisson_draws(100, 128, seed=5))
    assert not np.array_equal(draws, poisson_draws(400, 128, seed=-5))


def test_the_bounds_of_the_draws_are_those_of_the_distribution():
    exact = stats.poisson.cdf(np.arange(len(bootstrap._CUMULATIVE)), 1)
    assert pytest.approx(exact, abs=1e-15) == bootstrap._CUMULATIVE / 2.0**64
    assert len(bootstrap._CUMULATIVE) >= 19  # beyond 19 is less likely than 2 ** -64


@given(
    arrays(np.int64, (3, 5), elements=st.integers(0, 9)),
    arrays(np.int64, (5, 4), elements=st.integers(-(2**57), 2**57)),
)
def test_products_are_exact(draws, stacked):
    expected = draws.astype(object) @ stacked.astype(object)
    assert np.array_equal(combined(draws, stacked), expected.astype(np.int64))
    small = stacked >> 30
    assert np.array_equal(combined(draws, small), draws @ small)


ROUNDED = 4e-16
"""Averages of exact areas in replicates are of floats; of all samples they are exact."""


@every(TALLY_CASES)
def test_a_replicate_has_the_values_of_its_samples(case, monkeypatch):
    data = case.data(3, 40)
    parts = [data.rows(slice(start, stop)) for start, stop in ((0, 12), (12, 13), (13, 30), (30, 40))]
    estimates = [name for name, metric in case.meter().metrics.items() if metric.estimates]
    expected: dict[str, list[float]] = {}
    for row in DRAWS:
        drawn = case.counted(*(part for part, times in zip(parts, row, strict=True) for _ in range(times)))
        values = value(drawn)
        for name, number in (each for metric in estimates for each in named_numbers(metric, values[metric])):
            expected.setdefault(name, []).append(number)
    metrics = case.meter().metrics
    for chunk in (1, 1 << 26):
        monkeypatch.setattr(resample, "CHUNK_BYTES", chunk)
        found = values_of_draws([case.counted(part) for part in parts], DRAWS, metrics, None)
        assert found.keys() == expected.keys()
        for name, numbers in found.items():
            metric = metrics.get(name)
            is_averaged = isinstance(metric, AUROC) and (metric.num_classes or metric.num_labels)
            rounded = ROUNDED if is_averaged else 0
            assert numbers == pytest.approx(expected[name], rel=rounded, abs=0, nan_ok=True)


def test_a_group_without_samples_counts_nothing():
    case = CASES[0]
    data = case.data(3, 40)
    empty = case.counted(data.rows(slice(0)))
    draws = np.array([[1, 1], [2, 5], [0, 7]])
    found = values_of_draws([case.counted(data), empty], draws, case.meter().metrics, None)["value"]
    once = float(value(case.counted(data))["value"])
    assert found[:2] == [once, once]
    assert math.isnan(found[2])


def test_a_store_of_samples_is_read_as_often_as_it_costs(monkeypatch):
    case = next(case for case in CASES if type(case.metric).__name__ == "SpearmanCorrCoef" and not case.weighted)
    groups = [case.counted(case.data(seed, 50)) for seed in range(4)]
    draws = np.concatenate([np.ones((1, 4), np.int64), poisson_draws(90, 4, 0)])
    assert len(values_of_draws(groups, draws, groups[0].metrics, None)["value"]) == 91
    monkeypatch.setattr(resample, "READ_ELEMENTS", 50 * 200 * 2)
    assert len(values_of_draws(groups, draws, groups[0].metrics, None)["value"]) == 51
    monkeypatch.setattr(resample, "READ_ELEMENTS", 1)
    assert len(values_of_draws(groups, draws, groups[0].metrics, None)["value"]) == 1 + resample.LEAST
