"""Calls of auton_survival."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import instance, labels, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance(
        "auton_survival.models.cmhe.cmhe_torch.DeepCMHETorch",
        noise(4, 5),
        labels(2, 4).float(),
        k=2,
        g=2,
        inputdim=5,
        layers=[4],
    )
