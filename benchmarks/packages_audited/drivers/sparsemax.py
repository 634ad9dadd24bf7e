"""Calls of sparsemax."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import instance, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance("sparsemax.Sparsemax", noise(3, 5), dim=-1)
