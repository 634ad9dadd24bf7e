"""Calls of xitorch."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import case, named, noise, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield case(
        "xitorch.interpolate.Interp1D",
        lambda: lambda x, y, q: named("xitorch.interpolate.Interp1D")(x, y)(q),
        (torch.linspace(0, 1, 6), noise(6), uniform(4)),
    )
