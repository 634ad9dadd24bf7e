"""Calls of geomloss."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import instance, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance("geomloss.SamplesLoss", noise(6, 3), noise(6, 3).flip(0), loss="sinkhorn")
    yield instance("geomloss.SamplesLoss", noise(6, 3), noise(6, 3).flip(0), loss="energy")
