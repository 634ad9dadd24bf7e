"""Calls of efficientnet_pytorch."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import case, named, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield case(
        "efficientnet_pytorch.EfficientNet",
        lambda: named("efficientnet_pytorch.EfficientNet").from_name("efficientnet-b0"),
        (uniform(1, 3, 64, 64),),
    )
