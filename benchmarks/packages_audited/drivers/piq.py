"""Calls of piq."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import function, method, noise, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("piq.isc.inception_score", noise(20, 5))
    yield method("piq.KID", "compute_metric", noise(20, 5), noise(20, 5), subset_size=10)
    yield method("piq.FID", "compute_metric", noise(20, 5), noise(20, 5))
    yield method("piq.MSID", "compute_metric", noise(20, 5), noise(20, 5))
    yield method("piq.PR", "compute_metric", noise(20, 5), noise(20, 5))
    for n in (
        "ssim",
        "fsim",
        "vif_p",
        "gmsd",
        "multi_scale_gmsd",
        "haarpsi",
        "mdsi",
        "vsi",
        "srsim",
        "dss",
        "psnr",
        "information_weighted_ssim",
    ):
        yield function(f"piq.{n}", uniform(1, 3, 192, 192), uniform(1, 3, 192, 192).flip(3))
    yield function("piq.total_variation", uniform(1, 3, 96, 96))
    yield method("piq.FID", "compute_metric", noise(20, 5), noise(20, 5))
