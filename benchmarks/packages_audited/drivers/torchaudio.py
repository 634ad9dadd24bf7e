"""Calls of torchaudio."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import function, instance, labels, noise, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("torchaudio.functional.phaser", uniform(1, 800), 8000)
    yield function("torchaudio.functional.flanger", uniform(1, 1, 800), 8000)
    for n, a in (
        ("dither", ()),
        ("contrast", ()),
        ("overdrive", ()),
        ("dcshift", (0.1,)),
        ("preemphasis", ()),
        ("deemphasis", ()),
    ):
        yield function(f"torchaudio.functional.{n}", uniform(1, 800), *a)
    for n, a in (
        ("lowpass_biquad", (8000, 1000.0)),
        ("equalizer_biquad", (8000, 1000.0, 3.0)),
        ("allpass_biquad", (8000, 1000.0)),
        ("riaa_biquad", (44100,)),
        ("treble_biquad", (8000, 3.0)),
        ("bass_biquad", (8000, 3.0)),
        ("band_biquad", (8000, 1000.0)),
        ("bandreject_biquad", (8000, 1000.0)),
        ("gain", ()),
        ("detect_pitch_frequency", (8000,)),
        ("vad", (8000,)),
        ("speed", (8000, 1.1)),
        ("resample", (8000, 6000)),
    ):
        yield function(f"torchaudio.functional.{n}", noise(1, 4000), *a)
    for n in ("fbank", "mfcc", "spectrogram"):
        yield function(f"torchaudio.compliance.kaldi.{n}", noise(1, 4000))
    yield function("torchaudio.functional.mask_along_axis", noise(1, 8, 8), 3, 0.0, 1)
    yield function("torchaudio.functional.edit_distance", labels(3, 4), labels(3, 4))
    yield function("torchaudio.functional.fftconvolve", noise(1, 64), noise(1, 16))
    yield function("torchaudio.functional.add_noise", noise(1, 64), noise(1, 64), torch.tensor([3.0]))
    yield function("torchaudio.functional.filter_waveform", noise(1, 64), noise(2, 8))
    for n, kw, x in (
        ("MelSpectrogram", {}, noise(1, 4000)),
        ("MFCC", {}, noise(1, 4000)),
        ("LFCC", {}, noise(1, 4000)),
        ("Spectrogram", {}, noise(1, 4000)),
        ("InverseMelScale", {"n_stft": 65, "n_mels": 32}, uniform(1, 32, 6)),
        ("GriffinLim", {"n_fft": 128, "n_iter": 2}, uniform(1, 65, 6)),
        ("TimeStretch", {"fixed_rate": 1.1, "n_freq": 65}, torch.complex(noise(1, 65, 6), noise(1, 65, 6))),
        ("SpectralCentroid", {"sample_rate": 8000}, noise(1, 4000)),
        ("PitchShift", {"sample_rate": 8000, "n_steps": 2}, noise(1, 4000)),
        ("Fade", {"fade_in_len": 10, "fade_out_len": 10}, noise(1, 400)),
        ("SlidingWindowCmn", {}, noise(1, 50, 8)),
        ("FrequencyMasking", {"freq_mask_param": 4}, noise(1, 16, 8)),
        (
            "SpecAugment",
            {"n_time_masks": 1, "time_mask_param": 2, "n_freq_masks": 1, "freq_mask_param": 2},
            noise(1, 16, 8),
        ),
        ("Loudness", {"sample_rate": 8000}, noise(1, 8000)),
        ("Vol", {"gain": 0.5}, noise(1, 40)),
        ("ComputeDeltas", {}, noise(1, 8, 20)),
        ("MuLawEncoding", {}, uniform(1, 40)),
        ("MuLawDecoding", {}, labels(256, 1, 40)),
        ("AmplitudeToDB", {}, uniform(1, 40)),
        ("SpeedPerturbation", {"orig_freq": 8000, "factors": [1.1]}, noise(1, 400)),
        ("PSD", {}, torch.complex(noise(2, 5, 6), noise(2, 5, 6))),
        ("RNNTLoss", None, None),
    ):
        if kw is not None:
            yield instance(f"torchaudio.transforms.{n}", x, **kw)
    yield instance(
        "torchaudio.transforms.MVDR",
        torch.complex(noise(2, 5, 6), noise(2, 6, 5).mT),
        uniform(5, 6),
        uniform(5, 6).flip(0),
    )
