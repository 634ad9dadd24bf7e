"""Calls of differentiable_robot_model."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import function, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("differentiable_robot_model.utils.exp_map_so3", noise(3))
    yield function("differentiable_robot_model.spatial_vector_algebra.x_rot", noise(1))
    yield function(
        "differentiable_robot_model.se3_so3_util.getHomogeneousTransformMatrixFromAxes",
        noise(3),
        noise(3),
        noise(3),
        noise(3),
    )
