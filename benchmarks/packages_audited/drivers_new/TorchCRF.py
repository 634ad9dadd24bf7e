"""Calls of TorchCRF."""

from collections.abc import Iterator

import torch

from assay.audit import Case
from benchmarks.packages_audited.calls import instance, labels, noise


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance("TorchCRF.CRF", noise(2, 4, 3), labels(3, 2, 4), torch.ones(2, 4, dtype=torch.bool), num_labels=3)
