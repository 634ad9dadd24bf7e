"""Calls of neuralop."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import function, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("neuralop.utils.spectrum_2d", noise(2, 64), 8)
