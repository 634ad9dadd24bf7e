"""Calls of torchsde."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import Net, case, named, noise

from assay.audit import Case


class Sde(torch.nn.Module):
    noise_type, sde_type = ("diagonal", "ito")

    def f(self, t, y):
        return -y

    def g(self, t, y):
        return torch.ones_like(y) * 0.1


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield case(
        "torchsde.sdeint",
        lambda: Net(lambda: Sde(), lambda m, y: named("torchsde.sdeint")(m, y, torch.linspace(0, 1, 3), dt=0.25)),
        (noise(2, 3),),
    )
    yield case(
        "torchsde.BrownianInterval",
        lambda: lambda x: named("torchsde.BrownianInterval")(t0=0.0, t1=1.0, size=(2, 3), device=x.device)(0.1, 0.5),
        (noise(1),),
    )
