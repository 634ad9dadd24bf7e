"""Metrics of masks against their definitions, pixel by pixel, and TorchMetrics where that is right."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torchmetrics.functional.segmentation as torchmetrics_segmentation
from scipy.spatial.distance import cdist

from assay.errors import AssayWarning, ConfigError, DtypeError, InputError, InvalidValuesError, ShapeError
from assay.meter import Meter
from assay.metrics import (
    AverageSurfaceDistance,
    DiceScore,
    GeneralizedDiceScore,
    HausdorffDistance,
    MeanDice,
    MeanIoU,
    SurfaceDice,
)
from thinning import draws

CLASSES = 3
Array = np.ndarray


def drawn(seed: int, shape: tuple[int, ...] = (3, 7, 8)) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, CLASSES, shape), rng.integers(0, rng.integers(1, CLASSES + 1), shape)


def surface(mask: Array, spacing: tuple[float, ...]) -> Array:
    """The coordinates of the pixels of a mask that have a neighbour outside of it."""
    padded = np.pad(mask, 1)
    inside = np.ones_like(mask)
    for axis in range(mask.ndim):
        for step in (-1, 1):
            inside &= np.roll(padded, step, axis)[(slice(1, -1),) * mask.ndim]
    return np.argwhere(mask & ~inside) * np.array(spacing)


def both_ways(preds: Array, target: Array, spacing: tuple[float, ...]) -> tuple[Array, Array]:
    apart = cdist(surface(preds, spacing), surface(target, spacing))
    return apart.min(1), apart.min(0)


SURFACE = {
    HausdorffDistance: lambda forth, back: max(forth.max(), back.max()),
    AverageSurfaceDistance: lambda forth, back: np.concatenate([forth, back]).mean(),
    SurfaceDice: lambda forth, back: (np.concatenate([forth, back]) <= 1).mean(),
}
every_surface = pytest.mark.parametrize("kind", SURFACE)


@every_surface
@pytest.mark.parametrize("spacing", [None, (0.5, 2.0), (1.5, 1.0, 0.25)])
def test_distances_of_surfaces_are_their_definition(kind, spacing):
    shape = (2, 5, 6, 4) if spacing and len(spacing) == 3 else (2, 7, 8)
    for seed in draws(40):
        preds, target = drawn(seed, shape)
        expected = []
        for own, true in zip(preds, target, strict=True):
            for label in range(1, CLASSES):
                masks = own == label, true == label
                if masks[0].any() and masks[1].any():
                    ways = both_ways(*masks, spacing or (1.0,) * own.ndim)
                    expected.append(SURFACE[kind](*ways))
        if expected:
            metric = kind(num_classes=CLASSES, spacing=spacing, ignore_missing=True)
            assert float(metric(list(preds), list(target))) == pytest.approx(np.mean(expected), rel=1e-12)


def test_the_percentile_is_of_each_way():
    for seed in draws(40):
        preds, target = (each[0] > 0 for each in drawn(seed, (1, 12, 13)))
        if target.any():
            forth, back = both_ways(preds, target, (1.0, 1.0))
            expected = max(np.percentile(forth, 95), np.percentile(back, 95))
            pair = [[mask.astype(np.int64)] for mask in (preds, target)]
            assert float(HausdorffDistance(num_classes=2, percentile=95)(*pair)) == pytest.approx(expected, rel=1e-12)
            one_way = HausdorffDistance(num_classes=2, directed=True)(*pair)
            assert float(one_way) == pytest.approx(forth.max(), rel=1e-12)


@every_surface
def test_an_empty_mask_is_counted_as_documented(kind):
    empty, some = torch.zeros(4, 4, dtype=torch.long), torch.eye(4, dtype=torch.long)
    absent = 0 if kind is SurfaceDice else math.inf
    with pytest.warns(AssayWarning):
        assert kind(num_classes=2)([empty], [empty]).isnan()
    metric = kind(num_classes=2)
    if absent:
        with pytest.warns(AssayWarning, match="infinite"):
            assert metric([empty, some], [some, some]) == absent
    else:
        assert metric([empty, some], [some, some]) == 0.5
    found = kind(num_classes=2, ignore_missing=True)([empty, some, empty], [some, some, empty])
    assert found == (1 if kind is SurfaceDice else 0)
    by_class = kind(num_classes=3, ignore_missing=True, per_class=True)([some], [some])
    assert by_class[0] == (1 if kind is SurfaceDice else 0)
    assert by_class[1].isnan()


@every_surface
def test_bad_masks_are_one_clear_line(kind):
    metric, mask = kind(num_classes=2, spacing=(1.0, 1.0)), torch.ones(3, 3, dtype=torch.long)
    for wrong, error in (
        (mask.float(), DtypeError),
        (mask + 1j, DtypeError),
        (mask + 1, InvalidValuesError),
        (mask - 2, InvalidValuesError),
        (mask[0], ShapeError),
        (mask[:0], ShapeError),
        (mask[:2], ShapeError),
        (None, ShapeError),
        ([1, 0], ShapeError),
    ):
        with pytest.raises(error, match=r"(preds|target)\[1\]: got .*, expected "):
            metric([mask, mask], [mask, wrong])
    with pytest.raises(ShapeError, match=r"preds\[0\]: got shape \(0, 3\), expected one pixel or more"):
        metric([mask[:0]], [mask[:0]])
    with pytest.raises(InputError, match="target"):
        metric([mask])
    for name, argument in (("spacing", (0.0, 1.0)), ("spacing", ()), ("num_classes", 1)):
        with pytest.raises(ConfigError, match=name):
            kind(**{"num_classes": 2, name: argument})


@pytest.mark.devices("cuda:1")
def test_a_mask_on_a_device_is_copied_once(pretended, device):
    masks = [torch.ones(3, 3, dtype=torch.long, device=device) for _ in range(4)]
    pretended.events.clear()
    assert HausdorffDistance(num_classes=2)(masks[:2], masks[2:]) == 0
    assert [event.kind for event in pretended.events].count("copy") == len(masks)


# --- overlap ---------------------------------------------------------------------------------------------------------


def quotients(preds: Array, target: Array, dice: bool) -> list[float]:
    found = []
    for label in range(CLASSES):
        own, true = preds == label, target == label
        both, total = (own & true).sum(), own.sum() + true.sum()
        if total:
            found.append(2 * both / total if dice else both / (total - both))
    return found


@pytest.mark.parametrize("dice", [True, False])
def test_overlap_is_its_definition_image_by_image(dice):
    kind = MeanDice if dice else MeanIoU
    for seed in draws(200):
        preds, target = drawn(seed)
        pair = [torch.from_numpy(each) for each in (preds, target)]
        expected = np.mean([np.mean(quotients(*each, dice)) for each in zip(preds, target, strict=True)])
        assert float(kind(num_classes=CLASSES)(*pair)) == pytest.approx(expected, abs=1e-12)
        one_hot = [torch.nn.functional.one_hot(each, CLASSES).movedim(-1, 1) for each in pair]
        again = kind(num_classes=CLASSES, input_format="one-hot")(*one_hot)
        assert torch.equal(again, kind(num_classes=CLASSES)(*pair))


@pytest.mark.parametrize("background", [True, False])
def test_iou_of_each_image_is_torchmetrics(background):
    generator = torch.Generator().manual_seed(0)
    preds, target = (torch.randint(0, 4, (5, 9, 9), generator=generator) for _ in range(2))
    theirs = torchmetrics_segmentation.mean_iou(
        preds, target, num_classes=4, include_background=background, input_format="index"
    )
    ours = MeanIoU(num_classes=4, include_background=background)
    assert float(ours(preds, target)) == pytest.approx(float(theirs.mean()), rel=1e-6)


@pytest.mark.parametrize("weight_type", ["square", "simple", "linear"])
def test_generalized_dice_of_an_image_is_torchmetrics(weight_type):
    generator = torch.Generator().manual_seed(1)
    preds, target = (torch.randint(0, 4, (5, 9, 9), generator=generator) for _ in range(2))
    ours = GeneralizedDiceScore(num_classes=4, weight_type=weight_type)
    theirs = torchmetrics_segmentation.generalized_dice_score(
        preds, target, num_classes=4, weight_type=weight_type, input_format="index"
    )
    for k in range(5):
        assert float(ours(preds[k : k + 1], target[k : k + 1])) == pytest.approx(float(theirs[k]), rel=1e-6)
    assert float(ours(preds, target)) == pytest.approx(float(theirs.mean()), rel=1e-6)


def test_dice_of_all_pixels_is_dice_score():
    preds, target = (torch.from_numpy(each[:1]) for each in drawn(3))
    assert float(MeanDice(num_classes=CLASSES)(preds, target)) == pytest.approx(
        float(DiceScore(num_classes=CLASSES)(preds, target)), abs=1e-12
    )


def test_a_class_counts_in_the_images_that_have_it():
    preds, target = torch.tensor([[0, 1], [0, 0], [0, 0]]), torch.tensor([[0, 1], [0, 1], [0, 0]])
    found = MeanIoU(num_classes=3, per_class=True)(preds, target)
    assert found[:2].tolist() == [pytest.approx((1 + 0.5 + 1) / 3), 0.5]
    assert found[2].isnan()
    assert MeanIoU(num_classes=3, include_background=False)(preds, target) == 0.5
    with pytest.warns(AssayWarning):
        assert MeanIoU(num_classes=3, include_background=False)(preds[2:], target[2:]).isnan()


def test_labels_out_of_range_raise_and_shapes_are_checked():
    metric, preds = MeanIoU(num_classes=2), torch.zeros(3, 4, dtype=torch.long)
    for wrong in (2, -1):
        with pytest.raises(InvalidValuesError, match=r"1 .*from 0 to 1"):
            metric(preds, preds.clone().index_fill_(0, torch.tensor([1]), wrong))
    for target in (preds[:, :3], preds.float(), preds + 1j, preds[:2]):
        with pytest.raises(InputError, match=r": got .*, expected "):
            metric(preds, target)
    with pytest.raises(ShapeError, match="Resize both to one size"):
        metric(preds, preds[:, :3])
    with pytest.raises(ShapeError, match=r"preds.argmax\(1\)"):
        metric(torch.zeros(3, 2, 4), preds)
    for options in ({"num_classes": 1}, {"num_classes": 2, "input_format": "mixed"}):
        with pytest.raises(ConfigError):
            MeanIoU(**options)
    one = torch.ones(1, 1, 2, 2, dtype=torch.int64)
    assert float(MeanIoU(num_classes=1, input_format="one-hot", include_background=True)(one, one)) == 1
    with pytest.raises(ConfigError, match="num_classes"):
        MeanIoU(num_classes=1, input_format="one-hot", include_background=False)
    with pytest.raises(ConfigError, match="weight_type"):
        GeneralizedDiceScore(num_classes=2, weight_type="cube")


def test_images_of_different_sizes_count_once_each():
    meter = Meter(MeanIoU(num_classes=2))
    for size in (3, 50):
        meter.update(torch.ones(1, size, dtype=torch.long), torch.full((1, size), int(size > 3)))
    assert float(*meter.compute().values()) == 0.5


def test_hausdorff_of_square_masks_is_torchmetrics_which_misplaces_distances_in_others():
    theirs = torchmetrics_segmentation.hausdorff_distance
    for seed in draws(20):
        for own, true in zip(*drawn(seed, (2, 8, 8)), strict=True):
            pair = [torch.from_numpy((each == 1).astype(np.int64)) for each in (own, true)]
            if pair[0].any() and pair[1].any():
                expected = float(theirs(*(each[None] for each in pair), num_classes=2, input_format="index"))
                found = HausdorffDistance(num_classes=2)(*([each] for each in pair))
                assert float(found) == pytest.approx(expected)
    wide = [torch.tensor([[0, 0, 0, 0, 1], [0] * 5]), torch.tensor([[1, 0, 0, 0, 0], [0] * 5])]
    assert float(HausdorffDistance(num_classes=2)(*([each] for each in wide))) == 4
    misplaced = float(theirs(*(each[None] for each in wide), num_classes=2, input_format="index"))
    assert misplaced == pytest.approx(26**0.5)


@pytest.mark.parametrize("kind", [MeanIoU, MeanDice])
def test_masks_of_a_narrow_dtype_may_have_more_classes_than_it_holds(kind):
    masks = [torch.randint(0, 256, (2, 6, 6), generator=torch.Generator().manual_seed(k)) for k in range(2)]
    expected = kind(num_classes=300)(*masks)
    assert kind(num_classes=300)(*(mask.to(torch.uint8) for mask in masks)) == expected


def test_one_way_distances_change_when_the_masks_are_exchanged():
    a, b = torch.zeros(5, 5, dtype=torch.int64), torch.zeros(5, 5, dtype=torch.int64)
    a[0, 0], b[0, 0], b[4, 4] = 1, 1, 1
    metric = HausdorffDistance(num_classes=2, directed=True)
    assert float(metric([a], [b])) == 0
    assert float(metric([b], [a])) == pytest.approx(32**0.5)
