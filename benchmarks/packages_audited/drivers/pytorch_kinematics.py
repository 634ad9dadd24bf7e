"""Calls of pytorch_kinematics."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import function, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("pytorch_kinematics.matrix_to_quaternion", torch.eye(3)[None])
    yield function("pytorch_kinematics.quaternion_to_matrix", noise(2, 4))
    yield function("pytorch_kinematics.euler_angles_to_matrix", noise(2, 3), "XYZ")
