"""LVIS's rules against a loop that follows them one by one and, where it is installed, against the package lvis."""

from __future__ import annotations

import logging
import sys
from types import ModuleType

import numpy as np
import pytest
import torch

from assay.errors import ConfigError, DtypeError
from assay.meter import Meter
from assay.metrics import MeanAveragePrecision
from assay.metrics.detection import curves, matching
from thinning import draws

CLASSES = 5
GROUPS = {"rare": (0,), "common": (1, 2), "frequent": (3, 4)}
KEYS = ("neg_category_ids", "not_exhaustive_category_ids")


def scenes(rng):
    preds, target = [], []
    for _ in range(int(rng.integers(1, 7))):
        count, found = int(rng.integers(0, 6)), int(rng.integers(0, 12))
        boxes = np.concatenate([rng.random((count, 2)) * 200, 1 + rng.random((count, 2)) ** 2 * 150], 1)
        labels, near = rng.integers(0, CLASSES, count), rng.integers(0, max(count, 1), found)
        own = boxes[near] + rng.normal(size=(found, 4)) * 4 if count else rng.random((found, 4)) * 100
        wrong = rng.integers(0, CLASSES, found)
        guess = np.where(rng.random(found) < 0.7, labels[near], wrong) if count else wrong
        preds.append({"boxes": np.abs(own) + 0.1, "scores": rng.random(found), "labels": guess})
        target.append({"boxes": boxes, "labels": labels, "area": boxes[:, 2:].prod(1) * rng.uniform(0.5, 1, count)})
        for key, choices in zip(KEYS, (np.setdiff1d(np.arange(CLASSES), labels), np.unique(labels)), strict=True):
            target[-1][key] = rng.permutation(choices)[: int(rng.integers(0, 4))]
    return preds, target


def iou(a, b):
    width, height = np.minimum(a[:2] + a[2:], b[:2] + b[2:]) - np.maximum(a[:2], b[:2])
    both = max(width, 0) * max(height, 0)
    return both / (a[2] * a[3] + b[2] * b[3] - both)


def of_class(preds, target, label, most, threshold, low=0.0, high=1e10):
    """The average precision and the recall of a class; NaN where it has no truth."""
    steps, positives = [], 0
    for own, true in zip(preds, target, strict=True):
        truths = [
            (low <= a <= high, b)
            for b, a, k in zip(true["boxes"], true["area"], true["labels"], strict=True)
            if k == label
        ]
        truths.sort(key=lambda truth: not truth[0])
        positives += sum(counted for counted, _ in truths)
        taken = set()
        for k in np.argsort(-own["scores"])[:most]:
            if own["labels"][k] != label or (not truths and label not in true[KEYS[0]]):
                continue
            box, best, place = own["boxes"][k], min(threshold, 1 - 1e-10), None
            for g, (counted, other) in enumerate(truths):
                if g in taken or (place is not None and truths[place][0] and not counted):
                    continue
                if iou(box, other) >= best:
                    best, place = iou(box, other), g
            taken.add(place)
            if place is None:
                counts = low <= box[2] * box[3] <= high and label not in true[KEYS[1]]
            else:
                counts = truths[place][0]
            if counts:
                steps.append((own["scores"][k], place is not None))
    if not positives:
        return np.nan, np.nan
    hits = np.cumsum([hit for _, hit in sorted(steps, reverse=True)])
    recall, precision = hits / positives, hits / np.arange(1, len(hits) + 1)
    at = [precision[recall >= r].max(initial=0) for r in np.linspace(0, 1, 101)]
    return np.mean(at), recall.max(initial=0)


def mean(values):
    there = [value for value in values if not np.isnan(value)]
    return np.mean(there) if there else np.nan


def tensors(images):
    return [{name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in image.items()} for image in images]


@pytest.mark.parametrize("native", [True, False])
def test_the_numbers_follow_the_rules_of_lvis(native, monkeypatch):
    if not native:
        for module in (matching, curves):
            monkeypatch.setattr(module, "library", lambda: None)
    for seed in draws(30 if native else 10):
        rng = np.random.default_rng(seed)
        preds, target = scenes(rng)
        most, options = int(rng.choice([3, 300])), {f"{name}_classes": labels for name, labels in GROUPS.items()}
        options |= {"iou_thresholds": (0.5, 0.75), "box_format": "xywh", "federated": True}
        metric = MeanAveragePrecision(max_detection_thresholds=(most,), **options)
        values = metric(tensors(preds), tensors(target))
        found = {k: [of_class(preds, target, k, most, iou) for iou in (0.5, 0.75)] for k in range(CLASSES)}
        expected = {f"map_{name}": mean([ap for k in labels for ap, _ in found[k]]) for name, labels in GROUPS.items()}
        expected["map"] = mean([ap for each in found.values() for ap, _ in each])
        expected[f"mar_{most}"] = mean([recall for each in found.values() for _, recall in each])
        small = [of_class(preds, target, k, most, iou, 0, 1024) for k in range(CLASSES) for iou in (0.5, 0.75)]
        expected |= {"map_small": mean([ap for ap, _ in small]), "mar_small": mean([recall for _, recall in small])}
        for name, value in expected.items():
            assert float(values[name]) == pytest.approx(value, abs=1e-12, nan_ok=True), (seed, name)


