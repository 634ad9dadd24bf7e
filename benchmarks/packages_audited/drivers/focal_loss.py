"""Calls of focal_loss."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import instance, labels, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance(
        "focal_loss.focal_loss.FocalLoss",
        uniform(8, 3).softmax(1),
        labels(3, 8),
        gamma=2.0,
        weights=torch.tensor([1.0, 2.0, 1.0]),
    )
