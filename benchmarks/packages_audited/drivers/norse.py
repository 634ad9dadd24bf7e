"""Calls of norse."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import function, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("norse.torch.functional.encode.signed_poisson_encode", uniform(2, 4), 5)
    yield function("norse.torch.functional.encode.poisson_encode", uniform(2, 4), 5)
    yield function("norse.torch.functional.encode.population_encode", uniform(4), 5)
    yield function("norse.torch.functional.encode.spike_latency_encode", uniform(5, 2, 4))
