"""Calls of bayesian_torch."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import case, named, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in ("LinearReparameterization", "LinearFlipout"):
        yield case(
            f"bayesian_torch.layers.{n}",
            lambda n=n: named(f"bayesian_torch.layers.{n}")(in_features=4, out_features=3),
            (noise(2, 4),),
        )
    for n in ("Conv2dReparameterization", "Conv2dFlipout"):
        yield case(
            f"bayesian_torch.layers.{n}",
            lambda n=n: named(f"bayesian_torch.layers.{n}")(in_channels=3, out_channels=2, kernel_size=3),
            (noise(2, 3, 8, 8),),
        )
    for n in ("LSTMReparameterization", "LSTMFlipout"):
        yield case(
            f"bayesian_torch.layers.{n}",
            lambda n=n: named(f"bayesian_torch.layers.{n}")(in_features=4, out_features=3),
            (noise(2, 5, 4),),
        )
