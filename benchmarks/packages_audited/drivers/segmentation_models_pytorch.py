"""Calls of segmentation_models_pytorch."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import case, function, instance, labels, named, noise, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in ("JaccardLoss", "DiceLoss", "TverskyLoss", "LovaszLoss", "FocalLoss"):
        for mode in ("binary", "multiclass"):
            y = labels(2, 2, 1, 8, 8) if mode == "binary" else labels(3, 2, 8, 8)
            x = noise(2, 1, 8, 8) if mode == "binary" else noise(2, 3, 8, 8)
            yield case(
                f"segmentation_models_pytorch.losses.{n}({mode})",
                lambda n=n, mode=mode: named(f"segmentation_models_pytorch.losses.{n}")(mode=mode),
                (x, y),
            )
    yield instance("segmentation_models_pytorch.losses.MCCLoss", uniform(2, 1, 8, 8), labels(2, 2, 1, 8, 8).float())
    yield instance(
        "segmentation_models_pytorch.losses.SoftCrossEntropyLoss",
        noise(2, 3, 8, 8),
        labels(3, 2, 8, 8),
        smooth_factor=0.1,
    )
    yield function(
        "segmentation_models_pytorch.metrics.get_stats",
        labels(3, 2, 8, 8),
        labels(3, 2, 8, 8),
        mode="multiclass",
        num_classes=3,
    )
