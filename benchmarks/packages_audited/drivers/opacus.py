"""Calls of opacus."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import instance, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in ("DPLSTM", "DPGRU", "DPRNN"):
        yield instance(f"opacus.layers.{n}", noise(5, 2, 4), input_size=4, hidden_size=3)
    yield instance(
        "opacus.layers.DPMultiheadAttention", noise(5, 2, 4), noise(5, 2, 4), noise(5, 2, 4), embed_dim=4, num_heads=2
    )
