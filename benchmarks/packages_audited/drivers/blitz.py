"""Calls of blitz."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import case, named, noise

from assay.audit import Case


def frozen():
    layer = named("blitz.modules.BayesianLinear")(4, 3, bias=False)
    layer.freeze = True
    return layer


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield case("blitz.modules.BayesianLinear", frozen, (noise(2, 4),))
