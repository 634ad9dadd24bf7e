"""Signed and relative errors against Ignite, SciPy, TorchMetrics and fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import ignite.metrics.regression as ignite
import numpy as np
import pytest
import torch
import torchmetrics
from scipy.spatial.distance import canberra
from scipy.stats import gmean

from assay.errors import ConfigError, InvalidValuesError
from assay.metrics import (
    CanberraDistance,
    FractionalBias,
    GeometricMean,
    GeometricMeanAbsoluteError,
    MeanError,
    MeanNormalizedBias,
    NormalizedRootMeanSquaredError,
    WaveHedgesDistance,
)
from thinning import draws

SEEDS = draws(200)
IGNITE = {
    CanberraDistance: ignite.CanberraMetric,
    FractionalBias: ignite.FractionalBias,
    GeometricMeanAbsoluteError: ignite.GeometricMeanAbsoluteError,
    MeanError: ignite.MeanError,
    MeanNormalizedBias: ignite.MeanNormalizedBias,
    WaveHedgesDistance: ignite.WaveHedgesDistance,
}
FORMULAS = {
    CanberraDistance: lambda p, t: canberra(p, t),
    FractionalBias: lambda p, t: np.mean(2 * (t - p) / (t + p)),
    GeometricMeanAbsoluteError: lambda p, t: gmean(np.abs(p - t)),
    MeanError: lambda p, t: np.mean(t - p),
    MeanNormalizedBias: lambda p, t: np.mean((t - p) / t),
    WaveHedgesDistance: lambda p, t: np.sum(np.abs(p - t) / np.maximum(p, t)),
}


def samples(seed: int, count: int = 17) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-6, 7)
    return rng.gamma(1, scale, count) + scale / 100, rng.gamma(1, scale, count) + scale / 100


def ours(metric, preds, target, **more) -> float:
    return float(metric(torch.from_numpy(preds), torch.from_numpy(target), **more))


@pytest.mark.parametrize("kind", FORMULAS)
def test_it_is_the_formula_and_ignites_value(kind):
    for seed in SEEDS:
        preds, target = samples(seed, 1 + seed % 20)
        expected = FORMULAS[kind](preds, target)
        assert ours(kind(), preds, target) == pytest.approx(expected, rel=1e-12, abs=1e-12 * np.abs(target).mean())
        if seed < 5:
            other = IGNITE[kind]()
            other.update((torch.from_numpy(preds), torch.from_numpy(target)))
            assert ours(kind(), preds, target) == pytest.approx(other.compute(), rel=1e-5)


@pytest.mark.parametrize("kind", FORMULAS)
def test_weights_are_counts_and_outputs_are_apart(kind):
    preds, target = samples(1)
    times = np.arange(len(preds)) % 4
    expected = ours(kind(), np.repeat(preds, times), np.repeat(target, times))
    assert ours(kind(), preds, target, weights=torch.from_numpy(times)) == pytest.approx(expected, rel=1e-14)
    two = kind(num_outputs=2)(*(torch.from_numpy(np.stack([x, 2 * x], 1)) for x in (preds, target)))
    assert two.tolist() == [ours(kind(), preds, target), ours(kind(), 2 * preds, 2 * target)]


def test_the_mean_error_is_exact():
    preds, target = (torch.randn(2, 99, generator=torch.Generator().manual_seed(3)) * 1e6).unbind()
    exact = sum((Fraction(t) - Fraction(p) for p, t in zip(preds.tolist(), target.tolist(), strict=True)), Fraction(0))
    assert float(MeanError()(preds, target)) == float(exact / 99)


def test_equal_values_are_no_error_also_at_zero_and_large_ones_do_not_overflow():
    zeros = torch.zeros(3)
    for kind in (CanberraDistance, WaveHedgesDistance, FractionalBias):
        assert float(kind()(zeros, zeros)) == 0
    large = torch.tensor([3e38])
    assert float(CanberraDistance()(large, large / 3)) == pytest.approx(0.5)
    assert float(WaveHedgesDistance()(large, large / 4)) == pytest.approx(0.75)
    assert float(FractionalBias()(large, large / 3)) == pytest.approx(-1)


def test_the_smallest_floats_have_the_errors_of_larger_ones():
    preds, target = torch.tensor([3.0, 2.0, 7.0]), torch.tensor([4.0, 1.0, 7.0])
    for kind in (CanberraDistance, WaveHedgesDistance, FractionalBias):
        for dtype, smallest in ((torch.float32, 2.0**-149), (torch.float64, 2.0**-1074)):
            same = [each.double().mul(smallest).to(dtype) for each in (preds, target)]
            assert float(kind()(*same)) == pytest.approx(float(kind()(preds.to(dtype), target.to(dtype))), rel=1e-12)


def test_a_target_of_zero_has_no_normalized_bias():
    with pytest.raises(InvalidValuesError, match="which needs a target that is not 0"):
        MeanNormalizedBias()(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 2.0]))


def test_geometric_means():
    for seed in SEEDS:
        values, _ = samples(seed)
        weights = np.random.default_rng(seed).integers(1, 9, len(values)) / 4
        assert float(GeometricMean()(torch.from_numpy(values))) == pytest.approx(gmean(values), rel=1e-12)
        found = GeometricMean()(torch.from_numpy(values), weights=torch.from_numpy(weights))
        assert float(found) == pytest.approx(gmean(values, weights=weights), rel=1e-12)
    assert float(GeometricMean()(torch.tensor([3, 0]))) == 0
    assert float(GeometricMeanAbsoluteError()(torch.tensor([1.0, 5.0]), torch.tensor([1.0, 2.0]))) == 0
    assert float(GeometricMean()(torch.tensor([3.0, 0.0]), weights=torch.tensor([1, 0]))) == pytest.approx(3)
    with pytest.raises(InvalidValuesError, match="values of 0 or more"):
        GeometricMean()(torch.tensor([3.0, -1.0]))


def spread(target: np.ndarray, how: str) -> float:
    of = {"mean": np.mean, "range": np.ptp, "std": np.std, "l2": np.linalg.norm}
    return float(of[how](target))


@pytest.mark.parametrize("how", ["mean", "range", "std", "l2"])
def test_normalized_root_mean_squared_error(how):
    metric = NormalizedRootMeanSquaredError(how if how != "mean" else "mean")
    for seed in SEEDS:
        preds, target = samples(seed, 2 + seed % 20)
        expected = np.sqrt(np.mean((preds - target) ** 2)) / spread(target, how)
        assert ours(metric, preds, target) == pytest.approx(expected, rel=1e-12)
    both = tuple(torch.from_numpy(np.stack([x, 3 * x], 1)) for x in (preds, target))
    found = NormalizedRootMeanSquaredError(how, num_outputs=2)(*both)
    other = torchmetrics.NormalizedRootMeanSquaredError(how, num_outputs=2)
    other.update(*both)
    np.testing.assert_allclose(found, other.compute(), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*is undefined:assay.errors.NoDataWarning")
def test_normalized_root_mean_squared_error_of_a_constant_target():
    metric, target = NormalizedRootMeanSquaredError("range"), torch.ones(3)
    assert float(metric(torch.zeros(3), target)) == math.inf
    assert metric(target, target).isnan()
    with pytest.raises(ConfigError, match="normalization: got 'max'"):
        NormalizedRootMeanSquaredError("max")


@pytest.mark.parametrize(
    ("normalization", "preds", "target", "expected"),
    [
        ("range", np.array([2**60, 2**60 + 50]), np.array([2**60, 2**60 + 100]), math.sqrt(1250) / 100),
        ("l2", np.full(5, 1e308), np.full(5, 1.7e308), 0.7 / 1.7 / math.sqrt(5)),
        ("range", np.array([1e308, 0.0]), np.array([1.7e308, -1.7e308]), None),
    ],
)
def test_a_normalized_error_is_that_of_exact_arithmetic(normalization, preds, target, expected):
    value = float(NormalizedRootMeanSquaredError(normalization=normalization)(*map(torch.from_numpy, (preds, target))))
    if expected is None:
        errors = [Fraction(p) - Fraction(t) for p, t in zip(preds.tolist(), target.tolist(), strict=True)]
        size = Fraction(float(target.max())) - Fraction(float(target.min()))
        expected = math.sqrt(sum((error / size) ** 2 for error in errors) / 2)
    assert value == pytest.approx(expected, rel=1e-15)
