"""Calls of rotary_embedding_torch."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import Net, case, named, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield case(
        "rotary_embedding_torch.RotaryEmbedding",
        lambda: Net(
            lambda: named("rotary_embedding_torch.RotaryEmbedding")(dim=4), lambda m, q: m.rotate_queries_or_keys(q)
        ),
        (noise(1, 2, 8, 4),),
    )
    yield case(
        "rotary_embedding_torch.RotaryEmbedding(pixel)",
        lambda: Net(
            lambda: named("rotary_embedding_torch.RotaryEmbedding")(dim=4, freqs_for="pixel"),
            lambda m, q: m.get_axial_freqs(4, 4),
        ),
        (noise(1),),
    )
