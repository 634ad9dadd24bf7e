"""Calls of TorchCRF."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import instance, labels, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance("TorchCRF.CRF", noise(2, 4, 3), labels(3, 2, 4), torch.ones(2, 4, dtype=torch.bool), num_labels=3)
