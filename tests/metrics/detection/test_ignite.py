"""Average precision beside Ignite's, which differs by its recall thresholds only: they are rounded to float32."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
import torch

from assay.metrics import MeanAveragePrecision

pytest.importorskip("ignite")


@pytest.fixture(autouse=True)
def torchvision(monkeypatch):
    """The two functions of torchvision that Ignite takes; the library itself is not needed for them."""

    def area(boxes):
        return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])

    def inter_union(a, b):
        sides = torch.min(a[:, None, 2:], b[:, 2:]) - torch.max(a[:, None, :2], b[:, :2])
        both = sides.clamp(min=0).prod(-1)
        return both, area(a)[:, None] + area(b) - both

    for name in ("torchvision", "torchvision.ops", "torchvision.ops.boxes"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    boxes = sys.modules["torchvision.ops.boxes"]
    boxes.box_area, boxes._box_inter_union = area, inter_union


def ignite(preds, target, thresholds=None):
    from ignite.metrics.vision.object_detection_average_precision_recall import ObjectDetectionAvgPrecisionRecall

    metric = ObjectDetectionAvgPrecisionRecall(num_classes=3, rec_thresholds=thresholds)
    renamed = [
        [{"bbox" if key == "boxes" else key: each[key] for key in each} for each in side] for side in (preds, target)
    ]
    metric.update(tuple(renamed))
    return metric.compute()


def images(seed):
    generator = torch.Generator().manual_seed(seed)
    preds, target = [], []
    for count in torch.randint(1, 8, (6,), generator=generator).tolist():
        corner = 200 * torch.rand(count, 2, generator=generator)
        boxes = torch.cat([corner, corner + 8 + 120 * torch.rand(count, 2, generator=generator)], 1)
        labels = torch.randint(0, 3, (count,), generator=generator)
        moved = boxes + 3 * torch.rand(count, 4, generator=generator)
        target.append({"boxes": boxes, "labels": labels})
        preds.append({"boxes": moved, "labels": labels, "scores": torch.rand(count, generator=generator)})
    return preds, target


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@pytest.mark.parametrize("seed", range(5))
def test_the_values_are_those_of_ignite_with_thresholds_in_float64(seed):
    preds, target = images(seed)
    value = MeanAveragePrecision()(preds, target)
    precision, recall = ignite(preds, target, torch.from_numpy(np.linspace(0, 1, 101)))
    assert (float(value["map"]), float(value["mar_100"])) == pytest.approx((precision, recall), abs=1e-12)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_ignite_takes_another_step_at_a_recall_of_six_tenths():
    box = torch.tensor([[0.0, 0, 40, 40]])
    target = [{"boxes": box, "labels": torch.tensor([0])}] * 10
    preds = [
        {"boxes": box + 100 * (k >= 6), "labels": torch.tensor([0]), "scores": torch.tensor([0.9 - k / 100])}
        for k in range(10)
    ]
    assert float(MeanAveragePrecision()(preds, target)["map"]) == pytest.approx(61 / 101, abs=1e-12)
    assert ignite(preds, target)[0] == pytest.approx(60 / 101, abs=1e-12)
