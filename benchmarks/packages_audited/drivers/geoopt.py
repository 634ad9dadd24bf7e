"""Calls of geoopt."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import Net, case, function, named, noise, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("geoopt.manifolds.lorentz.math.arcosh", uniform(4) + 1)
    yield case(
        "geoopt.Lorentz.dist",
        lambda: Net(lambda: named("geoopt.Lorentz")(), lambda m, x, y: m.dist(m.projx(x), m.projx(y))),
        (noise(3, 4), noise(3, 4)),
    )
    yield case(
        "geoopt.PoincareBall.dist",
        lambda: Net(lambda: named("geoopt.PoincareBall")(), lambda m, x, y: m.dist(m.projx(x), m.projx(y))),
        (noise(3, 4), noise(3, 4)),
    )
    yield case(
        "geoopt.Sphere.dist",
        lambda: Net(lambda: named("geoopt.Sphere")(), lambda m, x, y: m.dist(m.projx(x), m.projx(y))),
        (noise(3, 4), noise(3, 4)),
    )
    yield case(
        "geoopt.Stiefel.projx", lambda: Net(lambda: named("geoopt.Stiefel")(), lambda m, x: m.projx(x)), (noise(4, 3),)
    )
    yield case(
        "geoopt.SymmetricPositiveDefinite.dist",
        lambda: Net(lambda: named("geoopt.SymmetricPositiveDefinite")(), lambda m, x, y: m.dist(x, y)),
        (torch.eye(3)[None] * 2, torch.eye(3)[None] * 3),
    )
