"""Calls of julius."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import function, instance, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in ("resample_frac",):
        yield function(f"julius.{n}", noise(2, 64), 4, 5)
    yield function("julius.lowpass_filter", noise(2, 512), 0.1)
    yield instance("julius.BandPassFilter", noise(2, 512), cutoff_low=0.1, cutoff_high=0.2)
    yield instance("julius.SplitBands", noise(2, 2048), sample_rate=16000, n_bands=4)
    yield function("julius.fft_conv1d", noise(1, 1, 512), noise(1, 1, 64))
