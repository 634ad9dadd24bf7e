"""Calls of lpips."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import instance, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance("lpips.L2", uniform(1, 3, 16, 16), uniform(1, 3, 16, 16), colorspace="RGB", use_gpu=False)
