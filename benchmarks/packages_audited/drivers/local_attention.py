"""Calls of local_attention."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import instance, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance(
        "local_attention.LocalAttention",
        noise(1, 2, 8, 4),
        noise(1, 2, 8, 4),
        noise(1, 2, 8, 4),
        dim=4,
        window_size=4,
        causal=True,
    )
