"""Calls of pypose."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import function, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("pypose.function.geometry.svdstf", noise(6, 3), noise(6, 3))
    yield function("pypose.function.geometry.svdtf", noise(6, 3), noise(6, 3))
    yield function("pypose.function.geometry.random_filter", noise(6, 3), 3)
    yield function("pypose.function.geometry.voxel_filter", noise(6, 3), [0.5, 0.5, 0.5])
    yield function("pypose.function.geometry.knn_filter", noise(6, 3), 2)
    yield function("pypose.function.geometry.nbr_filter", noise(6, 3), 1, 2.0)
    yield function("pypose.function.spline.chspline", noise(1, 5, 3), 0.2)
    yield function("pypose.lietensor.convert.euler2SO3", noise(2, 3))
    yield function("pypose.lietensor.convert.mat2SO3", torch.eye(3)[None])
