"""Metrics of all pairs of samples, against their definitions, TorchMetrics and Ignite."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from ignite import metrics as ignite
from torchmetrics.image.kid import poly_mmd

from assay import Meter
from assay.errors import ConfigError, InvalidValuesError, NoDataWarning, ShapeError
from assay.metrics import HSIC, KernelInceptionDistance, MaximumMeanDiscrepancy, distances
from thinning import draws


def features(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    size, width = int(rng.integers(4, 40)), int(rng.integers(1, 6))
    values = rng.normal(size=(size, width)) * 10.0 ** rng.integers(-1, 2)
    if seed % 3 == 0:
        values = np.rint(2 * values)
    real = np.arange(size) % int(rng.integers(2, 4)) == 0
    return torch.from_numpy(values), torch.from_numpy(rng.permutation(real))


def discrepancy(kernel, x: np.ndarray, y: np.ndarray) -> float:
    """By loops over all pairs."""

    def mean(rows, others, same):
        pairs = [(a, b) for a in range(len(rows)) for b in range(len(others)) if not (same and a == b)]
        return math.fsum(kernel(rows[a], others[b]) for a, b in pairs) / len(pairs)

    return mean(x, x, True) + mean(y, y, True) - 2 * mean(x, y, False)


def gaussian(variance: float):
    return lambda a, b: math.exp(-float(((a - b) ** 2).sum()) / (2 * variance))


def hsic(x: np.ndarray, y: np.ndarray, sigmas: tuple[float | None, float | None]) -> float:
    """Song's estimator, with matrices."""
    kernels = []
    for rows, sigma in zip((x, y), sigmas, strict=True):
        distances = ((rows[:, None] - rows) ** 2).sum(-1)
        kernel = np.exp(-distances / (2 * (np.median(distances) if sigma is None else sigma**2)))
        np.fill_diagonal(kernel, 0)
        kernels.append(kernel)
    k, l_ = kernels
    n, ones = len(x), np.ones(len(x))
    value = np.trace(k @ l_) + k.sum() * l_.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * (ones @ k @ l_ @ ones)
    return max(0.0, float(value / (n * (n - 3))))


def test_kid_of_200_data_sets_is_its_definition():
    for seed in draws(200):
        preds, real = features(seed)
        if min(int(real.sum()), int((~real).sum())) < 2:
            continue
        degree, gamma, coef = ((3, None, 1.0), (2, 0.5, 0.0), (1, 2.0, 3.0))[seed % 3]
        metric = KernelInceptionDistance(num_features=preds.shape[1], degree=degree, gamma=gamma, coef=coef)
        factor = gamma or 1 / preds.shape[1]
        x, y = preds[~real].numpy(), preds[real].numpy()
        kernel = lambda a, b: (factor * float(a @ b) + coef) ** degree  # noqa: B023, E731
        scale = max(abs(kernel(a, a)) for a in (*x, *y))
        assert float(metric(preds, real)) == pytest.approx(discrepancy(kernel, x, y), rel=1e-12, abs=1e-13 * scale)


