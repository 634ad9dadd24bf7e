"""Calls of performer_pytorch."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import case, labels, named, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield case(
        "performer_pytorch.PerformerLM",
        lambda: named("performer_pytorch.PerformerLM")(
            num_tokens=10, max_seq_len=16, dim=16, depth=1, heads=2, causal=True
        ),
        (labels(10, 1, 8),),
    )
    yield case(
        "performer_pytorch.SelfAttention",
        lambda: named("performer_pytorch.SelfAttention")(dim=16, heads=2, causal=False),
        (noise(1, 8, 16),),
    )
