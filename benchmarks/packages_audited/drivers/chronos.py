"""Calls of chronos."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import function, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("chronos.utils.interpolate_quantiles", [0.1, 0.5], [0.2, 0.4, 0.6], noise(2, 3))
    yield function("chronos.utils.weighted_quantile", [0.1, 0.5], [0.2, 0.4, 0.6], noise(2, 3))