def test_kid_of_equal_sizes_is_that_of_torchmetrics_without_subsets():
    for seed in draws(20):
        x, y = torch.randn(2, 30, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        value = float(KernelInceptionDistance(num_features=4)(torch.cat([x, y]), torch.arange(60) < 30))
        assert value == pytest.approx(float(poly_mmd(x, y)), rel=1e-10, abs=1e-13)


def test_mmd_of_200_data_sets_is_its_definition_and_ignites_of_one_batch():
    for seed in draws(200):
        x, _ = features(seed)
        y = x.flip(0) * 1.5 + 0.25
        variance = (1.0, 64.0)[seed % 2]
        value = float(MaximumMeanDiscrepancy(num_features=x.shape[1], var=variance)(x, y))
        squared = discrepancy(gaussian(variance), x.numpy(), y.numpy())
        assert value**2 == pytest.approx(max(0.0, squared), rel=1e-11, abs=1e-13)
        theirs = ignite.MaximumMeanDiscrepancy(var=variance)
        theirs.update((x, y))
        assert value**2 == pytest.approx(theirs.compute() ** 2, rel=1e-4, abs=1e-6)


def test_hsic_of_200_data_sets_is_its_definition_and_ignites_of_one_batch():
    for seed in draws(200):
        x, _ = features(seed)
        y = torch.cat([x[:, :1] ** 2 / 10, x.flip(0)[:, :1]], 1)
        sigmas = ((None, None), (2.0, 3.0), (None, 1.5))[seed % 3]
        metric = HSIC(num_features=x.shape[1], num_target_features=2, sigma_x=sigmas[0], sigma_y=sigmas[1])
        if any(s is None and torch.cdist(rows, rows).median() == 0 for s, rows in zip(sigmas, (x, y), strict=True)):
            continue
        value = float(metric(x, y))
        assert value == pytest.approx(hsic(x.numpy(), y.numpy(), sigmas), rel=1e-11, abs=1e-14)
        theirs = ignite.HSIC(*(-1 if sigma is None else sigma for sigma in sigmas))
        theirs.update((x.double(), y.double()))
        assert value == pytest.approx(theirs.compute(), rel=1e-4, abs=1e-6)


METRICS = pytest.mark.parametrize(
    "metric",
    [
        KernelInceptionDistance(num_features=3),
        MaximumMeanDiscrepancy(num_features=3),
        HSIC(num_features=3),
        HSIC(num_features=3, sigma_x=1.0, sigma_y=2.0),
    ],
    ids=repr,
)


def data(metric, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(size)
    preds = torch.randn(size, 3, generator=generator)
    if isinstance(metric, KernelInceptionDistance):
        return preds, torch.arange(size) % 3 == 0
    return preds, preds.flip(1) + torch.randn(size, 3, generator=generator)


@METRICS
def test_batches_do_not_matter(metric, monkeypatch):
    preds, target = data(metric, 50)
    expected = metric(preds, target)
    meter = Meter(value=metric)
    for some in torch.randperm(50, generator=torch.Generator().manual_seed(1)).split(7):
        meter.update(preds[some], target[some])
    assert torch.equal(meter.compute()["value"], expected)
    monkeypatch.setattr(distances, "CHUNK", 100)
    assert float(metric(preds, target)) == pytest.approx(float(expected), rel=1e-12)


@METRICS
def test_integer_weights_repeat_samples(metric):
    preds, target = data(metric, 20)
    weights = torch.arange(20) % 4
    many = metric(preds.repeat_interleave(weights, 0), target.repeat_interleave(weights, 0))
    assert float(metric(preds, target, weights=weights)) == pytest.approx(float(many), rel=1e-11)
    with pytest.raises(InvalidValuesError, match="integers"):
        metric(preds, target, weights=weights / 2)


@METRICS
def test_bad_samples_raise_and_too_few_are_undefined(metric):
    preds, target = data(metric, 9)
    with pytest.raises(InvalidValuesError, match="NaN or infinite"):
        metric(preds.index_fill(0, torch.tensor([2]), math.nan), target)
    with pytest.raises(ShapeError):
        metric(preds[:, :2], target)
    with pytest.warns(NoDataWarning):
        assert math.isnan(metric(preds[:1], target[:1]))


def test_hsic_of_mostly_equal_rows_is_undefined():
    with pytest.warns(NoDataWarning, match="most differ"):
        assert math.isnan(HSIC(num_features=1)(torch.tensor([[1.0]] * 5 + [[2.0]]), torch.arange(6.0)[:, None]))


@pytest.mark.parametrize(
    ("kind", "argument"),
    [
        (KernelInceptionDistance, {"degree": 0}),
        (KernelInceptionDistance, {"gamma": 0.0}),
        (KernelInceptionDistance, {"coef": -1.0}),
        (MaximumMeanDiscrepancy, {"var": 0.0}),
        (MaximumMeanDiscrepancy, {"num_features": 0}),
        (HSIC, {"sigma_x": -1.0}),
        (HSIC, {"sigma_y": math.inf}),
        (HSIC, {"num_target_features": 0}),
    ],
)
def test_arguments_are_checked(kind, argument):
    with pytest.raises(ConfigError, match=next(iter(argument))):
        kind(**{"num_features": 2} | argument)


def test_rows_of_another_size_are_refused_at_once():
    with pytest.raises(ShapeError, match="preds: got shape"):
        MaximumMeanDiscrepancy(num_features=3)(torch.zeros(4, 2), torch.zeros(4, 2))
