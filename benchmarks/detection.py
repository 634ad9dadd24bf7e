"""Mean average precision of boxes and masks and panoptic quality, beside TorchMetrics with each of its backends.

TorchMetrics takes one function of torchvision, whose builds fit one build of torch each: a stand-in serves as well.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torchmetrics.detection import PanopticQuality, mean_ap

from assay.meter import Meter
from benchmarks.harness import Table, measure_once, metric, save, titled

IMAGES, TRUTHS, DETECTIONS, CLASSES = 1_000, 20, 25, 80
MASKED, HEIGHT, WIDTH = 20, 240, 320
SCENES, SIDE, CATEGORIES = 16, 128, 16
BACKENDS = {"pycocotools": "pycocotools", "faster-coco-eval": "faster_coco_eval"}
Images = list[dict[str, torch.Tensor]]


def scenes(generator: torch.Generator, images: int) -> tuple[Images, Images]:
    """Detections of which most are near a truth of the same class."""
    preds, target = [], []
    for _ in range(images):
        corners = torch.rand(TRUTHS, 2, generator=generator) * 400
        boxes = torch.cat([corners, corners + torch.rand(TRUTHS, 2, generator=generator) ** 2 * 200], 1)
        labels = torch.randint(CLASSES, (TRUTHS,), generator=generator)
        near = torch.randint(TRUTHS, (DETECTIONS,), generator=generator)
        found = boxes[near] + torch.randn(DETECTIONS, 4, generator=generator) * 8
        found[:, 2:] = torch.maximum(found[:, 2:], found[:, :2])
        wrong = torch.randint(CLASSES, (DETECTIONS,), generator=generator)
        right = torch.rand(DETECTIONS, generator=generator) < 0.8
        preds.append({"boxes": found, "labels": torch.where(right, labels[near], wrong)})
        preds[-1]["scores"] = torch.rand(DETECTIONS, generator=generator)
        target.append({"boxes": boxes, "labels": labels})
    return preds, target


def with_masks(images: Images) -> Images:
    """The ellipses in the boxes, as masks."""
    rows, columns = torch.arange(HEIGHT)[:, None], torch.arange(WIDTH)

    def mask(box: torch.Tensor) -> torch.Tensor:
        left, top, right, bottom = (box / 2).tolist()
        across = (columns - (left + right) / 2) / max(1, (right - left) / 2)
        return across.square() + ((rows - (top + bottom) / 2) / max(1, (bottom - top) / 2)).square() <= 1

    return [image | {"masks": torch.stack([mask(box) for box in image["boxes"]])} for image in images]


def segments(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Categories and instances of pixels; a fifth of the predicted segments are those of another image."""

    def spread(values: torch.Tensor) -> torch.Tensor:
        return values.repeat_interleave(SIDE // 16, 1).repeat_interleave(SIDE // 16, 2)

    grid = (SCENES, 16, 16)
    parts = [torch.randint(count, grid, generator=generator) for count in (CATEGORIES, 4)]
    target = torch.stack([spread(each) for each in parts], -1)
    other = spread(torch.rand(grid, generator=generator) < 0.2)[..., None]
    return torch.where(other, target.roll(1, 0), target), target


def own(name: str, preds: Any, target: Any, **options: Any) -> Any:
    meter = Meter(metric(name, **options))
    meter.update(preds, target)
    return next(iter(meter.compute().values()))


def theirs(kind: type, preds: Any, target: Any, **options: Any) -> Any:
    each = kind(**options)
    each.update(preds, target)
    return each.compute()


def stand_in_for_torchvision() -> None:
    """Let TorchMetrics run without torchvision."""
    operators: Any = ModuleType("torchvision.ops")
    operators.box_convert = lambda boxes, in_fmt, out_fmt: torch.cat([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1)
    sys.modules |= {"torchvision": ModuleType("torchvision"), "torchvision.ops": operators}
    mean_ap._TORCHVISION_AVAILABLE = True


def main() -> None:
    torch.set_num_threads(1)
    stand_in_for_torchvision()
    generator = torch.Generator().manual_seed(0)
    boxes, few = scenes(generator, IMAGES), scenes(generator, MASKED)
    masks = with_masks(few[0]), with_masks(few[1])
    pixels = segments(generator)
    backends = {name: module for name, module in BACKENDS.items() if importlib.util.find_spec(module)}
    kinds = {"things": range(CATEGORIES // 2), "stuffs": range(CATEGORIES // 2, CATEGORIES)}
    kinds = {name: set(each) for name, each in kinds.items()}

    def precision(data: tuple[Images, Images], iou_type: str) -> dict[str, Callable[[], Any]]:
        name = "MeanAveragePrecision"
        found: dict[str, Callable[[], Any]] = {"assay": partial(own, name, *data, iou_type=iou_type)}
        return found | {
            each: partial(theirs, mean_ap.MeanAveragePrecision, *data, iou_type=iou_type, backend=module)
            for each, module in backends.items()
        }

    calls: dict[str, dict[str, Callable[[], Any]]] = {
        "mAP of boxes": precision(boxes, "bbox"),
        "mAP of masks": precision(masks, "segm"),
        "PanopticQuality": {
            "assay": partial(own, "PanopticQuality", *pixels, **kinds),
            "TorchMetrics": partial(theirs, PanopticQuality, *pixels, **kinds),
        },
    }
    sizes = {
        "mAP of boxes": f"{IMAGES:,} images, {TRUTHS} truths, {DETECTIONS} detections, {CLASSES} classes",
        "mAP of masks": f"{MASKED} images of {HEIGHT} x {WIDTH}, {TRUTHS} truths, {DETECTIONS} detections",
        "PanopticQuality": f"{SCENES} x {SIDE} x {SIDE}, {CATEGORIES} categories",
    }
    header = ["metric", "size", "TorchMetrics with", "assay, s", "TorchMetrics, s", "times as fast"]
    table = Table(titled("Detection"), header)
    table.notes += [f"{name} is not installed." for name in BACKENDS if name not in backends]
    saved = {}
    for name, candidates in calls.items():
        candidates["assay"]()  # what is loaded at first use is no part of it
        costs = measure_once(candidates)
        saved[name] = {each: list(seconds.rounds) for each, seconds in costs.items()}
        for other in sorted(candidates.keys() - {"assay"}):
            ratio = costs[other].over(costs["assay"])
            medians = [f"{costs[each].median:.3f}" for each in ("assay", other)]
            table.rows.append([name, sizes[name], other, *medians, f"{ratio:.1f}"])
    save("detection", [table], saved)


if __name__ == "__main__":
    main()
