"""The signal-to-distortion ratio of BSS Eval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from assay.encode.waves import DistortionRatio
from assay.errors import ConfigError, describe
from assay.metrics.audio.base import WaveMetric


@dataclass(frozen=True, kw_only=True)
class SignalDistortionRatio(WaveMetric):
    """Mean signal-to-distortion ratio (SDR) of BSS Eval, in decibels.

    `10 log10(|s|² / |preds - s|²)` of each signal, where `s` is the projection of preds onto the target and its delays
    by up to `filter_length - 1` samples: all that a filter of that length can make of the target.

    Example:
        >>> import torch
        >>> time = torch.arange(400.0)
        >>> target = torch.sin(time / 5) + torch.sin(time / 3)
        >>> echo = target + 0.5 * target.roll(3) + 0.1 * torch.sin(time)
        >>> SignalDistortionRatio(filter_length=8)([echo], [target])
        tensor(25.7579, dtype=torch.float64)

    Source: Vincent, Gribonval, Févotte, Performance measurement in blind audio source separation, IEEE Transactions on
    Audio, Speech and Language Processing 14 (2006); equal to `mir_eval.separation.bss_eval_sources` of one source.
    """

    examples = ({"filter_length": 4}, {"filter_length": 6, "zero_mean": True, "load_diag": 2**-10})

    filter_length: Annotated[int, "how many coefficients the filter has."] = 512
    zero_mean: Annotated[bool, "subtract from each signal its mean over time first."] = False
    load_diag: Annotated[
        float | None, "added to the energy of the target, of 1, when the filter is solved for; None for nothing."
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.filter_length < 1:
            do = "Leave filter_length out for 512"
            raise ConfigError(describe("filter_length", self.filter_length, "1 or more coefficients", do))
        if self.load_diag is not None and not 0 <= self.load_diag < math.inf:
            do = "Leave load_diag out"
            raise ConfigError(describe("load_diag", self.load_diag, "a finite number of 0 or more", do))

    @property
    def encoder(self) -> DistortionRatio:
        return DistortionRatio(self.filter_length, self.zero_mean, self.load_diag)
