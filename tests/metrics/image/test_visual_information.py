"""Visual information fidelity against its definition in NumPy, and TorchMetrics."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torchmetrics.functional.image import visual_information_fidelity

from assay.errors import ConfigError, InvalidValuesError, ShapeError
from assay.meter import Meter
from assay.metrics import VisualInformationFidelity
from metrics.image import oracles
from thinning import draws

METRIC = VisualInformationFidelity()


def drawn(seed: int, images: int = 2, height: int = 44, width: int = 41) -> tuple[torch.Tensor, torch.Tensor]:
    """Images of smooth, constant and noisy regions from 0 to 255, and the same with more or less noise."""
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 256, (images, 2, height, width)).astype(float)
    target[..., : width // 2] = np.linspace(30, 220, height)[:, None]
    target[..., : height // 2, :9] = 100
    preds = target * rng.choice([1, 0.7, 1.2]) + rng.normal(size=target.shape) * rng.choice([0.1, 5, 50])
    return torch.from_numpy(np.clip(preds, 0, 300)), torch.from_numpy(target)


def test_it_is_its_definition_and_torchmetrics_value():
    for seed in draws(20):
        preds, target = drawn(seed)
        for noise in (2.0, 0.1):
            metric = VisualInformationFidelity(sigma_n_sq=noise)
            pairs = zip(preds.numpy(), target.numpy(), strict=True)
            expected = np.mean([oracles.visual_information(x, y, noise) for x, y in pairs])
            assert float(metric(preds, target)) == pytest.approx(expected, rel=1e-9)
            assert float(metric(preds.float(), target.float())) == pytest.approx(expected, rel=1e-3)
            theirs = visual_information_fidelity(preds, target, sigma_n_sq=noise)
            assert float(metric(preds, target)) == pytest.approx(float(theirs), rel=1e-6)


def test_images_from_0_to_1_have_the_noise_in_their_units():
    preds, target = drawn(3)
    scaled = VisualInformationFidelity(sigma_n_sq=2 / 255**2)(preds / 255, target / 255)
    assert float(scaled) == pytest.approx(float(METRIC(preds, target)), rel=1e-9)


@pytest.mark.parametrize("offset", [1000, 30000, 2**20])
def test_it_loses_no_digits_to_an_offset(offset):
    preds, target = (each.round() for each in drawn(5))
    plain = pytest.approx(float(METRIC(preds.float(), target.float())), rel=1e-6)
    for dtype in (torch.float32, torch.int32):
        assert float(METRIC((preds + offset).to(dtype), (target + offset).to(dtype))) == plain
        assert float(METRIC((preds + offset).to(dtype), target.to(dtype))) == plain  # brightness is no information


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_size_of_a_batch_changes_no_bit(dtype):
    preds, target = (each.to(dtype) for each in drawn(7, images=11))
    for size in (1, 3, 8):
        meter = Meter(METRIC)
        for part in zip(preds.split(size), target.split(size), strict=True):
            meter.update(*part)
        assert torch.equal(*meter.compute().values(), METRIC(preds, target))


def test_equal_images_keep_all_and_inverted_ones_nothing():
    _, target = drawn(1)
    assert float(METRIC(target, target)) == pytest.approx(1, rel=1e-15)
    assert float(METRIC(target.float(), target.float())) == 1
    assert float(METRIC(255 - target, target)) < 1e-3
    assert float(METRIC(torch.zeros_like(target), target)) < 1e-9
    assert float(METRIC(target * 1.5, target)) > 1


def test_what_is_undefined_raises():
    preds, target = drawn(2, images=3)
    target[1, 0] = 7
    with pytest.raises(InvalidValuesError, match="1 of the images"):
        METRIC(preds, target)
    preds[0, 0, 0, 0] = torch.nan
    with pytest.raises(InvalidValuesError, match="2 of the images"):
        METRIC(preds, target)
    with pytest.raises(ShapeError, match="41 or more pixels"):
        METRIC(preds[..., :40], target[..., :40])
    for noise in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="sigma_n_sq"):
            VisualInformationFidelity(sigma_n_sq=noise)
