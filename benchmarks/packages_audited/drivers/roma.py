"""Calls of roma."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import function, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("roma.special_procrustes", noise(2, 3, 3))
    yield function("roma.symmatrix_to_projective_point", torch.eye(4)[None] + 0.1)
    yield function("roma.rigid_points_registration", noise(1, 6, 3), noise(1, 6, 3))
