"""Calls of torchdiffeq."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import function, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("torchdiffeq.odeint", lambda t, y: -y, uniform(3), torch.linspace(0, 1, 5))
    for m in (
        "dopri8",
        "bosh3",
        "adaptive_heun",
        "euler",
        "midpoint",
        "rk4",
        "explicit_adams",
        "implicit_adams",
        "fehlberg2",
    ):
        yield function("torchdiffeq.odeint", lambda t, y: -y, uniform(3), torch.linspace(0, 1, 5), method=m)
