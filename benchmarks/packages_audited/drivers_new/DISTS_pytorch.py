"""Calls of DISTS_pytorch."""

from collections.abc import Iterator

from assay.audit import Case
from benchmarks.packages_audited.calls import case, named, uniform


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield case(
        "DISTS_pytorch.L2pooling",
        lambda: named("DISTS_pytorch.DISTS_pt.L2pooling")(channels=3),
        (uniform(1, 3, 16, 16),),
    )
