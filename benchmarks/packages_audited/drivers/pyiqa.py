"""Calls of pyiqa."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import function, instance, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    a, b = (uniform(1, 3, 192, 192), uniform(1, 3, 192, 192).flip(3))
    for path in ("fsim_arch.fsim", "vsi_arch.vsi", "gmsd_arch.gmsd", "vif_arch.vif_p"):
        yield function(f"pyiqa.archs.{path}", a, b)
    yield instance("pyiqa.archs.ssim_arch.SSIM", a, b)
    yield instance("pyiqa.archs.ssim_arch.MS_SSIM", a, b)
    yield instance("pyiqa.archs.ssim_arch.CW_SSIM", a, b)
    yield instance("pyiqa.archs.vif_arch.VIF", a, b)
    yield instance("pyiqa.archs.mad_arch.MAD", a, b)
    yield instance("pyiqa.archs.nlpd_arch.NLPD", a, b)
    yield instance("pyiqa.archs.psnr_arch.PSNR", a, b)
    yield instance("pyiqa.archs.fsim_arch.FSIM", a, b)
    yield instance("pyiqa.archs.vsi_arch.VSI", a, b)
    yield instance("pyiqa.archs.gmsd_arch.GMSD", a, b)
