"""Ratios of the energy of a signal to that of its error, in decibels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from assay.metrics.audio.base import SignalRatioMetric
from assay.metrics.base import Change, Examples
from assay.tally.rows.audio_terms import EnergyRatio


@dataclass(frozen=True, kw_only=True)
class EnergyRatioMetric(SignalRatioMetric):
    """A ratio of energies that an `EnergyRatio` describes."""

    examples: ClassVar[Examples] = ({}, {"zero_mean": True})

    zero_mean: Annotated[bool, "subtract from each signal its mean over time first."] = False

    @property
    def unchanged_by(self) -> frozenset[Change]:  # type: ignore[override]
        """Changes of the data that change no bit of the value."""
        if self.term.scale_invariant:
            return frozenset({"scale"})
        return frozenset({"common affine", "shift"} if self.term.zero_mean else ())

    @property
    def term(self) -> EnergyRatio:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class SignalNoiseRatio(EnergyRatioMetric):
    """Mean signal-to-noise ratio (SNR), in decibels.

    `10 log10(|target|² / |target - preds|²)` of each signal.

    Example:
        >>> import torch
        >>> target = torch.tensor([[3.0, -0.5, 2.0, 7.0]])
        >>> SignalNoiseRatio()(torch.tensor([[2.5, 0.0, 2.0, 8.0]]), target)
        tensor(16.1805, dtype=torch.float64)

    Source: Vincent, Gribonval, Févotte, Performance measurement in blind audio source separation, IEEE Transactions on
    Audio, Speech and Language Processing 14 (2006).
    """

    @property
    def term(self) -> EnergyRatio:
        return EnergyRatio(False, self.zero_mean)


@dataclass(frozen=True, kw_only=True)
class ScaleInvariantSignalDistortionRatio(EnergyRatioMetric):
    """Mean scale-invariant signal-to-distortion ratio (SI-SDR), in decibels.

    `10 log10(|s|² / |preds - s|²)` of each signal, where `s = <preds, target> / |target|² target` is the part of preds
    that is a multiple of the target. How loud preds are changes nothing; silent preds have no ratio and raise.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[2.5, 0.0, 2.0, 8.0]]), torch.tensor([[3.0, -0.5, 2.0, 7.0]])
        >>> ScaleInvariantSignalDistortionRatio()(preds, target)
        tensor(18.4030, dtype=torch.float64)

    Source: Le Roux, Wisdom, Erdogan, Hershey, SDR - half-baked or well done?, ICASSP 2019.
    """

    @property
    def term(self) -> EnergyRatio:
        return EnergyRatio(True, self.zero_mean)


@dataclass(frozen=True, kw_only=True)
class ScaleInvariantSignalNoiseRatio(EnergyRatioMetric):
    """Mean scale-invariant signal-to-noise ratio (SI-SNR), in decibels: SI-SDR of signals without their means.

    `10 log10(|s|² / |p - s|²)` of each signal, where `p` and `t` are preds and target less their means over time and
    `s = <p, t> / |t|² t`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[2.5, 0.0, 2.0, 8.0]]), torch.tensor([[3.0, -0.5, 2.0, 7.0]])
        >>> ScaleInvariantSignalNoiseRatio()(preds, target)
        tensor(15.0918, dtype=torch.float64)

    Source: Luo, Mesgarani, TasNet, ICASSP 2018.
    """

    examples = ({},)
    zero_mean: ClassVar[bool] = True  # type: ignore[misc]
    term = EnergyRatio(True, True)


@dataclass(frozen=True, kw_only=True)
class SourceAggregatedSignalDistortionRatio(EnergyRatioMetric):
    """Mean source-aggregated signal-to-distortion ratio (SA-SDR), in decibels.

    `10 log10(sum |s_k|² / sum |p_k - s_k|²)` over the sources of each sample. With `scale_invariant=True`, `s_k` is
    `a target_k` with one factor `a = sum <p_k, t_k> / sum |t_k|²` for all sources, otherwise the target. Some sources
    may be silent, but not all of a sample.

    Shapes: `preds` and `target` are `(N, ..., S, T)`: S sources of T samples. Weights are `(N,)`.

    Example:
        >>> import torch
        >>> target = torch.tensor([[[3.0, -0.5, 2.0, 7.0], [0.0, 0.0, 0.0, 0.0]]])
        >>> preds = torch.tensor([[[2.5, 0.0, 2.0, 8.0], [0.5, 0.0, 0.0, -0.5]]])
        >>> SourceAggregatedSignalDistortionRatio(scale_invariant=False)(preds, target)
        tensor(14.9311, dtype=torch.float64)

    Source: von Neumann et al., SA-SDR: a novel loss function for separation of meeting style data, ICASSP 2022.
    """

    inputs = "sources"
    examples = ({}, {"scale_invariant": False, "zero_mean": True})

    scale_invariant: Annotated[bool, "whether the targets of a sample are scaled by one factor that fits preds."] = True

    @property
    def term(self) -> EnergyRatio:
        return EnergyRatio(self.scale_invariant, self.zero_mean, "sources")


@dataclass(frozen=True, kw_only=True)
class ComplexScaleInvariantSignalNoiseRatio(EnergyRatioMetric):
    """Mean scale-invariant signal-to-noise ratio of complex spectra (C-SI-SNR), in decibels.

        10 log10(|s|² / |p - s|²),  s = <p, t> / |t|² t

    SI-SDR of the vector that the real and imaginary parts of all bins of a spectrum are; with `zero_mean=True` less the
    mean of all of these numbers.

    Shapes: `preds` and `target` are spectra `(N, ..., F, T)` of complex numbers, or `(N, ..., F, T, 2)` of real and
    imaginary parts. Weights are `(N,)`.

    Example:
        >>> import torch
        >>> target = torch.tensor([[[3.0 - 0.5j, 2.0 + 7.0j]]])
        >>> ComplexScaleInvariantSignalNoiseRatio()(torch.tensor([[[2.5 + 0j, 2.0 + 8.0j]]]), target)
        tensor(18.4030, dtype=torch.float64)

    Source: SI-SDR as in Le Roux et al., ICASSP 2019, of spectra as in TorchMetrics,
    `ComplexScaleInvariantSignalNoiseRatio`.
    """

    inputs = "spectra"

    @property
    def term(self) -> EnergyRatio:
        return EnergyRatio(True, self.zero_mean, "spectra")
