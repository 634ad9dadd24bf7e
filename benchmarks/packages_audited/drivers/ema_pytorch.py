"""Calls of ema_pytorch."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import function

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function(
        "ema_pytorch.post_hoc_ema.solve_weights",
        torch.tensor([1.0, 2.0, 3.0]),
        torch.tensor([1.0, 2.0, 3.0]),
        torch.tensor([2.0]),
        torch.tensor([2.0]),
    )
