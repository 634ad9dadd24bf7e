"""Calls of pytorch_wavelets."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import case, named, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield case(
        "pytorch_wavelets.DWTForward",
        lambda: named("pytorch_wavelets.DWTForward")(J=2, wave="db2"),
        (noise(1, 1, 16, 16),),
    )
    yield case(
        "pytorch_wavelets.DTCWTForward", lambda: named("pytorch_wavelets.DTCWTForward")(J=2), (noise(1, 1, 16, 16),)
    )
