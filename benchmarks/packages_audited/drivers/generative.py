"""Calls of generative."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import instance, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance("generative.losses.PatchAdversarialLoss", noise(2, 1, 8, 8), True, True)
    yield instance("generative.metrics.FIDMetric", noise(16, 8), noise(16, 8))
    yield instance("generative.metrics.MMDMetric", noise(4, 1, 8, 8), noise(4, 1, 8, 8))
