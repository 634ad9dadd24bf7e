"""Calls of torch_audiomentations."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import instance, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in (
        "Gain",
        "PolarityInversion",
        "LowPassFilter",
        "HighPassFilter",
        "BandPassFilter",
        "BandStopFilter",
        "AddColoredNoise",
        "PeakNormalization",
        "Shift",
        "ShuffleChannels",
        "TimeInversion",
        "PitchShift",
        "SpliceOut",
        "Padding",
        "Identity",
    ):
        kw = {"p": 1.0, "output_type": "dict"}
        if n in (
            "AddColoredNoise",
            "PitchShift",
            "LowPassFilter",
            "HighPassFilter",
            "BandPassFilter",
            "BandStopFilter",
        ):
            kw["sample_rate"] = 16000
        yield (
            instance(f"torch_audiomentations.{n}", noise(2, 2, 16000), **kw)
            if n not in ("PitchShift",)
            else instance(f"torch_audiomentations.{n}", noise(1, 1, 16000), **kw)
        )
