"""Calls of lpips."""

from collections.abc import Iterator

from assay.audit import Case
from benchmarks.packages_audited.calls import instance, uniform


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance("lpips.L2", uniform(1, 3, 16, 16), uniform(1, 3, 16, 16), colorspace="RGB", use_gpu=False)
