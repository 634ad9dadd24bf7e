"""Calls of auraloss."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import instance, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance("auraloss.freq.MultiResolutionSTFTLoss", noise(2, 1, 8192), noise(2, 1, 8192).flip(2))
    yield instance(
        "auraloss.freq.STFTLoss",
        noise(2, 1, 8192),
        noise(2, 1, 8192).flip(2),
        perceptual_weighting=True,
        sample_rate=44100,
    )
    yield instance("auraloss.freq.MelSTFTLoss", noise(2, 1, 8192), noise(2, 1, 8192).flip(2), sample_rate=44100)
    yield instance("auraloss.freq.RandomResolutionSTFTLoss", noise(2, 1, 40000), noise(2, 1, 40000).flip(2))
    yield instance(
        "auraloss.freq.SumAndDifferenceSTFTLoss",
        noise(2, 2, 8192),
        noise(2, 2, 8192).flip(2),
        fft_sizes=[256],
        hop_sizes=[64],
        win_lengths=[256],
    )
    for n in ("ESRLoss", "DCLoss", "LogCoshLoss", "SNRLoss", "SISDRLoss", "SDSDRLoss"):
        yield instance(f"auraloss.time.{n}", noise(2, 1, 512), noise(2, 1, 512).flip(2))
    yield instance("auraloss.perceptual.FIRFilter", noise(2, 1, 512), noise(2, 1, 512).flip(2), filter_type="aw")
