"""Calls of DISTS_pytorch."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import case, named, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield case(
        "DISTS_pytorch.L2pooling",
        lambda: named("DISTS_pytorch.DISTS_pt.L2pooling")(channels=3),
        (uniform(1, 3, 16, 16),),
    )
