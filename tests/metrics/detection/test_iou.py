from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from assay.errors import AssayWarning, ConfigError
from assay.metrics import (
    CompleteIntersectionOverUnion,
    DistanceIntersectionOverUnion,
    GeneralizedIntersectionOverUnion,
    IntersectionOverUnion,
)
from thinning import draws

from .scenes import scenes

METRICS = {
    "iou": IntersectionOverUnion,
    "giou": GeneralizedIntersectionOverUnion,
    "diou": DistanceIntersectionOverUnion,
    "ciou": CompleteIntersectionOverUnion,
}


def pair_value(name: str, a: list[float], b: list[float]) -> float:
    """The number of a pair of boxes, side by side."""
    width, height = (max(0.0, min(a[k + 2], b[k + 2]) - max(a[k], b[k])) for k in (0, 1))
    both = width * height
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both
    iou = both / union if union else 0.0
    c = [max(a[k + 2], b[k + 2]) - min(a[k], b[k]) for k in (0, 1)]
    if name == "iou":
        return iou
    if name == "giou":
        return iou - (c[0] * c[1] - union) / (c[0] * c[1])
    distance = sum(((a[k] + a[k + 2]) / 2 - (b[k] + b[k + 2]) / 2) ** 2 for k in (0, 1))
    diou = iou - distance / (c[0] ** 2 + c[1] ** 2)
    if name == "diou":
        return diou
    first, second = (math.atan((x[2] - x[0]) / (x[3] - x[1])) for x in (a, b))
    v = 4 / math.pi**2 * (first - second) ** 2
    return diou - v * v / (1 - iou + v)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("respect_labels", [True, False])
def test_means_over_pairs_are_those_of_a_loop(name, respect_labels):
    for seed in draws(50):
        preds, target = scenes(np.random.default_rng(seed), 5, 3, 5)
        for image in preds:
            image["boxes"][:, 2:] += 0.5  # the loop divides by sizes
        threshold = (None, 0.1)[seed % 2]
        values: dict[int, list[float]] = {int(label): [] for image in target for label in image["labels"]}
        for p, t in zip(preds, target, strict=True):
            for box, label in zip(p["boxes"].tolist(), p["labels"].tolist(), strict=True):
                for other, true in zip(t["boxes"].tolist(), t["labels"].tolist(), strict=True):
                    value = pair_value(name, box, other)
                    if (label == true or not respect_labels) and (threshold is None or value >= threshold):
                        values[true].append(value)
        metric = METRICS[name](iou_threshold=threshold, respect_labels=respect_labels, class_metrics=True)
        found = metric(preds, target)
        everything = [value for each in values.values() for value in each]
        expected = {name: everything} | {f"{name}/cl_{k}": values[k] for k in sorted(values)}
        assert list(found) == list(expected)
        for key, each in expected.items():
            mean = math.fsum(each) / len(each) if each else math.nan
            assert float(found[key]) == pytest.approx(mean, rel=0, abs=1e-12, nan_ok=True), (seed, key)


@pytest.mark.parametrize("name", METRICS)
def test_equal_boxes_have_1_boxes_without_area_0_and_no_pair_nan(name):
    metric = METRICS[name]()
    image = {"boxes": torch.tensor([[1.0, 2.0, 4.0, 8.0]]), "labels": torch.tensor([0])}
    assert float(metric([image], [image])) == 1
    point = image | {"boxes": torch.tensor([[1.0, 2.0, 1.0, 2.0]])}
    assert float(metric([point], [point])) == 0
    with pytest.warns(AssayWarning, match="pair"):
        assert metric([image], [image | {"labels": torch.tensor([1])}]).isnan()


def test_pairs_are_compared_in_blocks(monkeypatch):
    preds, target = scenes(np.random.default_rng(1), 30, 2)
    expected = float(IntersectionOverUnion()(preds, target))
    monkeypatch.setattr("assay.metrics.detection.iou._PAIRS", 7)
    assert float(IntersectionOverUnion()(preds, target)) == pytest.approx(expected, rel=0, abs=1e-14)


@pytest.mark.parametrize("threshold", [50, math.nan, -2])
def test_a_threshold_that_no_pair_has_is_refused(threshold):
    with pytest.raises(ConfigError, match="iou_threshold"):
        IntersectionOverUnion(iou_threshold=threshold)


def test_the_order_of_boxes_and_their_dtype_change_no_bit():
    generator = torch.Generator().manual_seed(3)

    def scene():
        start, size = torch.rand(9, 2, generator=generator), torch.rand(9, 2, generator=generator)
        return {"boxes": torch.cat([start, start + size], 1), "labels": torch.zeros(9, dtype=torch.int64)}

    preds, target = ([scene() for _ in range(8)] for _ in range(2))
    metric = CompleteIntersectionOverUnion(class_metrics=True)
    expected = metric(preds, target)
    backwards = [{name: field.flip(0) for name, field in image.items()} for image in preds]
    wide = [{**image, "boxes": image["boxes"].double()} for image in preds]
    assert metric(backwards, target) == expected == metric(wide, target)
