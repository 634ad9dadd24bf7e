from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.encode.boxes import BoxEncoder
from assay.encode.instance_masks import count_pixels
from assay.errors import ConfigError, DtypeError, InputError, InvalidValuesError, ShapeError
from assay.meter import Meter
from assay.metrics import MeanAveragePrecision
from assay.metrics.detection import matching
from laws import bits
from thinning import draws

from .scenes import coco_values, encoded, masked_scenes

MASK = torch.zeros(1, 6, 5, dtype=torch.bool)
MASK[:, 1:4, 2:] = True
IMAGE = {"masks": MASK, "scores": torch.tensor([0.5]), "labels": torch.tensor([1])}
RLE = encoded(MASK, compressed=False)[0]


@pytest.mark.parametrize("native", [True, False])
def test_the_numbers_of_masks_are_those_of_pycocotools(native, monkeypatch):
    if not native:
        monkeypatch.setattr(matching, "library", lambda: None)
    for seed in draws(120 if native else 20):
        rng = np.random.default_rng(seed)
        preds, target = masked_scenes(rng, int(rng.integers(1, 6)), int(rng.integers(1, 4)))
        if seed % 3 == 0:
            for image in target:
                del image["area"]
        values = MeanAveragePrecision(iou_type=("bbox", "segm"))(preds, target)
        for kind in ("bbox", "segm"):
            for name, expected in coco_values(preds, target, iou_type=kind)[0].items():
                value = float(values[f"{kind}_{name}"])
                assert value == pytest.approx(expected, rel=0, abs=1e-12, nan_ok=True), (seed, kind, name)


def test_rle_tensors_of_any_dtype_and_their_mixture_have_the_same_bits():
    preds, target = masked_scenes(np.random.default_rng(7), 12, 2)
    metric = MeanAveragePrecision(iou_type="segm", class_metrics=True)
    expected = bits(metric(preds, target))
    forms = (
        lambda masks: encoded(masks, compressed=True),
        lambda masks: encoded(masks, compressed=False),
        lambda masks: [each | {"counts": each["counts"].decode()} for each in encoded(masks, compressed=True)],
        lambda masks: masks.to(torch.uint8) * 7,
        lambda masks: masks,
    )
    for k, form in enumerate(forms):
        other = forms[(k + 1) % len(forms)]
        sides = [
            [image | {"masks": change(image["masks"])} for image in images]
            for images, change in ((preds, form), (target, other))
        ]
        for side in sides:
            for image in side:
                image.pop("boxes", None)
        assert bits(metric(*sides)) == expected
    order = np.random.default_rng(0).permutation(12)
    assert bits(metric([preds[i] for i in order], [target[i] for i in order])) == expected


@pytest.mark.devices("mps", "cuda:1", "xpu")
def test_masks_on_a_device_are_counted_there_to_the_same_integers(device, pretended, monkeypatch):
    monkeypatch.setattr("assay.encode.instance_masks._PIXELS", 300)
    for seed in range(5):
        preds, target = masked_scenes(np.random.default_rng(seed), 2, 2)
        for own, true in zip(preds, target, strict=True):
            expected = count_pixels(("preds", "target"), own["masks"], true["masks"])
            if not len(own["masks"]) or not len(true["masks"]):
                continue
            found = count_pixels(("preds", "target"), own["masks"].to(device), true["masks"].to(device))
            for name in ("detections", "truths", "both"):
                assert torch.equal(getattr(found, name).cpu(), getattr(expected, name))


def test_only_areas_and_intersections_are_kept():
    rows = BoxEncoder(iou_types=("segm",)).rows([IMAGE, IMAGE], [IMAGE | {"masks": [RLE]}, IMAGE])
    assert rows.items["pairs"]["intersection"].tolist() == [9, 9]
    assert rows.items["truths"]["mask_area"].tolist() == [9, 9]
    assert rows.nbytes < 200


