"""Calls of torchcde."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import case, function, named, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("torchcde.linear_interpolation_coeffs", uniform(2, 6, 3))
    yield function("torchcde.hermite_cubic_coefficients_with_backward_differences", uniform(2, 6, 3))
    yield function("torchcde.natural_cubic_coeffs", uniform(2, 6, 3))
    yield function("torchcde.linear_interpolation_coeffs", uniform(2, 6, 3), rectilinear=0)
    yield function(
        "torchcde.natural_cubic_coeffs",
        torch.where(uniform(2, 6, 3) > 0.8, torch.tensor(float("nan")), uniform(2, 6, 3)),
    )
    yield case(
        "torchcde.CubicSpline",
        lambda: (
            lambda c: named("torchcde.CubicSpline")(named("torchcde.natural_cubic_coeffs")(c)).evaluate(
                torch.tensor(1.5)
            )
        ),
        (uniform(2, 6, 3),),
    )
    yield case(
        "torchcde.LinearInterpolation",
        lambda: (
            lambda c: named("torchcde.LinearInterpolation")(
                named("torchcde.linear_interpolation_coeffs")(c)
            ).derivative(torch.tensor(1.5))
        ),
        (uniform(2, 6, 3),),
    )
