"""Calls of pytorch_ood."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import case, instance, labels, named, noise, uniform

from assay.audit import Case


def ood(name):

    def make():
        return lambda s, y: named("pytorch_ood.metrics.functional." + name)(s, y)

    return case(f"pytorch_ood.metrics.functional.{name}", make, (uniform(8), torch.tensor([0, 1, -1, 2, -1, 0, 1, -1])))


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in ("auroc", "aupr", "fpr_at_tpr", "autc", "roc_curve"):
        yield ood(n)
    yield case(
        "pytorch_ood.metrics.functional.calibration_error",
        lambda: lambda c, y: named("pytorch_ood.metrics.functional.calibration_error")(c, y),
        (uniform(20), labels(2, 20)),
    )
    yield instance("pytorch_ood.loss.DeepSVDDLoss", noise(4, 5), labels(3, 4), n_dim=5)
    yield instance(
        "pytorch_ood.loss.IILoss", noise(6, 5), torch.tensor([0, 1, 2, 0, 1, 2]), num_classes=3, n_embedding=5
    )
    yield instance("pytorch_ood.loss.CenterLoss", noise(4, 5), labels(3, 4), n_classes=3, n_dim=5)
    yield instance("pytorch_ood.loss.CACLoss", noise(4, 3), labels(3, 4), n_classes=3)
    yield instance("pytorch_ood.loss.EntropicOpenSetLoss", noise(4, 3), torch.tensor([0, 1, -1, 2]))
    yield instance("pytorch_ood.loss.OutlierExposureLoss", noise(4, 3), torch.tensor([0, 1, -1, 2]))
    yield instance("pytorch_ood.loss.EnergyRegularizedLoss", noise(4, 3), torch.tensor([0, 1, -1, 2]))
