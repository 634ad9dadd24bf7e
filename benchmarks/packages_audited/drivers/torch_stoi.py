"""Calls of torch_stoi."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import instance, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance("torch_stoi.NegSTOILoss", noise(1, 16000), noise(1, 16000).flip(1), sample_rate=16000)
