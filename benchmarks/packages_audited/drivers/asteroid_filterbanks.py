"""Calls of asteroid_filterbanks."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import function, instance, noise, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function(
        "asteroid_filterbanks.transforms.phase_centerfreq_correction", noise(2, 5, 6), kernel_size=8, stride=4
    )
    yield instance("asteroid_filterbanks.pcen.StatefulPCEN", uniform(2, 1, 128, 10))
