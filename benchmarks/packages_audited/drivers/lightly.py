"""Calls of lightly."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import instance, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance("lightly.loss.wmse_loss.Whitening2d", noise(32, 8), num_features=8)
    yield instance("lightly.loss.NTXentLoss", noise(4, 8), noise(4, 8))
    yield instance("lightly.loss.BarlowTwinsLoss", noise(4, 8), noise(4, 8))
    yield instance("lightly.loss.VICRegLoss", noise(4, 8), noise(4, 8))
    yield instance("lightly.loss.DCLLoss", noise(4, 8), noise(4, 8))
    yield instance("lightly.loss.TiCoLoss", noise(4, 8), noise(4, 8))
