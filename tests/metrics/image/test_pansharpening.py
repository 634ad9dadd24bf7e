"""D-lambda, D-s and QNR against their definitions in NumPy, SciPy's filter, and TorchMetrics image by image."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torchmetrics.functional.image as torchmetrics_image
from scipy import ndimage

from assay.errors import ConfigError, DtypeError, InvalidValuesError, ShapeError
from assay.meter import Meter
from assay.metrics import QualityWithNoReference, SpatialDistortionIndex, SpectralDistortionIndex
from assay.metrics.per_sample import per_sample_values
from metrics.image import oracles
from thinning import draws


def drawn(seed: int, images: int = 2, channels: int = 3, factor: int = 2) -> dict[str, np.ndarray]:
    """Fused images and what they are made of; `pan_lr` is the mean of the pixels of `pan`."""
    rng = np.random.default_rng(seed)
    height, width = 13, 12
    pan = rng.random((images, 1, height * factor, width * factor)) + np.linspace(0, 2, width * factor)
    preds = pan * rng.uniform(0.5, 2, (channels, 1, 1)) + 0.2 * rng.random((images, channels, *pan.shape[2:]))
    low = [x.reshape(*x.shape[:2], height, factor, width, factor).mean((3, 5)) for x in (pan, preds)]
    return {"preds": preds, "ms": low[1] + 0.1 * rng.random(low[1].shape), "pan": pan, "pan_lr": low[0]}


def tensors(images: dict[str, np.ndarray], dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(each).to(dtype) for name, each in images.items()}


def reduced(pan: np.ndarray, size: int, factor: int) -> np.ndarray:
    """`(H, W)` as SciPy filters it, interpolated at the centres of the larger pixels."""
    smooth = ndimage.uniform_filter(pan, size, mode="reflect")
    rows, columns = ((np.arange(side // factor) + 0.5) * factor - 0.5 for side in pan.shape)
    return ndimage.map_coordinates(smooth, np.meshgrid(rows, columns, indexing="ij"), order=1)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_spectral_distortion_is_its_definition(order):
    metric = SpectralDistortionIndex(p=order)
    for seed in draws(20):
        images = drawn(seed)
        expected = np.mean(
            [oracles.spectral_distortion(*each, order) for each in zip(images["preds"], images["ms"], strict=True)]
        )
        for dtype, tolerance in ((torch.float64, 1e-8), (torch.float32, 2e-5)):
            given = tensors(images, dtype)
            assert float(metric(given["preds"], given["ms"])) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("order", [1, 2])
def test_spatial_distortion_and_quality_are_their_definitions(order):
    spatial = SpatialDistortionIndex(norm_order=order, window_size=None)
    quality = QualityWithNoReference(norm_order=order, window_size=None, alpha=2, beta=0.5)
    for seed in draws(20):
        images = drawn(seed)
        rows = list(zip(*images.values(), strict=True))
        details = np.array([oracles.spatial_distortion(x, ms, pan[0], low[0], order) for x, ms, pan, low in rows])
        colours = np.array([oracles.spectral_distortion(x, ms, order) for x, ms, _, _ in rows])
        given = tensors(images)
        assert float(spatial(**given)) == pytest.approx(details.mean(), abs=1e-8)
        assert float(quality(**given)) == pytest.approx(((1 - colours) ** 2 * (1 - details) ** 0.5).mean(), abs=1e-7)


@pytest.mark.parametrize("factor", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [1, 4, 7, 8])
def test_without_a_small_panchromatic_image_it_is_filtered_and_interpolated(size, factor):
    images = drawn(3, factor=factor)
    low = np.stack([reduced(each[0], size, factor)[None] for each in images["pan"]])
    given, same = tensors(images), torch.from_numpy(low)
    small = given.pop("pan_lr")
    filtered = SpatialDistortionIndex(window_size=size)(**given)
    assert float(filtered) == pytest.approx(
        float(SpatialDistortionIndex(window_size=None)(**given, pan_lr=same)), abs=1e-12
    )
    assert small.shape == same.shape


def test_torchmetrics_gives_the_same_for_single_images():
    for seed in draws(10):
        given = tensors(drawn(seed, images=1))
        wide = {name: each.expand(-1, 3, -1, -1) for name, each in given.items()}
        theirs = torchmetrics_image.spectral_distortion_index(given["preds"], given["ms"], p=2)
        assert float(SpectralDistortionIndex(p=2)(given["preds"], given["ms"])) == pytest.approx(
            float(theirs), abs=1e-6
        )
        theirs = torchmetrics_image.quality_with_no_reference(**wide, norm_order=2)
        ours = QualityWithNoReference(norm_order=2, window_size=None)(**given)
        assert float(ours) == pytest.approx(float(theirs), abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "metric", [SpectralDistortionIndex(p=2), SpatialDistortionIndex(), QualityWithNoReference(window_size=None)]
)
def test_the_size_of_a_batch_changes_no_bit(metric, dtype):
    given = tensors(drawn(7, images=13), dtype)
    spectral = isinstance(metric, SpectralDistortionIndex)
    names = ["preds", *metric.tally(False).columns]
    data = {"preds": given["preds"], "target": given["ms"]} if spectral else {name: given[name] for name in names}
    expected = metric(**data)
    for size in (1, 3, 8):
        meter = Meter(metric)
        for k in range(0, 13, size):
            meter.update(**{name: each[k : k + size] for name, each in data.items()})
        assert torch.equal(*meter.compute().values(), expected)
    values = per_sample_values(metric, **data)
    assert values.terms[values.numerator].double().mean() == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("offset", [1000, 2**20])
def test_an_offset_loses_no_digits(offset):
    """The index is then near that of two constants and a correlation, which float64 still tells apart."""
    images = {name: np.round(each * 64) + offset for name, each in drawn(5).items()}
    wide, narrow = tensors(images), tensors(images, torch.float32)
    for metric in (SpatialDistortionIndex(), QualityWithNoReference()):
        values = [float(metric(**{name: each[name] for name in ("preds", "ms", "pan")})) for each in (wide, narrow)]
        assert values[1] == pytest.approx(values[0], abs=1e-5)


def test_panchromatic_images_may_have_as_many_channels():
    given = tensors(drawn(1))
    del given["pan_lr"]
    wide = given | {"pan": given["pan"].expand(-1, 3, -1, -1)}
    assert torch.equal(SpatialDistortionIndex()(**given), SpatialDistortionIndex()(**wide))


def test_equal_relations_have_no_distortion():
    image = tensors(drawn(2))["preds"]
    assert SpectralDistortionIndex()(image, image) == 0
    same = {"ms": image, "pan": image[:, :1], "pan_lr": image[:, :1]}
    assert SpatialDistortionIndex(window_size=None)(image, **same) == 0
    assert QualityWithNoReference(window_size=None)(image, **same) == 1


def test_bad_input_is_one_clear_line():
    given = tensors(drawn(4))
    preds, small = given["preds"], given.pop("pan_lr")
    cases = [
        ({"ms": given["ms"][:, :2]}, "ms: got"),
        ({"ms": given["ms"][..., :-1]}, "ms: got"),
        ({"ms": preds[..., :10, :8]}, "ms: got"),
        ({"pan": given["pan"][..., 1:]}, "pan: got"),
        ({"pan": preds[:, :2]}, "pan: got"),
        ({"pan": given["pan"][0]}, "pan: got"),
    ]
    for change, message in cases:
        with pytest.raises(ShapeError, match=message):
            SpatialDistortionIndex()(**given | change)
    with pytest.raises(DtypeError, match="pan"):
        SpatialDistortionIndex()(**given | {"pan": given["pan"] + 1j})
    with pytest.raises(ShapeError, match="pan_lr: got"):
        SpatialDistortionIndex(window_size=None)(**given, pan_lr=small[..., 1:])
    with pytest.raises(ShapeError, match="window_size=12"):
        SpatialDistortionIndex(window_size=12)(**given)
    with pytest.raises(ConfigError, match="pan_lr"):
        SpatialDistortionIndex()(**given, pan_lr=small)
    with pytest.raises(ConfigError, match="pan"):
        SpatialDistortionIndex()(preds, ms=given["ms"])
    one = {name: each[:, :1] for name, each in given.items()}
    with pytest.raises(ShapeError, match="2 or more channels"):
        QualityWithNoReference()(**one)
    with pytest.raises(ShapeError, match="2 or more channels"):
        SpectralDistortionIndex()(one["preds"], one["ms"])
    with pytest.raises(ShapeError, match="target: got nothing"):
        SpectralDistortionIndex()(preds)


@pytest.mark.parametrize("name", ["preds", "ms", "pan", "pan_lr"])
def test_images_that_are_not_finite_raise_and_are_counted(name):
    given = tensors(drawn(8, images=4))
    given[name][1, 0, 2, 3] = float("nan")
    with pytest.raises(InvalidValuesError, match=r"1 .*NaN, infinite or too large"):
        QualityWithNoReference(window_size=None)(**given)


def test_arguments_out_of_range_are_refused():
    for kind, name in (
        *((SpectralDistortionIndex, "p"), (SpatialDistortionIndex, "norm_order")),
        *((SpatialDistortionIndex, "window_size"), (QualityWithNoReference, "window_size")),
    ):
        with pytest.raises(ConfigError, match=name):
            kind(**{name: 0})
    for name in ("alpha", "beta"):
        for value in (-1, float("nan"), float("inf")):
            with pytest.raises(ConfigError, match=name):
                QualityWithNoReference(**{name: value})
