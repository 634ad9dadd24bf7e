"""Calls of torch_pitch_shift."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import function, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("torch_pitch_shift.pitch_shift", noise(1, 1, 16000), 1.5, 16000)
