"""SSIM of images and the Hausdorff distance of masks, beside TorchMetrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torchmetrics.image
import torchmetrics.segmentation

from assay.meter import Meter
from benchmarks.harness import Table, measure_once, metric, save, titled

IMAGES, MASKS = (32, 3, 128, 128), (4, 128, 128)
CLASSES = 5


def _blobs(generator: torch.Generator) -> torch.Tensor:
    """Masks with connected regions of each class."""
    coarse = torch.rand(MASKS[0], CLASSES, 8, 8, generator=generator)
    return torch.nn.functional.interpolate(coarse, MASKS[1:], mode="bilinear").argmax(1)


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    target = torch.rand(IMAGES, generator=generator)
    preds = (target + torch.randn(IMAGES, generator=generator) / 10).clamp(0, 1)
    masks = _blobs(generator), _blobs(generator)

    def own(name: str, preds: Any, target: Any, **options: Any) -> torch.Tensor:
        meter = Meter(metric(name, **options))
        meter.update(preds, target)
        return next(iter(meter.compute().values()))

    def theirs(kind: type, preds: torch.Tensor, target: torch.Tensor, **options: Any) -> torch.Tensor:
        each = kind(**options)
        each.update(preds, target)
        return each.compute()

    similarity = torchmetrics.image.StructuralSimilarityIndexMeasure
    hausdorff = torchmetrics.segmentation.HausdorffDistance
    lists = [list(side) for side in masks]
    calls: dict[str, dict[str, Callable[[], Any]]] = {
        "SSIM": {
            "assay": partial(own, "StructuralSimilarityIndexMeasure", preds, target, data_range=1),
            "TorchMetrics": partial(theirs, similarity, preds, target, data_range=1.0),
        },
        "Hausdorff distance": {
            "assay": partial(own, "HausdorffDistance", *lists, num_classes=CLASSES),
            "TorchMetrics": partial(theirs, hausdorff, *masks, num_classes=CLASSES, input_format="index"),
        },
    }
    sizes = {"SSIM": IMAGES, "Hausdorff distance": (*MASKS, CLASSES - 1)}
    table = Table(titled("Images and masks"), ["metric", "size", "assay, s", "TorchMetrics, s", "times as fast"])
    saved = {}
    for name, pair in calls.items():
        pair["assay"]()  # what is loaded at first use is no part of it
        costs = measure_once(pair)
        ratio = 1 / costs["assay"].over(costs["TorchMetrics"])
        medians = [f"{costs[each].median:.3f}" for each in ("assay", "TorchMetrics")]
        table.rows.append([name, " x ".join(map(str, sizes[name])), *medians, f"{ratio:.1f}"])
        saved[name] = {each: list(cost.rounds) for each, cost in costs.items()}
    save("image", [table], saved)


if __name__ == "__main__":
    main()
