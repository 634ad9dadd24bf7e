"""Calls of vector_quantize_pytorch."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import case, instance, named, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n, k in (
        ("VectorQuantize", {"dim": 8, "codebook_size": 16}),
        ("ResidualVQ", {"dim": 8, "codebook_size": 16, "num_quantizers": 2}),
        ("GroupedResidualVQ", {"dim": 8, "codebook_size": 16, "num_quantizers": 2, "groups": 2}),
        ("RandomProjectionQuantizer", {"dim": 8, "codebook_size": 16, "codebook_dim": 4, "num_codebooks": 2}),
        ("FSQ", {"levels": [4, 4], "dim": 8}),
        ("ResidualFSQ", {"levels": [4, 4], "dim": 8, "num_quantizers": 2}),
        ("LFQ", {"dim": 8, "codebook_size": 16}),
        ("ResidualLFQ", {"dim": 8, "codebook_size": 16, "num_quantizers": 2}),
        ("LatentQuantize", {"levels": [4, 4], "dim": 8}),
        ("SimVQ", {"dim": 8, "codebook_size": 16}),
        ("ResidualSimVQ", {"dim": 8, "codebook_size": 16, "num_quantizers": 2}),
        ("BinaryMapper", {"bits": 4}),
    ):
        x = (
            noise(2, 5, 8)
            if n not in ("LatentQuantize", "BinaryMapper")
            else noise(2, 8, 4, 4)
            if n == "LatentQuantize"
            else noise(2, 4)
        )
        yield instance(f"vector_quantize_pytorch.{n}", x, **k)
    for k in (
        {"use_cosine_sim": True},
        {"orthogonal_reg_weight": 1.0},
        {"learnable_codebook": True, "ema_update": False},
        {"kmeans_init": True},
        {"threshold_ema_dead_code": 2},
        {"rotation_trick": True},
        {"directional_reparam": True},
        {"stochastic_sample_codes": True},
        {"commitment_use_cross_entropy_loss": True},
        {"affine_param": True},
    ):
        yield case(
            f"vector_quantize_pytorch.VectorQuantize({next(iter(k))})",
            lambda k=k: named("vector_quantize_pytorch.VectorQuantize")(dim=8, codebook_size=16, **k),
            (noise(2, 5, 8),),
        )
