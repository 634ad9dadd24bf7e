"""Calls of linformer."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import case, instance, labels, named, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance("linformer.Linformer", noise(1, 8, 16), dim=16, seq_len=8, depth=1, k=4, heads=2)
    yield case(
        "linformer.LinformerLM",
        lambda: named("linformer.LinformerLM")(
            num_tokens=10, dim=16, seq_len=8, depth=1, k=4, heads=2, reversible=True
        ),
        (labels(10, 1, 8),),
    )
