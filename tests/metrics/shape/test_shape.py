"""Metrics of shapes against SciPy, NumPy and TorchMetrics."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.spatial import procrustes
from torchmetrics.functional.multimodal import lip_vertex_error

from assay.encode.points import aligned_disparities
from assay.errors import ConfigError, DtypeError, InputError, InvalidValuesError, ShapeError
from assay.meter import Meter
from assay.metrics import LipVertexError, ProcrustesDisparity
from assay.metrics.per_sample import per_sample_values
from assay.native import shapes
from thinning import draws


def clouds(seed):
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(2, 12)), int(rng.integers(1, 5)))
    target = rng.normal(size=shape)
    rotation = np.linalg.qr(rng.normal(size=(shape[1], shape[1])))[0]
    return 3 * target @ rotation + 100 + rng.normal(size=shape) * 10.0 ** rng.integers(-6, 2), target


def test_procrustes_disparity_is_scipys():
    for seed in draws(200):
        pairs = [clouds(seed + k) for k in (0, 1000)]
        expected = [procrustes(*pair)[2] for pair in pairs]
        preds, target = ([torch.from_numpy(each) for each in side] for side in zip(*pairs, strict=True))
        assert float(ProcrustesDisparity()(preds, target)) == pytest.approx(np.mean(expected), rel=1e-9, abs=1e-12)
        assert float(ProcrustesDisparity(reduction="sum")(preds, target)) == pytest.approx(np.sum(expected), abs=1e-12)


def test_place_size_rotation_and_mirroring_change_nothing():
    target = np.random.default_rng(0).normal(size=(7, 3))
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    for preds in (target @ rotation, -target, 1e-200 * target, 1e200 * target, target + 1e3):
        assert float(ProcrustesDisparity()([preds], [target])) == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize(
    ("preds", "target", "error", "part"),
    [
        ([torch.ones(3, 2)], [torch.rand(3, 2)], InvalidValuesError, "sample 0.*all points of preds"),
        ([torch.rand(3, 2)], [torch.ones(3, 2) / 3], InvalidValuesError, "sample 0.*all points of the target"),
        ([torch.rand(3, 2)], [torch.rand(4, 2)], ShapeError, r"target\[0\]"),
        ([torch.rand(3)], [torch.rand(3)], ShapeError, r"preds\[0\]"),
        (torch.rand(2, 3, 2), torch.rand(2, 3, 2), ShapeError, "list"),
        ([torch.rand(3, 2) * 1j], [torch.rand(3, 2)], DtypeError, r"preds\[0\]"),
        ([torch.tensor([[math.nan], [1.0]])], [torch.rand(2, 1)], InvalidValuesError, r"preds\[0\]"),
    ],
)
def test_clouds_without_a_disparity_are_one_clear_error(preds, target, error, part):
    with pytest.raises(error, match=part):
        ProcrustesDisparity()(preds, target)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.int32])
def test_lip_vertex_error_is_its_definition(dtype):
    for seed in draws(50):
        rng = np.random.default_rng(seed)
        preds, target = (torch.from_numpy(each * 20).to(dtype) for each in rng.normal(size=(2, 5, 9, 3)))
        mouth = rng.choice(9, size=int(rng.integers(1, 9))).tolist()
        squares = (preds.double() - target.double()).square().sum(2).numpy()[:, mouth]
        found = LipVertexError(mouth_map=mouth)(preds, target)
        assert float(found) == pytest.approx(squares.max(1).mean(), rel=1e-6)
        if dtype == torch.float64:
            assert float(found) == pytest.approx(float(lip_vertex_error(preds, target, mouth)), rel=1e-12)


def test_the_bits_do_not_depend_on_the_size_of_batches_and_frames_are_samples():
    preds, target = torch.randn(2, 33, 7, 3, generator=torch.Generator().manual_seed(0))
    metric = LipVertexError(mouth_map=[1, 2, 6])
    meter = Meter(metric, stage_bytes=0)
    for k in range(33):
        meter.update(preds[k : k + 1], target[k : k + 1])
    assert torch.equal(meter.compute()["LipVertexError"], metric(preds, target))
    found = per_sample_values(metric, preds, target)
    expected = (preds - target).square().sum(2)[:, [1, 2, 6]].amax(1)
    assert torch.allclose(found.terms[found.numerator], expected)


def test_frames_that_are_not_finite_raise_where_the_mouth_is():
    preds, target = torch.zeros(3, 4, 3), torch.zeros(3, 4, 3)
    preds[1, 3, 0] = math.nan
    assert LipVertexError(mouth_map=[0, 1])(preds, target) == 0
    with pytest.raises(InvalidValuesError, match="1 of the frames"):
        LipVertexError(mouth_map=[0, 3])(preds, target)


@pytest.mark.parametrize("mouth", [[], [-1], ["a"], [0.5], 3, None])
def test_a_map_without_indices_is_one_clear_error(mouth):
    with pytest.raises(ConfigError, match="mouth_map"):
        LipVertexError(mouth_map=mouth)


@pytest.mark.parametrize(
    ("preds", "target"),
    [
        (torch.zeros(2, 4, 3), torch.zeros(2, 5, 3)),
        (torch.zeros(2, 3, 3), torch.zeros(2, 3, 3)),
        (torch.zeros(2, 4), torch.zeros(2, 4)),
        (torch.zeros(2, 4, 3), torch.zeros(3, 4, 3)),
        (torch.zeros(2, 4, 3), None),
    ],
)
def test_meshes_of_other_shapes_are_one_clear_error(preds, target):
    with pytest.raises(InputError, match=r"preds|target"):
        LipVertexError(mouth_map=[3])(preds, target)


def test_clouds_have_the_same_bits_alone_and_with_others():
    generator = torch.Generator().manual_seed(0)
    clouds = [torch.randn(size, 3, generator=generator) for size in (5, 9, 5, 5, 2)]
    others = [cloud + torch.randn(cloud.shape, generator=generator) for cloud in clouds]
    encoder = ProcrustesDisparity().encoder
    alone = [encoder.rows([cloud], [other]) for cloud, other in zip(clouds, others, strict=True)]
    assert torch.equal(encoder.rows(clouds, others), torch.cat(alone))


def odd_clouds(rng):
    """Clouds on lines and planes, with equal points, mirrored, or of very different extent in each direction."""
    points, dimensions = int(rng.integers(2, 9)), int(rng.integers(1, 6))
    flat = [rng.normal(size=(points, r)) @ rng.normal(size=(r, dimensions)) for r in rng.integers(1, dimensions + 1, 2)]
    corners = rng.integers(0, 2, (2, points, dimensions)).astype(np.float64)
    corners[:, 0], corners[:, 1] = 0, 1
    stretched = rng.normal(size=(2, points, dimensions)) * 10.0 ** rng.integers(-14, 1, (2, 1, dimensions))
    solid = rng.normal(size=(points, dimensions))
    return [flat, (solid, flat[0]), corners, stretched, (solid, -solid), (solid[:, ::-1], solid)]


def test_compiled_disparities_of_degenerate_clouds_are_scipys():
    if not shapes.takes_points(3):
        pytest.skip("needs a C compiler")
    for seed in draws(100):
        for preds, target in odd_clouds(np.random.default_rng(seed)):
            expected = procrustes(preds, target)[2]
            found, other = (each(preds[None], target[None]) for each in (shapes.disparities, aligned_disparities))
            assert float(found[0]) == pytest.approx(expected, abs=1e-12)
            assert float(found[0]) == pytest.approx(float(other[0]), abs=1e-12)


def test_without_compiled_code_the_disparities_are_the_same(monkeypatch):
    preds, target = ([torch.from_numpy(each) for each in side] for side in zip(*map(clouds, range(9)), strict=True))
    expected = float(ProcrustesDisparity()(preds, target))
    monkeypatch.setattr(shapes, "library", lambda: None)
    assert float(ProcrustesDisparity()(preds, target)) == pytest.approx(expected, abs=1e-12)
