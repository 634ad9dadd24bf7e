"""Samples resampled: the draws, exact products, and states that are those of the samples drawn."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from assay import AUROC, F1Score, Meter
from assay.meter.resampling import resample
from assay.meter.resampling.replicates import CountedGroups, values_of_draws
from assay.meter.resampling.resample import combined
from assay.metrics import FBetaScore, JaccardIndex, Precision, Recall
from assay.metrics.base import named_numbers
from assay.metrics.classification.ratio import Ratio
from assay.metrics.classification.ratio_metric import RatioMetric
from assay.stats import bootstrap
from assay.stats.bootstrap import poisson_draws
from laws import CASES, value
from tally_laws import TALLY_CASES
from thinning import every

DRAWS = np.array([[1, 1, 1, 1], [0, 2, 1, 3], [3, 0, 0, 1]])


def groups_of(meters):
    return CountedGroups.of(meters[0], meters)


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
        found = values_of_draws(groups_of([case.counted(part) for part in parts]), DRAWS, metrics, None)
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
    found = values_of_draws(groups_of([case.counted(data), empty]), draws, case.meter().metrics, None)["value"]
    once = float(value(case.counted(data))["value"])
    assert found[:2] == [once, once]
    assert math.isnan(found[2])


def test_a_store_of_samples_is_read_as_often_as_it_costs(monkeypatch):
    case = next(case for case in CASES if type(case.metric).__name__ == "SpearmanCorrCoef" and not case.weighted)
    groups = [case.counted(case.data(seed, 50)) for seed in range(4)]
    draws = np.concatenate([np.ones((1, 4), np.int64), poisson_draws(90, 4, 0)])
    assert len(values_of_draws(groups_of(groups), draws, groups[0].metrics, None)["value"]) == 91
    monkeypatch.setattr(resample, "READ_ELEMENTS", 50 * 200 * 2)
    assert len(values_of_draws(groups_of(groups), draws, groups[0].metrics, None)["value"]) == 51
    monkeypatch.setattr(resample, "READ_ELEMENTS", 1)
    assert len(values_of_draws(groups_of(groups), draws, groups[0].metrics, None)["value"]) == 1 + resample.LEAST


AVERAGES = {
    "macro": F1Score(num_classes=4, average="macro"),
    "weighted, without a class": Precision(num_classes=4, average="weighted", ignore_index=1),
    "undefined left out": Precision(num_classes=5, average="macro", zero_division=math.nan),
    "undefined is 1": Recall(num_classes=5, average="weighted", zero_division=1),
    "micro": JaccardIndex(num_classes=4, average="micro"),
    "some classes": F1Score(num_classes=4, average="macro", only_classes=(3, 0)),
    "fractions": FBetaScore(num_classes=4, average="macro", beta=0.3),
    "counts of classes": F1Score(num_classes=130, average="macro"),
    "labels": F1Score(num_labels=4, average="weighted", ignore_index=-1),
    "one class": FBetaScore(beta=2.0),
}


@pytest.mark.parametrize("metric", AVERAGES.values(), ids=AVERAGES)
def test_averages_of_many_draws_at_once_are_those_of_each_draw(metric):
    generator = torch.Generator().manual_seed(3)
    groups = []
    for _ in range(12):
        size = 4 if metric.num_labels else 1
        high = 2 if metric.num_classes is None else 4
        labels = torch.randint(high, (2, 3, size), generator=generator)
        if metric.ignore_index is not None:
            labels[1, 0] = metric.ignore_index
        preds, target = labels if metric.num_labels else labels[..., 0]
        groups.append(Meter(value=metric))
        groups[-1].update(preds.clamp(min=0), target)
    draws = np.concatenate([np.ones((1, 12), np.int64), np.zeros((1, 12), np.int64), poisson_draws(60, 12, 1)])
    found = values_of_draws(groups_of(groups), draws, {"value": metric}, None)["value"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [
            float(Meter(value=metric).merge(*(groups[k] for k in np.repeat(np.arange(12), row))).compute()["value"])
            for row in draws
        ]
    assert np.array_equal(found, expected, equal_nan=True)
    assert len(set(found)) > 10


def test_averages_are_not_computed_draw_by_draw(monkeypatch):
    groups = []
    for seed in range(10):
        labels = torch.randint(3, (2, 20), generator=torch.Generator().manual_seed(seed))
        groups.append(Meter(value=F1Score(num_classes=3)))
        groups[-1].update(*labels)
    draws = poisson_draws(50, 10, 0)
    expected = values_of_draws(groups_of(groups), draws, groups[0].metrics, None)
    monkeypatch.setattr(resample.GroupStates, "readings", None)
    assert values_of_draws(groups_of(groups), draws, groups[0].metrics, None) == expected
    assert len(expected["value"]) == 50


def test_a_value_of_ones_own_is_computed_of_each_draw():
    @dataclass(frozen=True, kw_only=True)
    class Halved(RatioMetric):
        """Half of the precision."""

        ratio = Ratio("tp", "tp + fp")

        def compute(self, counts):
            return super().compute(counts) / 2

    groups = []
    for seed in range(10):
        labels = torch.randint(3, (2, 20), generator=torch.Generator().manual_seed(seed))
        groups.append(Meter(value=Halved(num_classes=3), whole=Precision(num_classes=3)))
        groups[-1].update(*labels)
    found = values_of_draws(groups_of(groups), poisson_draws(9, 10, 0), groups[0].metrics, None)
    assert found["value"] == [each / 2 for each in found["whole"]]
