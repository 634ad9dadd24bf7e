"""Calls of torchbnn."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import Net, case, named, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield case(
        "torchbnn.BayesLinear",
        lambda: named("torchbnn.BayesLinear")(prior_mu=0, prior_sigma=0.1, in_features=4, out_features=3),
        (noise(2, 4),),
    )
    yield case(
        "torchbnn.BayesConv2d",
        lambda: named("torchbnn.BayesConv2d")(
            prior_mu=0, prior_sigma=0.1, in_channels=3, out_channels=3, kernel_size=3
        ),
        (noise(2, 3, 8, 8),),
    )
    yield case(
        "torchbnn.BKLLoss",
        lambda: Net(
            lambda: torch.nn.Sequential(
                named("torchbnn.BayesLinear")(prior_mu=0, prior_sigma=0.1, in_features=4, out_features=3)
            ),
            lambda m, x: named("torchbnn.BKLLoss")()(m),
        ),
        (noise(2, 4),),
    )
