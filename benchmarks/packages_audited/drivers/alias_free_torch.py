"""Calls of alias_free_torch."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import instance, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance("alias_free_torch.UpSample1d", noise(2, 3, 16))
    yield instance("alias_free_torch.DownSample1d", noise(2, 3, 16))