def test_masks_of_detections_that_do_not_count_are_left_out():
    preds, target = (tensors(each) for each in scenes(np.random.default_rng(2)))
    for image in (*preds, *target):
        left, top, width, height = image["boxes"].round().unbind(1)
        row, column = torch.arange(400)[:, None], torch.arange(400)
        across = (left[:, None, None] <= column) & (column < (left + width)[:, None, None])
        image["masks"] = across & (top[:, None, None] <= row) & (row < (top + height)[:, None, None])
        image["boxes"] = image["boxes"].round()
    options = {"federated": True, "max_detection_thresholds": (5,), "box_format": "xywh"}
    boxes, masks = (MeanAveragePrecision(iou_type=kind, **options)(preds, target) for kind in ("bbox", "segm"))
    assert {name: float(each) for name, each in boxes.items()} == pytest.approx(
        {name: float(each) for name, each in masks.items()}, nan_ok=True
    )
    assert 0 < float(boxes["map"]) < 1


def test_without_lists_only_classes_of_truths_are_counted():
    box = torch.tensor([[10.0, 10.0, 60.0, 60.0]])
    preds = {"boxes": box.repeat(2, 1), "scores": torch.tensor([0.9, 0.5]), "labels": torch.tensor([2, 1])}
    metric = MeanAveragePrecision(federated=True, max_detection_thresholds=(300,), class_metrics=True)
    values = metric([preds, preds], [{"boxes": box, "labels": torch.tensor([1])}] * 2)
    assert values["classes"].tolist() == [1]
    assert float(values["map"]) == 1


def test_wrong_arguments_raise():
    with pytest.raises(ConfigError, match="max_detection_thresholds"):
        MeanAveragePrecision(federated=True)
    with pytest.raises(ConfigError, match="average"):
        MeanAveragePrecision(average="micro", rare_classes=(1,))
    image = {"boxes": torch.zeros(1, 4), "labels": torch.tensor([1]), "scores": torch.ones(1)}
    meter = Meter(MeanAveragePrecision(federated=True, max_detection_thresholds=(300,)))
    with pytest.raises(DtypeError, match=r"target\[0\]\['neg_category_ids'\]"):
        meter.update([image], [image | {"neg_category_ids": torch.tensor([0.5])}])


def in_lvis(preds, target, iou_type, most):
    """What the package lvis computes for the same images."""
    lvis = pytest.importorskip("lvis")
    coco_mask = pytest.importorskip("pycocotools.mask")

    def annotations(images, kind):
        found = []
        for k, image in enumerate(images):
            for row, label in enumerate(image["labels"].tolist()):
                mask = coco_mask.encode(np.asfortranarray(image["masks"][row].numpy().astype(np.uint8)))
                each = {"id": len(found) + 1, "image_id": k, "category_id": label, "segmentation": mask}
                each["area"] = float(image["area"][row]) if kind == "truths" else float(coco_mask.area(mask))
                if iou_type == "bbox":
                    each["bbox"] = image["boxes"][row].tolist()
                found.append(each | ({"score": float(image["scores"][row])} if kind == "detections" else {}))
        return found

    truth = lvis.LVIS.__new__(lvis.LVIS)
    truth.logger = logging.getLogger("lvis")
    frequency = {label: name[0] for name, labels in GROUPS.items() for label in labels}
    truth.dataset = {
        "images": [
            {"id": k, "height": 400, "width": 400} | {key: image[key].tolist() for key in KEYS}
            for k, image in enumerate(target)
        ],
        "annotations": annotations(target, "truths"),
        "categories": [{"id": label, "frequency": frequency[label]} for label in range(CLASSES)],
    }
    truth._create_index()
    found = lvis.LVISResults(truth, annotations(preds, "detections"), max_dets=most)
    evaluation = lvis.LVISEval(truth, found, iou_type)
    evaluation.params.max_dets = most
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    names = {"AP": "map", "AP50": "map_50", "APs": "map_small", "APm": "map_medium", "APl": "map_large"}
    names |= {"APr": "map_rare", "APc": "map_common", "APf": "map_frequent", f"AR@{most}": f"mar_{most}"}
    results = evaluation.get_results()
    return {own: np.nan if results[name] == -1 else results[name] for name, own in names.items()}


def with_masks(images, rng):
    """The images with masks that are the boxes, of which some pixels are missing."""
    row, column = torch.arange(400)[:, None], torch.arange(400)
    for image in images:
        image["boxes"] = image["boxes"].round()
        left, top, width, height = (each[:, None, None] for each in image["boxes"].unbind(1))
        inside = (left <= column) & (column < left + width) & (top <= row) & (row < top + height)
        image["masks"] = inside & torch.from_numpy(rng.random(inside.shape) < 0.95)
    return images


@pytest.mark.filterwarnings("ignore:The 'warn' method:DeprecationWarning")
@pytest.mark.parametrize("iou_type", ["bbox", "segm"])
def test_boxes_and_masks_are_those_of_the_package_lvis(iou_type, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", ModuleType("cv2"))  # with which lvis draws
    monkeypatch.setattr(np, "float", float, raising=False)  # a name of older NumPys
    for seed in draws(12):
        rng = np.random.default_rng(seed)
        preds, target = (with_masks(tensors(each), rng) for each in scenes(rng))
        if not sum(len(image["labels"]) for image in preds):
            continue
        most, groups = int(rng.choice([3, 300])), {f"{name}_classes": labels for name, labels in GROUPS.items()}
        options = {"iou_type": iou_type, "box_format": "xywh", "max_detection_thresholds": (most,), "federated": True}
        values = MeanAveragePrecision(**options, **groups)(preds, target)
        for name, value in in_lvis(preds, target, iou_type, most).items():
            assert float(values[name]) == pytest.approx(value, abs=1e-12, nan_ok=True), (seed, name)
