"""Medians of errors and D² scores against scikit-learn and Ignite's formulas."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import ignite.metrics.regression as ignite
import numpy as np
import pytest
import sklearn.metrics as sk
import torch
from scipy.stats import gmean

from assay.errors import ConfigError, InvalidValuesError
from assay.metrics import (
    D2AbsoluteErrorScore,
    D2PinballScore,
    D2TweedieScore,
    GeometricMeanRelativeAbsoluteError,
    MeanAbsoluteError,
    MedianAbsoluteError,
    MedianAbsolutePercentageError,
    MedianRelativeAbsoluteError,
    R2Score,
    TweedieDevianceScore,
)
from thinning import draws

SEEDS = draws(200)


def relative(p, t):
    return np.abs(t - p) / np.abs(t - t.mean())


FORMULAS = {
    MedianAbsoluteError: lambda p, t: sk.median_absolute_error(t, p),
    MedianAbsolutePercentageError: lambda p, t: np.median(np.abs(p - t) / np.abs(t)),
    MedianRelativeAbsoluteError: lambda p, t: np.median(relative(p, t)),
    GeometricMeanRelativeAbsoluteError: lambda p, t: gmean(relative(p, t)),
}


def samples(seed: int, count: int):
    rng = np.random.default_rng(seed)
    return rng.gamma(1, 3, count) + 0.01, rng.gamma(1, 3, count) + 0.01


def ours(metric, preds, target, weights=None) -> float:
    weights = None if weights is None else torch.from_numpy(weights)
    return float(metric(torch.from_numpy(preds), torch.from_numpy(target), weights=weights))


def test_errors_beside_a_large_mean_are_relative_to_the_exact_mean():
    for seed in draws(20):
        preds, target = (1e3 + 1e-6 * (each + 1) for each in samples(seed, 9))
        mean = sum(map(Fraction, target)) / len(target)
        exact = [
            float(abs(Fraction(t) - Fraction(p)) / abs(Fraction(t) - mean)) for p, t in zip(preds, target, strict=True)
        ]
        assert ours(MedianRelativeAbsoluteError(), preds, target) == pytest.approx(np.median(exact), rel=1e-14)
        assert ours(GeometricMeanRelativeAbsoluteError(), preds, target) == pytest.approx(gmean(exact), rel=1e-14)


@pytest.mark.parametrize("kind", FORMULAS)
def test_it_is_the_formula(kind):
    for seed in SEEDS:
        preds, target = samples(seed, 2 + seed % 19)
        assert ours(kind(), preds, target) == pytest.approx(FORMULAS[kind](preds, target), rel=1e-12)


@pytest.mark.parametrize("kind", FORMULAS)
def test_of_an_odd_number_it_is_ignites_value(kind):
    preds, target = (torch.from_numpy(x) for x in samples(1, 15))
    other = getattr(ignite, kind.__name__)()
    other.update((preds, target))
    percent = 100 if kind is MedianAbsolutePercentageError else 1
    assert float(kind()(preds, target)) * percent == pytest.approx(other.compute(), rel=1e-6)


@pytest.mark.parametrize("kind", FORMULAS)
def test_weights_are_counts(kind):
    preds, target = samples(4, 20)
    times = np.arange(20) % 4
    expected = ours(kind(), np.repeat(preds, times), np.repeat(target, times))
    assert ours(kind(), preds, target, times) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 0.75, 1.0])
def test_d2_pinball(alpha):
    for seed in SEEDS:
        preds, target = samples(seed, 3 + seed % 19)
        weights = np.random.default_rng(seed).integers(1, 5, len(preds)) / 2 if seed % 2 else None
        expected = sk.d2_pinball_score(target, preds, alpha=alpha, sample_weight=weights)
        assert ours(D2PinballScore(alpha), preds, target, weights) == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_d2_absolute_error():
    for seed in SEEDS:
        preds, target = samples(seed, 3 + seed % 19)
        weights = np.random.default_rng(seed).integers(1, 5, len(preds)) / 2 if seed % 2 else None
        expected = sk.d2_absolute_error_score(target, preds, sample_weight=weights)
        assert ours(D2AbsoluteErrorScore(), preds, target, weights) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("power", [-1, 0, 1, 1.5, 2, 3])
def test_d2_tweedie(power):
    for seed in SEEDS:
        preds, target = samples(seed, 3 + seed % 19)
        weights = np.random.default_rng(seed).integers(1, 5, len(preds)) / 2 if seed % 2 else None
        expected = sk.d2_tweedie_score(target, preds, power=power, sample_weight=weights)
        assert ours(D2TweedieScore(power), preds, target, weights) == pytest.approx(expected, rel=1e-10)


def test_d2_of_power_0_is_r2():
    preds, target = samples(3, 40)
    assert ours(D2TweedieScore(), preds, target) == pytest.approx(ours(R2Score(), preds, target), rel=1e-13)


@pytest.mark.filterwarnings("ignore:.*is undefined:assay.errors.NoDataWarning")
@pytest.mark.parametrize("kind", [D2AbsoluteErrorScore, D2PinballScore, D2TweedieScore])
def test_d2_at_its_edges(kind):
    constant = torch.full((4,), 2.0)
    assert float(kind()(constant, constant)) == 1
    assert float(kind()(constant + 1, constant)) == 0
    assert kind()(constant[:1], constant[:1]).isnan()


@pytest.mark.filterwarnings("ignore::assay.errors.AssayWarning")
@pytest.mark.parametrize("strange", [math.nan, math.inf])
@pytest.mark.parametrize("kind", [*FORMULAS, D2AbsoluteErrorScore, D2TweedieScore])
def test_a_value_that_is_not_finite_makes_it_nan(kind, strange):
    assert kind()(torch.tensor([1.0, strange, 3.0]), torch.tensor([2.0, 2.5, 9.0])).isnan()
    assert kind()(torch.zeros(0), torch.zeros(0)).isnan()


def test_what_has_no_value_is_refused():
    with pytest.raises(InvalidValuesError, match="percentage errors: got 0 / 0 in 1 sample,"):
        MedianAbsolutePercentageError()(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 2.0]))
    with pytest.raises(InvalidValuesError, match="relative errors: got 0 / 0 in 3 samples"):
        MedianRelativeAbsoluteError()(torch.ones(3), torch.ones(3))
    with pytest.raises(InvalidValuesError, match="preds or target: got values outside the domain"):
        D2TweedieScore(2)(torch.tensor([1.0, 1.0]), torch.tensor([0.0, 2.0]))
    with pytest.raises(ConfigError, match="power: got"):
        D2TweedieScore(0.5)
    with pytest.raises(ConfigError, match="alpha: got"):
        D2PinballScore(1.5)


def test_errors_of_zero_and_infinite_ones():
    assert float(GeometricMeanRelativeAbsoluteError()(torch.tensor([1.0, 5.0]), torch.tensor([1.0, 3.0]))) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = MedianAbsolutePercentageError()(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.0, 0.0, 1.0]))
    assert float(found) == math.inf


def test_a_median_and_a_mean_of_equal_errors_agree():
    preds, target = torch.arange(7.0), torch.arange(7.0) + 0.5
    assert float(MedianAbsoluteError()(preds, target)) == float(MeanAbsoluteError()(preds, target))


def test_means_beyond_float64_are_no_errors():
    preds = torch.tensor([1e308, 1.5e308, 1.2e308], dtype=torch.float64)
    target = torch.tensor([1.1e308, 1.6e308, 1.7e308], dtype=torch.float64)
    for metric in (MedianRelativeAbsoluteError(), GeometricMeanRelativeAbsoluteError()):
        small = metric(preds * 2.0**-100, target * 2.0**-100)
        assert float(metric(preds, target)) == pytest.approx(float(small), rel=1e-12)


def test_the_deviance_of_nearly_equal_numbers_keeps_its_digits():
    target = torch.tensor([1.0, 3.0, 5.0]).double()
    preds = target * (1 + 1e-7)
    for power in (1.0, 1.5):
        saved = 1 - float(D2TweedieScore(power=power)(preds, target))
        losses = TweedieDevianceScore(power=power)
        constant = torch.full_like(target, float(target.mean()))
        assert saved == pytest.approx(float(losses(preds, target)) / float(losses(constant, target)), abs=1e-16)


@pytest.mark.parametrize("power", [1.0, 1.1, 1.5])
def test_targets_that_are_all_0_have_a_constant_without_loss(power):
    assert D2TweedieScore(power=power)(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0])) == 0
