"""The inception score and perceptual path length, against their definitions and TorchMetrics."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.special
import torch
from torch import nn
from torchmetrics.image.inception import InceptionScore as TheirInceptionScore

from assay import Meter
from assay.errors import ConfigError, DtypeError, InvalidValuesError, NoDataWarning, ShapeError
from assay.metrics import InceptionScore, PerceptualPathLength
from thinning import draws


def inception_score(logits: np.ndarray, weights: np.ndarray) -> float:
    logs = scipy.special.log_softmax(logits, axis=1)
    shares = np.exp(logs)
    mean = weights @ shares / weights.sum()
    return float(np.exp(weights @ (shares * (logs - np.log(mean))).sum(1) / weights.sum()))


def test_200_data_sets_against_the_definition():
    rng = np.random.default_rng(0)
    for seed in draws(200):
        size, classes = int(rng.integers(1, 40)), int(rng.integers(1, 9))
        logits, weights = rng.normal(size=(size, classes)) * 4, rng.integers(1, 9, size) / 4
        metric, given = InceptionScore(num_classes=classes), torch.from_numpy(logits)
        assert float(metric(given)) == pytest.approx(inception_score(logits, np.ones(size)), rel=1e-12)
        weighted = metric(given, weights=torch.from_numpy(weights))
        assert float(weighted) == pytest.approx(inception_score(logits, weights), rel=1e-12)
        if seed % 10 == 0:
            assert float(metric(given.float())) == pytest.approx(float(metric(given)), rel=1e-5)


@pytest.mark.filterwarnings("ignore:Metric `InceptionScore` will save")
def test_torchmetrics_agrees_where_there_is_one_split():
    logits = torch.randn(50, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    theirs = TheirInceptionScore(feature=nn.Identity(), splits=1)
    theirs.update(logits)
    with pytest.warns(UserWarning, match="degrees of freedom"):
        mean, _ = theirs.compute()
    assert float(InceptionScore(num_classes=5)(logits)) == pytest.approx(float(mean), rel=1e-10)


def test_equal_samples_score_one_and_sure_ones_the_number_of_classes():
    metric = InceptionScore(num_classes=4)
    assert float(metric(torch.randn(1, 4).expand(9, 4))) == pytest.approx(1, abs=1e-6)
    assert float(metric(torch.eye(4) * 1000)) == 4
    assert float(metric(torch.eye(4).log())) == 4


def test_logits_that_are_no_numbers_raise():
    metric = InceptionScore(num_classes=2)
    for row in ([math.nan, 0.0], [math.inf, 0.0], [-math.inf, -math.inf]):
        with pytest.raises(InvalidValuesError, match=r"1 .*logits"):
            metric(torch.tensor([[0.0, 1.0], row]))
    with pytest.raises(ShapeError, match="num_classes"):
        metric(torch.zeros(3, 4))
    with pytest.raises(DtypeError, match="preds"):
        metric(torch.zeros(3, 2, dtype=torch.int64))
    with pytest.raises(ConfigError, match="num_classes"):
        InceptionScore(num_classes=0)


def path_length(distances: np.ndarray, lower: float | None, upper: float | None, epsilon: float) -> float:
    values = sorted(Fraction(float(x)) for x in distances)
    last = len(values) - 1
    least = values[math.floor(Fraction(repr(0.0 if lower is None else lower)) * last)]
    most = values[math.floor(Fraction(repr(1.0 if upper is None else upper)) * last)]
    some = [x for x in values if least <= x <= most]
    return float(sum(some) / len(some) / Fraction(repr(epsilon)) ** 2)


def test_path_lengths_of_200_data_sets_are_exact():
    rng = np.random.default_rng(3)
    for seed in draws(200):
        distances = rng.exponential(size=int(rng.integers(1, 60)))
        distances = np.rint(distances * 8) if seed % 3 == 0 else distances
        lower, upper = ((0.01, 0.99), (None, 0.8), (0.25, None), (0.5, 0.5))[seed % 4]
        metric = PerceptualPathLength(epsilon=0.01, lower_discard=lower, upper_discard=upper)
        given = torch.from_numpy(distances)
        assert float(metric(given)) == path_length(distances, lower, upper, 0.01)
        weights = torch.from_numpy(rng.integers(0, 4, len(distances)))
        if weights.any():
            assert torch.equal(metric(given, weights=weights), metric(given.repeat_interleave(weights)))


def test_quantiles_are_those_that_torchmetrics_takes():
    """It needs torchvision to run; these are its steps."""
    distances = torch.rand(50, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    lower, upper = (torch.quantile(distances, q, interpolation="lower") for q in (0.1, 0.9))
    mean = distances[(distances >= lower) & (distances <= upper)].mean() / 0.5**2
    meter = Meter(value=PerceptualPathLength(epsilon=0.5, lower_discard=0.1, upper_discard=0.9))
    for some in distances.split(7):
        meter.update(some)
    assert float(meter.compute()["value"]) == pytest.approx(float(mean), rel=1e-12)


def test_path_lengths_that_are_no_numbers():
    metric = PerceptualPathLength(epsilon=1.0)
    with pytest.warns(NoDataWarning):
        assert math.isnan(Meter(value=metric).compute()["value"])
    with pytest.raises(InvalidValuesError, match="integers"):
        metric(torch.ones(2), weights=torch.tensor([0.5, 1.0]))


@pytest.mark.parametrize(
    "arguments",
    [{"epsilon": 0.0}, {"lower_discard": -0.1}, {"upper_discard": 1.1}, {"lower_discard": 0.9, "upper_discard": 0.1}],
)
def test_arguments_of_path_lengths_are_checked(arguments):
    with pytest.raises(ConfigError, match=r"epsilon|lower_discard"):
        PerceptualPathLength(**arguments)
