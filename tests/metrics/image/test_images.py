"""Metrics of images against their definitions in NumPy, scikit-image, and TorchMetrics where that is right."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping

import numpy as np
import pytest
import torch
import torchmetrics.functional.image as torchmetrics_image

from assay.errors import ConfigError, DtypeError, InputError, InvalidValuesError, ShapeError
from assay.meter import Meter
from assay.metrics import (
    ErrorRelativeGlobalDimensionlessSynthesis,
    Metric,
    MultiScaleStructuralSimilarityIndexMeasure,
    PeakSignalNoiseRatio,
    PeakSignalNoiseRatioWithBlockedEffect,
    RelativeAverageSpectralError,
    RootMeanSquaredErrorUsingSlidingWindow,
    SpatialCorrelationCoefficient,
    SpectralAngleMapper,
    StructuralSimilarityIndexMeasure,
    TotalVariation,
    UniversalImageQualityIndex,
)
from metrics.image import oracles
from thinning import draws

Array = np.ndarray
DATA_SETS = draws(200)
GAUSSIAN, UNIFORM = oracles.gaussian(11, 1.5, 2), oracles.uniform(7, 2)
C1, C2 = 0.01**2, 0.03**2
BETAS = (0.3, 0.7)

OF_ONE_IMAGE: Mapping[Metric, Callable[[Array, Array], float]] = {
    StructuralSimilarityIndexMeasure(data_range=1): lambda x, y: oracles.similarity(x, y, GAUSSIAN, C1, C2)[0].mean(),
    StructuralSimilarityIndexMeasure(data_range=1, gaussian_kernel=False, use_sample_covariance=True): (
        lambda x, y: oracles.similarity(x, y, UNIFORM, C1, C2, sample=True)[0].mean()
    ),
    StructuralSimilarityIndexMeasure(data_range=1, gaussian_kernel=False, kernel_size=4): (
        lambda x, y: oracles.similarity(x, y, oracles.uniform(4, 2), C1, C2)[0].mean()
    ),
    MultiScaleStructuralSimilarityIndexMeasure(data_range=1, betas=BETAS, kernel_size=5): (
        lambda x, y: oracles.multiscale(x, y, oracles.gaussian(5, 1.5, 2), C1, C2, BETAS)
    ),
    UniversalImageQualityIndex(): lambda x, y: oracles.similarity(x, y, GAUSSIAN, 0, 0)[0].mean(),
    SpatialCorrelationCoefficient(window_size=5): lambda x, y: oracles.edge_correlation(x, y, 5),
    SpatialCorrelationCoefficient(): lambda x, y: oracles.edge_correlation(x, y, 8),
    SpectralAngleMapper(): oracles.angles,
    TotalVariation(reduction="mean"): lambda x, y: oracles.variation(x),
    ErrorRelativeGlobalDimensionlessSynthesis(ratio=2): lambda x, y: oracles.ergas(x, y, 2),
    RootMeanSquaredErrorUsingSlidingWindow(): lambda x, y: oracles.windowed_error(x, y, 8),
    RelativeAverageSpectralError(window_size=5): lambda x, y: oracles.rase(x, y, 5),
    PeakSignalNoiseRatio(data_range=1, per_image=True): lambda x, y: oracles.psnr(x, y, 1),
    PeakSignalNoiseRatioWithBlockedEffect(data_range=1): lambda x, y: oracles.blocked_psnr(x, y, 1, 8),
    PeakSignalNoiseRatioWithBlockedEffect(data_range=2, block_size=3): lambda x, y: oracles.blocked_psnr(x, y, 2, 3),
}
SHIFT_FREE = [
    RootMeanSquaredErrorUsingSlidingWindow(),
    SpatialCorrelationCoefficient(),
    PeakSignalNoiseRatio(data_range=1, per_image=True),
    PeakSignalNoiseRatio(data_range=1),
    PeakSignalNoiseRatioWithBlockedEffect(data_range=1),
    TotalVariation(),
]
every_metric = pytest.mark.parametrize("metric", OF_ONE_IMAGE, ids=lambda metric: type(metric).__name__)


def drawn(seed: int, images: int = 2, channels: int = 2, height: int = 15, width: int = 13) -> tuple[Array, Array]:
    """Images of smooth and of noisy regions, and the same with more or less noise."""
    rng = np.random.default_rng(seed)
    target = rng.random((images, channels, height, width))
    target[..., : width // 2] = np.linspace(0.1, 0.9, height)[:, None]
    noise = rng.normal(size=target.shape) * rng.choice([0.001, 0.05, 0.5])
    return np.clip(target + noise, 1e-3, 1), target


def value(metric: Metric, preds: Array, target: Array, dtype: torch.dtype = torch.float64) -> float:
    pair = [torch.from_numpy(each).to(dtype) for each in (preds, target)]
    return float(metric(*pair[: 1 if isinstance(metric, TotalVariation) else 2]))


@every_metric
def test_it_is_its_definition(metric):
    for seed in DATA_SETS[::10]:
        preds, target = drawn(seed)
        expected = np.mean([float(OF_ONE_IMAGE[metric](x, y)) for x, y in zip(preds, target, strict=True)])
        assert value(metric, preds, target) == pytest.approx(expected, rel=2e-9, abs=2e-9)
        assert value(metric, preds, target, torch.float32) == pytest.approx(expected, rel=2e-4, abs=2e-5)


@pytest.mark.parametrize("gaussian", [True, False])
def test_ssim_is_scikit_images(gaussian):
    reference = pytest.importorskip("skimage.metrics").structural_similarity
    metric = StructuralSimilarityIndexMeasure(
        data_range=1, gaussian_kernel=gaussian, use_sample_covariance=not gaussian
    )
    options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False} if gaussian else {}
    for seed in DATA_SETS:
        preds, target = drawn(seed)
        expected = np.mean(
            [reference(x, y, data_range=1, channel_axis=0, **options) for x, y in zip(preds, target, strict=True)]
        )
        assert value(metric, preds, target) == pytest.approx(expected, abs=1e-8)


def test_psnr_of_all_pixels_is_scikit_images():
    reference = pytest.importorskip("skimage.metrics").peak_signal_noise_ratio
    for seed in DATA_SETS:
        preds, target = drawn(seed)
        found = value(PeakSignalNoiseRatio(data_range=1), preds, target)
        assert found == pytest.approx(reference(target, preds, data_range=1), rel=1e-12)


def test_volumes_have_windows_of_three_dimensions():
    preds, target = np.random.default_rng(0).random((2, 2, 1, 12, 13, 11))
    metric = StructuralSimilarityIndexMeasure(data_range=1)
    window = oracles.gaussian(11, 1.5, 3)
    expected = np.mean([oracles.similarity(x, y, window, C1, C2)[0].mean() for x, y in zip(preds, target, strict=True)])
    assert value(metric, preds, target) == pytest.approx(float(expected), abs=1e-8)


@pytest.mark.parametrize(
    ("metric", "name", "options"),
    [
        (UniversalImageQualityIndex(), "universal_image_quality_index", {}),
        (SpectralAngleMapper(), "spectral_angle_mapper", {}),
        (TotalVariation(), "total_variation", {}),
        (ErrorRelativeGlobalDimensionlessSynthesis(), "error_relative_global_dimensionless_synthesis", {}),
        (PeakSignalNoiseRatio(data_range=1), "peak_signal_noise_ratio", {"data_range": 1.0}),
    ],
)
def test_torchmetrics_gives_the_same(metric, name, options):
    for seed in draws(30):
        rng = np.random.default_rng(seed)
        target = rng.random((3, 3, 17, 14)) + 0.1
        preds = target + rng.normal(size=target.shape) * 0.1
        pair = [torch.from_numpy(each) for each in (preds, target)]
        theirs = getattr(torchmetrics_image, name)(*pair[: 1 if isinstance(metric, TotalVariation) else 2], **options)
        assert value(metric, preds, target) == pytest.approx(float(theirs), rel=1e-5)


# --- offsets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0, 1000, 30000, 2**20])
@pytest.mark.parametrize("similarity", [StructuralSimilarityIndexMeasure, MultiScaleStructuralSimilarityIndexMeasure])
def test_ssim_loses_no_digits_to_an_offset(offset, similarity):
    preds, target = (np.round(each * 255) for each in drawn(5, images=1, height=22, width=23))
    options = {"betas": (1.0,)} if similarity is MultiScaleStructuralSimilarityIndexMeasure else {}
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    expected = float(oracles.similarity(preds[0] + offset, target[0] + offset, GAUSSIAN, c1, c2)[0].mean())
    metric = similarity(data_range=255, **options)
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64):
        assert value(metric, preds + offset, target + offset, dtype) == pytest.approx(expected, abs=2e-6), dtype


@pytest.mark.parametrize("metric", SHIFT_FREE, ids=lambda metric: type(metric).__name__)
def test_a_shift_free_number_survives_an_offset(metric):
    preds, target = (np.round(each * 255) for each in drawn(6))
    plain, offset = (value(metric, preds + by, target + by, torch.float32) for by in (0, 2**20))
    assert offset == pytest.approx(plain, rel=1e-6)


# --- batches ---------------------------------------------------------------------------------------------------------


@every_metric
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_size_of_a_batch_changes_no_bit(metric, dtype):
    arrays = drawn(7, images=23, channels=3, height=19, width=17)
    images = [torch.from_numpy(each).to(dtype) for each in arrays][: 1 if isinstance(metric, TotalVariation) else 2]
    expected = metric(*images)
    for size in (1, 2, 7, 16):
        meter = Meter(metric)
        for part in zip(*(each.split(size) for each in images), strict=True):
            meter.update(*part)
        (found,) = meter.compute().values()
        assert torch.equal(found, expected)
    order = torch.randperm(23, generator=torch.Generator().manual_seed(0))
    assert torch.equal(metric(*(each[order] for each in images)), expected)


def test_an_image_counts_once_whatever_its_size():
    metric = StructuralSimilarityIndexMeasure(data_range=1)
    meter, expected = Meter(metric), []
    for seed, height in ((1, 14), (2, 20), (3, 33)):
        preds, target = drawn(seed, images=1, height=height)
        meter.update(torch.from_numpy(preds), torch.from_numpy(target))
        expected.append(value(metric, preds, target))
    assert float(*meter.compute().values()) == pytest.approx(np.mean(expected), rel=1e-14)


# --- edges -----------------------------------------------------------------------------------------------------------


def test_equal_images_are_equal():
    image = torch.rand(2, 3, 24, 24, generator=torch.Generator().manual_seed(0))
    assert StructuralSimilarityIndexMeasure(data_range=1)(image, image) == 1
    assert UniversalImageQualityIndex()(image, image) == 1
    assert MultiScaleStructuralSimilarityIndexMeasure(data_range=1, betas=(0.5, 0.5))(image, image) == 1
    assert SpectralAngleMapper()(image, image) == 0
    assert RootMeanSquaredErrorUsingSlidingWindow()(image, image) == 0
    for per_image in (True, False):
        assert PeakSignalNoiseRatio(data_range=1, per_image=per_image)(image, image) == math.inf


def test_constant_images_have_the_quality_of_their_means():
    one, two = torch.full((1, 1, 16, 16), 0.3), torch.full((1, 1, 16, 16), 0.6)
    assert float(UniversalImageQualityIndex()(one, two)) == pytest.approx(0.8, abs=1e-6)
    assert float(UniversalImageQualityIndex()(0 * one, 0 * two)) == 1
    assert float(SpatialCorrelationCoefficient()(one, two)) == 0


def test_only_steps_between_blocks_are_a_blocking_effect():
    metric = PeakSignalNoiseRatioWithBlockedEffect(data_range=255, block_size=4)
    plain = PeakSignalNoiseRatio(data_range=255, per_image=True)
    target = torch.full((1, 1, 12, 16), 100.0)
    blocks = target + 10 * (torch.arange(16) // 4 % 2)
    shifted = blocks.roll(2, -1)
    assert metric(blocks, target) < plain(blocks, target)
    assert torch.equal(metric(shifted, target), plain(shifted, target))
    effect = 3 * 12 * 10**2 / (3 * 12 + 2 * 16) * math.log2(4) / math.log2(12)
    assert float(metric(blocks, target)) == pytest.approx(10 * math.log10(255**2 / (50 + effect)), rel=1e-6)
    assert metric(target, target) == math.inf
    one_block = blocks[..., :4, 2:6]
    assert torch.equal(metric(one_block, target[..., :4, :4]), plain(one_block, target[..., :4, :4]))
    with pytest.raises(ShapeError, match="4 or more pixels"):
        metric(blocks[..., :3], target[..., :3])


def test_a_pixel_without_a_direction():
    black, red = torch.zeros(1, 3, 1, 1), torch.tensor([1.0, 0, 0]).reshape(1, 3, 1, 1)
    assert SpectralAngleMapper()(black, black) == 0
    assert float(SpectralAngleMapper()(black, red)) == pytest.approx(math.pi / 2, abs=1e-6)


@every_metric
@pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf])
def test_images_that_are_not_finite_raise_and_are_counted(metric, strange):
    preds, target = (torch.from_numpy(each).float() for each in drawn(8, images=4))
    preds[1, 0, 2, 3] = strange
    with pytest.raises(InvalidValuesError, match=r"1 .*NaN, infinite or too large"):
        metric(preds, None if isinstance(metric, TotalVariation) else target)


@every_metric
def test_bad_input_is_one_clear_line(metric):
    preds, target = (torch.from_numpy(each) for each in drawn(9))
    unary = isinstance(metric, TotalVariation)
    bad = [(preds[0, 0], target[0, 0]), (preds[0], target[0]), (preds + 1j, target), (preds[..., :0], target[..., :0])]
    bad += [] if unary else [(preds, target[..., :-1]), (preds, target[:1]), (preds, target[:, :1])]
    for images in bad:
        with pytest.raises(InputError, match=r"(preds|target): got .*, expected "):
            metric(images[0], None if unary else images[1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert metric(preds[:0], None if unary else target[:0]).isnan()
    assert len(caught) == 1


def test_images_of_two_sizes_are_to_be_resized_and_others_reshaped():
    image = torch.rand(2, 3, 16, 16)
    for metric in (PeakSignalNoiseRatio(data_range=1), StructuralSimilarityIndexMeasure(data_range=1)):
        with pytest.raises(InputError, match=r"target: got .*Resize or crop preds and target to one size"):
            metric(image, image[..., :15])
        with pytest.raises(InputError, match=r"target: got .*Reshape target"):
            metric(image, image[:, None])


def test_images_that_are_smaller_than_the_window_are_refused():
    small = torch.zeros(1, 1, 10, 40)
    for metric in (StructuralSimilarityIndexMeasure(data_range=1), UniversalImageQualityIndex()):
        with pytest.raises(ShapeError, match="11 or more pixels"):
            metric(small, small)
    with pytest.raises(ShapeError, match="176 or more pixels"):
        MultiScaleStructuralSimilarityIndexMeasure(data_range=1)(
            torch.zeros(1, 1, 175, 200), torch.zeros(1, 1, 175, 200)
        )


def test_arguments_out_of_range_are_refused():
    with pytest.raises(TypeError, match="data_range"):
        StructuralSimilarityIndexMeasure()
    of_range = (PeakSignalNoiseRatio, PeakSignalNoiseRatioWithBlockedEffect)
    for kind in (*of_range, StructuralSimilarityIndexMeasure, MultiScaleStructuralSimilarityIndexMeasure):
        for data_range in (0, -1, math.nan, math.inf):
            with pytest.raises(ConfigError, match="data_range"):
                kind(data_range=data_range)
    for name, wrong in (("sigma", 0), ("kernel_size", 1), ("k1", 0), ("k2", math.nan)):
        with pytest.raises(ConfigError, match=name):
            StructuralSimilarityIndexMeasure(data_range=1, **{name: wrong})
    with pytest.raises(ConfigError, match="betas"):
        MultiScaleStructuralSimilarityIndexMeasure(data_range=1, betas=())
    with pytest.raises(ConfigError, match="ratio"):
        ErrorRelativeGlobalDimensionlessSynthesis(ratio=0)
    with pytest.raises(ConfigError, match="window_size"):
        RelativeAverageSpectralError(window_size=0)
    with pytest.raises(ConfigError, match="block_size"):
        PeakSignalNoiseRatioWithBlockedEffect(data_range=1, block_size=1)
    with pytest.raises(ConfigError, match="reduction"):
        TotalVariation(reduction="none")


def test_a_correlation_needs_more_than_one_pixel_in_a_window():
    with pytest.raises(ConfigError, match="window_size"):
        SpatialCorrelationCoefficient(window_size=1)


RANGED = {
    "PSNR": PeakSignalNoiseRatio,
    "PSNR of images": lambda **options: PeakSignalNoiseRatio(per_image=True, **options),
    "PSNR of blocks": PeakSignalNoiseRatioWithBlockedEffect,
    "SSIM": StructuralSimilarityIndexMeasure,
    "MS-SSIM": lambda **options: MultiScaleStructuralSimilarityIndexMeasure(betas=(0.5, 0.5), **options),
    "sum": lambda **options: PeakSignalNoiseRatio(**options) + 1,
}


@pytest.mark.parametrize("name", RANGED)
@pytest.mark.parametrize("which", ["preds", "target"])
def test_integers_do_not_fit_a_range_of_one(name, which):
    random = torch.Generator().manual_seed(1)
    images = {each: torch.randint(256, (2, 1, 32, 32), generator=random) for each in ("preds", "target")}
    meter = Meter(RANGED[name](data_range=1.0))
    wrong = {each: values / 255 for each, values in images.items()} | {which: images[which].to(torch.uint8)}
    with pytest.raises(DtypeError, match=rf"{which}: got torch.uint8, .*data_range=1 .*data_range=255"):
        meter.update(**wrong)
    assert meter.rows == 0
    (expected,) = meter.values_of(*(each / 255 for each in images.values())).values()
    bytes_ = [each.to(torch.uint8) for each in images.values()]
    (found,) = Meter(RANGED[name](data_range=255.0)).values_of(*bytes_).values()
    assert found == pytest.approx(expected.item(), rel=1e-4)
    meter.update(images["preds"] > 127, images["target"] > 127)  # masks are 0 or 1
