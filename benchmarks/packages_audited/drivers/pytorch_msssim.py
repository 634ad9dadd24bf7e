"""Calls of pytorch_msssim."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import function, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in ("ssim", "ms_ssim"):
        yield function(f"pytorch_msssim.{n}", uniform(1, 3, 192, 192), uniform(1, 3, 192, 192).flip(3), data_range=1)
