"""Calls of e3nn."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import case, function, named, noise, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("e3nn.o3.spherical_harmonics", [0, 1, 2], noise(4, 3), True)
    yield function("e3nn.o3.matrix_to_angles", torch.eye(3)[None])
    yield function("e3nn.o3.wigner_D", 1, noise(2), noise(2), noise(2))
    yield case("e3nn.o3.Linear", lambda: named("e3nn.o3.Linear")("2x0e+1x1o", "1x0e+1x1o"), (noise(3, 5),))
    yield case(
        "e3nn.o3.FullyConnectedTensorProduct",
        lambda: named("e3nn.o3.FullyConnectedTensorProduct")("1x0e+1x1o", "1x0e+1x1o", "1x0e+1x1o"),
        (noise(3, 4), noise(3, 4)),
    )
    yield case("e3nn.o3.ToS2Grid", lambda: named("e3nn.o3.ToS2Grid")(2, 6), (noise(3, 9),))
    yield case(
        "e3nn.nn.Gate",
        lambda: named("e3nn.nn.Gate")("2x0e", [torch.relu], "1x0e", [torch.sigmoid], "1x1o"),
        (noise(3, 6),),
    )
    yield case("e3nn.nn.BatchNorm", lambda: named("e3nn.nn.BatchNorm")("2x0e+1x1o"), (noise(4, 5),))
    yield case(
        "e3nn.io.SphericalTensor",
        lambda: lambda v: named("e3nn.io.SphericalTensor")(2, 1, -1).with_peaks_at(v),
        (noise(2, 3),),
    )
    yield case(
        "e3nn.io.SphericalTensor.sum_of_diracs",
        lambda: lambda v: named("e3nn.io.SphericalTensor")(2, 1, -1).sum_of_diracs(v, v.norm(dim=-1)),
        (noise(2, 3),),
    )
    yield case(
        "e3nn.io.SphericalTensor.find_peaks",
        lambda: lambda v: named("e3nn.io.SphericalTensor")(2, 1, -1).find_peaks(v, res=20),
        (noise(9),),
    )
    yield function("e3nn.math.soft_one_hot_linspace", uniform(4), 0.0, 1.0, 5, "bessel", True)
