"""Calls of torchkbnufft."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import instance, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance(
        "torchkbnufft.KbNufft", torch.complex(noise(1, 1, 8, 8), noise(1, 1, 8, 8)), noise(2, 16), im_size=(8, 8)
    )
    yield instance(
        "torchkbnufft.KbInterp", torch.complex(noise(1, 1, 8, 8), noise(1, 1, 8, 8)), noise(2, 16), im_size=(8, 8)
    )
