"""Fréchet distances, against SciPy's square root of a matrix and TorchMetrics."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy.linalg
import torch
from torchmetrics.image import mifid as theirs
from torchmetrics.image.fid import _compute_fid

from assay import Meter
from assay.errors import ConfigError, DtypeError, InvalidValuesError, NoDataWarning, RoundingWarning, ShapeError
from assay.metrics import FrechetDistance, MemorizationInformedFrechetInceptionDistance
from thinning import draws

EVERY = pytest.mark.parametrize("kind", [FrechetDistance, MemorizationInformedFrechetInceptionDistance])


def draw(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features that are multiples of 2 ** -10, fewer or more samples than features, and which samples are real."""
    rng = np.random.default_rng(seed)
    features, sizes = int(rng.integers(1, 9)), rng.integers(2, 40, 2)
    mix = rng.normal(size=(2, features, features))
    groups = [rng.normal(size=(size, features)) @ m / 2 + rng.normal() for size, m in zip(sizes, mix, strict=True)]
    values = np.rint(np.concatenate(groups).clip(-29, 29) * 1024) / 1024
    order = rng.permutation(len(values))
    return torch.from_numpy(values[order]), torch.from_numpy((np.arange(len(values)) >= sizes[0])[order])


def frechet(first: np.ndarray, second: np.ndarray) -> float:
    (m1, c1), (m2, c2) = ((x.mean(0), np.atleast_2d(np.cov(x.T))) for x in (first, second))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
        root = scipy.linalg.sqrtm(c1 @ c2)
    return float(((m1 - m2) ** 2).sum() + np.trace(c1) + np.trace(c2) - 2 * np.trace(root).real)


