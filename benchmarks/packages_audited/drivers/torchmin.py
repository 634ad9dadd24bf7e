"""Calls of torchmin."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import case, named, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield case(
        "torchmin.minimize",
        lambda: lambda x: named("torchmin.minimize")(lambda z: (z**2).sum(), x, method="bfgs").x,
        (noise(3),),
    )
    yield case(
        "torchmin.minimize(newton-exact)",
        lambda: lambda x: named("torchmin.minimize")(lambda z: (z**2).sum(), x, method="newton-exact").x,
        (noise(3),),
    )
    yield case(
        "torchmin.minimize(l-bfgs)",
        lambda: lambda x: named("torchmin.minimize")(lambda z: (z**2).sum(), x, method="l-bfgs").x,
        (noise(3),),
    )
    yield case(
        "torchmin.least_squares", lambda: lambda x: named("torchmin.least_squares")(lambda z: z - 1, x).x, (noise(3),)
    )
