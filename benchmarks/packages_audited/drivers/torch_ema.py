"""Calls of torch_ema."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import Net, case, named, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield case(
        "torch_ema.ExponentialMovingAverage",
        lambda: Net(
            lambda: torch.nn.Linear(4, 4),
            lambda m, x: (lambda e: (m(x).sum().backward(), e.update(), e.shadow_params[0])[2])(
                named("torch_ema.ExponentialMovingAverage")(m.parameters(), 0.9)
            ),
        ),
        (noise(2, 4),),
    )
