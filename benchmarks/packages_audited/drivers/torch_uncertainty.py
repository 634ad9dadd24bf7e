"""Calls of torch_uncertainty."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import case, labels, named, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield case(
        "torch_uncertainty.layers.MaskedLinear",
        lambda: named("torch_uncertainty.layers.MaskedLinear")(8, 4, num_estimators=2, scale=2.0),
        (noise(4, 8),),
    )
    yield case(
        "torch_uncertainty.layers.PackedLinear",
        lambda: named("torch_uncertainty.layers.PackedLinear")(8, 4, alpha=2, num_estimators=2),
        (noise(4, 8),),
    )
    yield case(
        "torch_uncertainty.layers.BatchLinear",
        lambda: named("torch_uncertainty.layers.BatchLinear")(8, 4, num_estimators=2),
        (noise(4, 8),),
    )
    yield case(
        "torch_uncertainty.layers.BayesLinear",
        lambda: named("torch_uncertainty.layers.BayesLinear")(8, 4),
        (noise(4, 8),),
    )
    yield case(
        "torch_uncertainty.losses.FocalLoss",
        lambda: named("torch_uncertainty.losses.FocalLoss")(gamma=2.0),
        (noise(4, 3), labels(3, 4)),
    )