def test_images_without_masks_count():
    empty = {"masks": torch.tensor([]), "scores": torch.tensor([]), "labels": torch.tensor([])}
    metric = MeanAveragePrecision(iou_type="segm")
    values = metric([empty, IMAGE, empty, IMAGE], [empty, IMAGE, IMAGE, empty | {"masks": []}])
    assert float(values["map"]) == pytest.approx(51 / 101 / 2)
    nothing = IMAGE | {"masks": torch.zeros(1, 6, 5, dtype=torch.bool)}
    assert float(metric([nothing], [nothing])["map"]) == 0


@pytest.mark.parametrize(
    ("masks", "error", "key"),
    [
        (None, ShapeError, r"\['masks'\]"),
        (MASK[0], ShapeError, r"\['masks'\]"),
        (MASK.expand(2, 6, 5), ShapeError, r"\['masks'\]"),
        (MASK.float(), DtypeError, r"\['masks'\]"),
        (MASK.movedim(1, 2), ShapeError, r"\['masks'\]"),
        ([RLE, RLE], ShapeError, r"\['masks'\]"),
        ([RLE | {"size": [5, 6]}], ShapeError, r"\['masks'\]"),
        ([RLE | {"size": "6x5"}], ShapeError, r"\['masks'\]\[0\]"),
        ([{"size": [6, 5]}], ShapeError, r"\['masks'\]\[0\]"),
        ([[1, 2]], ShapeError, r"\['masks'\]\[0\]"),
        ([RLE | {"counts": [3, 4]}], InvalidValuesError, r"\['masks'\]\[0\]\['counts'\]"),
        ([RLE | {"counts": [40, -10]}], InvalidValuesError, r"\['counts'\]"),
        ([RLE | {"counts": []}], InvalidValuesError, r"\['counts'\]"),
        ([RLE | {"counts": "é"}], InvalidValuesError, r"\['counts'\]"),
        ([RLE | {"counts": b""}], InvalidValuesError, r"\['counts'\]"),
        ([RLE | {"counts": b"oooooooooooooooooooo0"}], InvalidValuesError, r"\['counts'\]"),
        ([RLE | {"counts": 7}], InvalidValuesError, r"\['counts'\]"),
    ],
)
@pytest.mark.parametrize("side", ["preds", "target"])
def test_bad_masks_raise_with_their_position_and_nothing_is_counted(masks, error, key, side):
    meter = Meter(m=MeanAveragePrecision(iou_type="segm"))
    batches = {"preds": [IMAGE, IMAGE], "target": [IMAGE, IMAGE]}
    batches[side] = [IMAGE, IMAGE | {"masks": masks}]
    sizes = (
        error is ShapeError and side == "preds" and (masks is not None and getattr(masks, "shape", ())[1:] == (5, 6))
    )
    with pytest.raises(error, match=rf"{'target' if sizes else side}\[1\].*{key}|target\[1\]\['masks'\]"):
        meter.update(batches["preds"], batches["target"])
    assert meter.rows == 0
    with pytest.raises(InputError, match="scores"):
        meter.update([{"masks": MASK, "labels": torch.tensor([1])}], [IMAGE])
    meter.update([IMAGE], [IMAGE])
    assert float(meter.compute()["m"]["map"]) == 1


def test_masks_without_pixels_and_dictionaries_without_a_size_are_named():
    meter = Meter(m=MeanAveragePrecision(iou_type="segm"))
    nothing = IMAGE | {"masks": MASK[:, :0]}
    with pytest.raises(ShapeError, match=r"preds\[0\]\['masks'\]: got shape \(1, 0, 5\)"):
        meter.update([nothing], [nothing])
    with pytest.raises(ShapeError, match=r"got size None and keys counts"):
        meter.update([IMAGE | {"masks": [{"counts": [30]}]}], [IMAGE])


@pytest.mark.parametrize("iou_type", ["masks", (), ("segm", "bbox"), ["mask"], None])
def test_other_iou_types_are_refused(iou_type):
    with pytest.raises(ConfigError, match="iou_type"):
        MeanAveragePrecision(iou_type=iou_type)
