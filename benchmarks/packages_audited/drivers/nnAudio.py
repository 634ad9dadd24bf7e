"""Calls of nnAudio."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import instance, noise, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in ("STFT", "MelSpectrogram", "MFCC", "Gammatonegram", "CQT1992v2", "CQT2010v2", "VQT", "iSTFT", "VQT"):
        kw = {}
        if n == "STFT":
            kw = {"n_fft": 256}
        if n in ("CQT2010v2", "VQT"):
            kw = {"n_bins": 24}
        if n == "Griffin_Lim":
            yield instance("nnAudio.features.Griffin_Lim", uniform(1, 129, 20), n_fft=256, n_iter=2)
            continue
        yield (
            instance(f"nnAudio.features.{n}", noise(1, 22050), **kw)
            if n not in ("iSTFT",)
            else instance("nnAudio.features.STFT", noise(1, 8192), n_fft=256, output_format="Complex")
        )
