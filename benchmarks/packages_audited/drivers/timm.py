"""Calls of timm."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import case, function, instance, labels, named, noise, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance("timm.loss.JsdCrossEntropy", noise(6, 5), labels(5, 6))
    yield function("timm.task.evaluator._average_precision", uniform(8, 3), labels(2, 8, 3))
    yield function("timm.loss.class_weights.compute_class_weights", torch.tensor([3.0, 4.0]), 10, method="neg_pos")
    for n in (
        "LabelSmoothingCrossEntropy",
        "SoftTargetCrossEntropy",
        "BinaryCrossEntropy",
        "AsymmetricLossMultiLabel",
        "AsymmetricLossSingleLabel",
    ):
        y = labels(5, 4) if n in ("LabelSmoothingCrossEntropy", "AsymmetricLossSingleLabel") else uniform(4, 5)
        yield instance(f"timm.loss.{n}", noise(4, 5), y)
    yield case(
        "timm.models.csatv2.Dct2d", lambda: named("timm.models.csatv2.LearnableDct2d")(8), (noise(1, 3, 16, 16),)
    )