def groups(preds: torch.Tensor, real: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    return preds[~real].double().numpy(), preds[real].double().numpy()


def test_200_data_sets_against_scipy():
    compared = 0
    for seed in draws(200):
        preds, real = draw(seed)
        value = float(FrechetDistance(num_features=preds.shape[1])(preds, real))
        first, second = groups(preds, real)
        singular = min(len(first), len(second)) <= preds.shape[1]
        expected = frechet(first, second)
        scale = np.trace(np.atleast_2d(np.cov(first.T))) + np.trace(np.atleast_2d(np.cov(second.T)))
        # where a covariance is singular, the square root of the rounding of an eigenvalue is in SciPy's result
        assert value == pytest.approx(expected, rel=1e-12, abs=(1e-6 if singular else 1e-12) * scale)
        compared += not singular
    assert compared > len(draws(200)) / 2


def test_features_are_rounded_to_the_fixed_point_alone():
    generator = torch.Generator().manual_seed(0)
    preds, real = torch.randn(400, 16, generator=generator), torch.arange(400) % 2 == 0
    fine = float(FrechetDistance(num_features=16, feature_range=7.5)(preds, real))
    assert fine == pytest.approx(frechet(*groups(preds, real)), rel=1e-5)
    rounded = (preds.double() * 2**20).round() / 2**20
    assert fine == pytest.approx(frechet(*groups(rounded, real)), rel=1e-12)


@pytest.mark.parametrize("scale", [1e-4, 1e-5, 1e-6])
def test_features_that_are_small_beside_the_range_warn_with_a_bound_that_holds(scale):
    preds = torch.randn(200, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * scale
    real = torch.arange(200) % 2 == 0
    preds[real] = preds[real] * 2 + scale
    expected = frechet(*groups(preds, real))
    with pytest.warns(RoundingWarning, match="feature_range") as caught:
        value = float(FrechetDistance(num_features=4)(preds, real))
    change = float(str(caught[0].message).partition("changed by ")[2].partition(",")[0])
    assert 1e-3 * value < change  # which the message rounds to one digit
    assert 0 < abs(value - expected) < 1.5 * change
    assert float(FrechetDistance(num_features=4, feature_range=9 * scale)(preds, real)) == pytest.approx(expected, 1e-5)
    exact = (preds * 2**18).round() / 2**18  # of which nothing is rounded, so nothing warns
    FrechetDistance(num_features=4)(exact, real)


@pytest.mark.parametrize("count", [5, 300])
def test_a_set_is_at_distance_zero_of_itself(count):
    some = torch.randn(count, 40, generator=torch.Generator().manual_seed(count))
    real = torch.arange(2 * count) >= count
    assert 0 <= float(FrechetDistance(num_features=40)(torch.cat([some, some]), real)) < 1e-10


def test_an_offset_of_both_groups_changes_no_bit():
    preds, real = draw(3)
    metric = FrechetDistance(num_features=preds.shape[1], feature_range=4000.0)
    assert torch.equal(metric(preds, real), metric(preds + 3000, real))


def test_many_batches_in_any_order_give_the_same_bits():
    generator = torch.Generator().manual_seed(5)
    preds, real = torch.randn(200, 6, generator=generator), torch.rand(200, generator=generator) < 0.3
    metric = FrechetDistance(num_features=6)
    expected = metric(preds, real)
    order = torch.randperm(200, generator=generator)
    for size in (1, 7, 64):
        meter = Meter(value=metric)
        for some in order.split(size):
            meter.update(preds[some], real[some])
        assert torch.equal(meter.compute()["value"], expected)


def test_float16_features_are_counted_as_they_are():
    preds, real = draw(8)
    half = preds.half()
    metric = FrechetDistance(num_features=preds.shape[1])
    assert torch.equal(metric(half, real), metric(half.double(), real.long()))


def test_integer_weights_repeat_samples():
    preds, real = draw(11)
    weights = torch.arange(len(preds)) % 4
    for metric in (
        FrechetDistance(num_features=preds.shape[1]),
        MemorizationInformedFrechetInceptionDistance(num_features=preds.shape[1], cosine_distance_eps=1.0),
    ):
        many = metric(preds.repeat_interleave(weights, 0), real.repeat_interleave(weights))
        assert float(metric(preds, real, weights=weights)) == pytest.approx(float(many), rel=1e-12)


def test_mifid_of_200_data_sets_is_that_of_torchmetrics_with_both_groups_exchanged():
    for seed in draws(200):
        preds, real = draw(seed)
        generated, true = preds[~real], preds[real]
        if min(len(generated), len(true)) <= preds.shape[1] or (preds.sum(1) == 0).any():
            continue
        eps = (0.1, 0.9)[seed % 2]
        metric = MemorizationInformedFrechetInceptionDistance(num_features=preds.shape[1], cosine_distance_eps=eps)
        moments = [(x.mean(0), torch.cov(x.T).reshape(preds.shape[1], -1), x) for x in (generated, true)]
        expected = float(theirs._mifid_compute(*moments[0], *moments[1], eps))
        penalty = float(theirs._compute_cosine_distance(generated, true, eps))
        if penalty > 1e-9:
            assert float(metric(preds, real)) == pytest.approx(expected, rel=1e-9)


def test_mifid_is_larger_where_samples_are_copies():
    generator = torch.Generator().manual_seed(2)
    real, fresh = torch.randn(50, 8, generator=generator), torch.randn(50, 8, generator=generator)
    which = torch.arange(100) >= 50
    metric = MemorizationInformedFrechetInceptionDistance(num_features=8)
    plain = FrechetDistance(num_features=8, feature_range=7.5)
    copies = real + torch.randn(50, 8, generator=generator) / 100
    new, copied = torch.cat([fresh, real]), torch.cat([copies, real])
    assert float(metric(new, which)) == pytest.approx(float(plain(new, which)), rel=1e-4)
    assert float(metric(copied, which)) > 1000 * float(plain(copied, which))


def test_mifid_without_directions_has_no_penalty_and_no_distance_is_zero():
    metric = MemorizationInformedFrechetInceptionDistance(num_features=1)
    preds = torch.tensor([[0.0], [0.0], [1.0], [3.0]])
    assert float(metric(preds, torch.tensor([0, 0, 1, 1]))) == pytest.approx(2**2 + 2, rel=1e-12)
    assert float(metric(preds[[0, 2, 0, 2]], torch.tensor([0, 0, 1, 1]))) == 0


@EVERY
@pytest.mark.parametrize("real", [[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, 1]])
def test_fewer_than_two_samples_of_a_group_are_undefined(kind, real):
    with pytest.warns(NoDataWarning, match="two generated and two real"):
        assert math.isnan(kind(num_features=2)(torch.randn(4, 2), torch.tensor(real)))


@EVERY
def test_bad_samples_raise(kind):
    metric, preds, real = kind(num_features=2), torch.ones(4, 2), torch.tensor([0, 0, 1, 1])
    with pytest.raises(InvalidValuesError, match=r"1 .*NaN or infinite"):
        metric(preds.clone().fill_diagonal_(math.inf).index_fill(0, torch.tensor([1]), 0), real)
    with pytest.raises(InvalidValuesError, match="neither 0"):
        metric(preds, torch.tensor([0, 0, 1, 2]))
    with pytest.raises(InvalidValuesError, match="weights"):
        metric(preds, real, weights=torch.tensor([1, 1, 1, 0.5]))
    with pytest.raises(ShapeError, match="num_features"):
        metric(torch.ones(4, 3), real)
    with pytest.raises(ShapeError, match=r"target: got nothing, .*real \(1\) or generated \(0\)"):
        metric(preds)
    with pytest.raises(DtypeError, match="target"):
        metric(preds, real.float())
    with pytest.raises(ConfigError, match="num_features"):
        kind(num_features=0)


def test_features_beyond_the_range_raise_and_name_it():
    with pytest.raises(InvalidValuesError, match="feature_range=30"):
        FrechetDistance(num_features=1)(torch.tensor([[40.0], [1.0], [2.0], [3.0]]), torch.tensor([0, 0, 1, 1]))


@pytest.mark.parametrize("eps", [0.0, 1.1, float("nan")])
def test_the_threshold_of_mifid_is_checked(eps):
    with pytest.raises(ConfigError, match="cosine_distance_eps"):
        MemorizationInformedFrechetInceptionDistance(num_features=1, cosine_distance_eps=eps)


def test_torchmetrics_agrees_about_fid():
    for seed in draws(20):
        preds, real = draw(seed)
        if preds.shape[1] > 1:
            first, second = preds[~real], preds[real]
            expected = _compute_fid(first.mean(0), torch.cov(first.T), second.mean(0), torch.cov(second.T))
            value = float(FrechetDistance(num_features=preds.shape[1])(preds, real))
            assert value == pytest.approx(float(expected), rel=1e-6, abs=1e-5)
