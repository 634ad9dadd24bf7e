"""Random images with boxes, and COCO's own evaluation of them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

Image = dict[str, torch.Tensor]
HEIGHT, WIDTH = 37, 53


def masked_scenes(rng: np.random.Generator, images: int, classes: int) -> tuple[list[Any], list[Any]]:
    """The same with masks: blobs of truths, those moved by some pixels, noise and empty masks."""
    preds, target = scenes(rng, images, classes, 6)
    for own, true in zip(preds, target, strict=True):
        blobs = np.stack([_blob(rng) for _ in true["labels"]]) if len(true["labels"]) else np.zeros((0, HEIGHT, WIDTH))
        near = [_moved(rng, blobs) for _ in own["labels"]]
        own["masks"] = torch.from_numpy(np.array(near, bool).reshape(-1, HEIGHT, WIDTH))
        true["masks"] = torch.from_numpy(blobs.astype(bool))
        true["area"] = true["area"] / 20
    return preds, target


def _blob(rng: np.random.Generator) -> np.ndarray:
    (top, bottom), (left, right) = (np.sort(rng.integers(0, size + 1, 2)) for size in (HEIGHT, WIDTH))
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[top:bottom, left:right] = rng.random((bottom - top, right - left)) < 0.9
    return mask


def _moved(rng: np.random.Generator, blobs: np.ndarray) -> np.ndarray:
    if not len(blobs) or rng.random() < 0.2:
        return _blob(rng)
    return np.roll(blobs[rng.integers(len(blobs))], rng.integers(-2, 3, 2), (0, 1))


def encoded(masks: torch.Tensor, compressed: bool) -> list[dict[str, Any]]:
    """Masks as COCO's RLE dictionaries."""
    if compressed:
        coco_mask = pytest.importorskip("pycocotools.mask")
        return [coco_mask.encode(np.asfortranarray(mask.numpy().astype(np.uint8))) for mask in masks]
    found = []
    for mask in masks:
        pixels = mask.T.flatten().tolist()
        counts, inside = [0], False
        for pixel in pixels:
            if pixel is not inside:
                counts.append(0)
                inside = pixel
            counts[-1] += 1
        found.append({"size": list(mask.shape), "counts": counts})
    return found


def scenes(rng: np.random.Generator, images: int, classes: int, most: int = 10) -> tuple[list[Image], list[Image]]:
    """Detections near truths, with distinct scores, crowds, given areas, false labels and images without boxes."""
    scores = iter(rng.permutation(2 * most * images) / (2 * most * images))
    drawn = [_scene(rng, classes, most) for _ in range(images)]
    for detections, _ in drawn:
        count = len(detections["labels"])
        detections["scores"] = torch.tensor([next(scores) for _ in range(count)], dtype=torch.float64)
    return [detections for detections, _ in drawn], [truths for _, truths in drawn]


def _scene(rng: np.random.Generator, classes: int, most: int) -> tuple[Image, Image]:
    count, more = int(rng.integers(0, most + 1)), int(rng.integers(0, 2 * most + 1))
    corners, sizes = rng.random((count, 2)) * 400, rng.random((count, 2)) ** 2 * 200
    boxes, labels = np.hstack([corners, corners + sizes]), rng.integers(0, classes, count)
    truths = {"boxes": boxes, "labels": labels, "iscrowd": rng.random(count) < 0.15}
    truths["area"] = sizes.prod(1) * rng.random(count)
    near = rng.integers(0, count, more) if count else np.zeros(0, int)
    found = boxes[near] + rng.normal(size=(len(near), 4)) * 8 if count else rng.random((more, 4)) * 200
    found[:, 2:] = np.maximum(found[:, 2:], found[:, :2])
    wrong = rng.integers(0, classes, len(found))
    told = np.where(rng.random(len(found)) < 0.8, labels[near], wrong) if count else wrong
    return (
        {"boxes": torch.from_numpy(found), "labels": torch.from_numpy(told)},
        {name: torch.from_numpy(np.asarray(value)) for name, value in truths.items()},
    )


def coco_values(
    preds: Sequence[Image],
    target: Sequence[Image],
    iou_thresholds: Sequence[float] | None = None,
    rec_thresholds: Sequence[float] | None = None,
    max_detection_thresholds: Sequence[int] = (1, 10, 100),
    iou_type: str = "bbox",
) -> tuple[dict[str, float], dict[int, tuple[float, float]]]:
    """What pycocotools computes: the means, and for each class its average precision and recall; NaN for -1."""
    cocoeval = pytest.importorskip("pycocotools.cocoeval")
    classes = sorted({int(label) for image in [*preds, *target] for label in image["labels"]})
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = cocoeval.COCOeval(*(_coco(each, classes, iou_type) for each in (target, preds)), iou_type)
        if iou_thresholds is not None:
            evaluation.params.iouThrs = np.array(iou_thresholds)
        if rec_thresholds is not None:
            evaluation.params.recThrs = np.array(rec_thresholds)
        evaluation.params.maxDets = list(max_detection_thresholds)
        evaluation.evaluate()
        evaluation.accumulate()
    precision, recall = evaluation.eval["precision"], evaluation.eval["recall"]
    values = {"map": _mean(precision[..., 0, -1])}
    for iou in (0.5, 0.75):
        values[f"map_{round(100 * iou)}"] = _mean(precision[evaluation.params.iouThrs == iou][..., 0, -1])
    for area, name in enumerate(("small", "medium", "large"), 1):
        values[f"map_{name}"], values[f"mar_{name}"] = _mean(precision[..., area, -1]), _mean(recall[..., area, -1])
    values |= {f"mar_{most}": _mean(recall[..., 0, k]) for k, most in enumerate(max_detection_thresholds)}
    of_class = {c: (_mean(precision[:, :, k, 0, -1]), _mean(recall[:, k, 0, -1])) for k, c in enumerate(classes)}
    return values, of_class


def _mean(values: np.ndarray) -> float:
    values = values[values > -1]
    return float(values.mean()) if values.size else float("nan")


def _coco(images: Sequence[Image], classes: Sequence[int], iou_type: str) -> Any:
    coco = pytest.importorskip("pycocotools.coco").COCO()
    annotations: list[dict[str, Any]] = []
    for k, image in enumerate(images):
        for row, label in enumerate(image["labels"].tolist()):
            left, top, right, bottom = image["boxes"][row].double().tolist()
            area = (right - left) * (bottom - top)
            if "masks" in image and (iou_type == "segm" or "scores" not in image):
                area = int(image["masks"][row].sum())
            area = float(image["area"][row]) if "area" in image else area
            annotation = {"id": len(annotations) + 1, "image_id": k, "category_id": label, "area": area}
            annotation |= {"bbox": [left, top, right - left, bottom - top]}
            annotation |= {"iscrowd": int(image["iscrowd"][row]) if "iscrowd" in image else 0}
            if "masks" in image:
                annotation["segmentation"] = encoded(image["masks"][row : row + 1], True)[0]
            if "scores" in image:
                annotation["score"] = float(image["scores"][row])
            annotations.append(annotation)
    named = [{"id": label} for label in classes]
    coco.dataset = {
        "images": [{"id": k, "height": HEIGHT, "width": WIDTH} for k in range(len(images))],
        "annotations": annotations,
        "categories": named,
    }
    coco.createIndex()
    return coco
