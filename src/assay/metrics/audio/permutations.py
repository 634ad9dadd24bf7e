"""Ratios of separated sources, whose order is not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from assay.encode.base import Encoder
from assay.encode.waves import BestOrder
from assay.errors import ConfigError, describe
from assay.metrics.audio.base import SignalRatioMetric, WaveMetric
from assay.metrics.audio.distortion import SignalDistortionRatio
from assay.metrics.audio.ratios import (
    ComplexScaleInvariantSignalNoiseRatio,
    EnergyRatioMetric,
    ScaleInvariantSignalDistortionRatio,
    ScaleInvariantSignalNoiseRatio,
    SignalNoiseRatio,
    SourceAggregatedSignalDistortionRatio,
)
from assay.metrics.base import Change
from assay.metrics.per_sample import SampleTerms
from assay.tally.base import Batch, Tally
from assay.tally.rows.audio_terms import AudioTerm, PermutedRatio
from assay.tally.rows.row_terms import RowNumbers
from assay.tally.sums.row_sums import RowSums

_DEFAULT = ScaleInvariantSignalDistortionRatio()
_BY_NAME: dict[str, type[EnergyRatioMetric] | type[SignalDistortionRatio]] = {
    kind.__name__: kind
    for kind in (
        *(ComplexScaleInvariantSignalNoiseRatio, ScaleInvariantSignalDistortionRatio, ScaleInvariantSignalNoiseRatio),
        *(SignalDistortionRatio, SignalNoiseRatio, SourceAggregatedSignalDistortionRatio),
    )
}


@dataclass(frozen=True, kw_only=True)
class PermutationInvariantTraining(SignalRatioMetric):
    """Mean over samples of the ratio of their sources, assigned to the targets in the order in which it is best.

    `max over permutations of mean_k ratio(preds[order[k]], target[k])`, the number that permutation-invariant training
    improves. Of a metric of all sources together, as SA-SDR is, the best of the values of all permutations.

    The best order is found on the device and without reading a value, for at most 10 sources; of all permutations, as
    for SA-SDR, for at most 6. With SignalDistortionRatio it is found on the CPU, for any number.

    Shapes: `preds` and `target` are `(N, S, T)`: S sources of T samples; of spectra as the metric takes them,
    `(N, S, F, T)`. With SignalDistortionRatio both are lists of tensors `(S, T)`, of any number of sources. Weights are
    `(N,)`.

    Raises:
        ConfigError: a metric that is none of ratios, or a `mode` that does not fit it.
        ShapeError: `preds` and `target` of different shapes, or too many sources.
        DtypeError: complex numbers, or booleans.
        InvalidValuesError: by `compute`, for signals with NaN or infinite values, and for silent sources, whose ratio
            is undefined.

    Example:
        >>> import torch
        >>> target = torch.tensor([[[3.0, -0.5, 2.0, 7.0], [1.0, 1.0, -1.0, 0.0]]])
        >>> preds = target.flip(1) + torch.tensor([0.5, 0.0, 0.0, -0.5])
        >>> PermutationInvariantTraining(metric=SignalNoiseRatio())(preds, target)
        tensor(14.3666, dtype=torch.float64)

    Source: Yu, Kolbaek, Tan, Jensen, Permutation invariant training of deep models for speaker-independent multi-talker
    speech separation, ICASSP 2017.
    """

    inputs = "sources"
    examples = (
        {},
        {"metric": SourceAggregatedSignalDistortionRatio(), "mode": "permutation-wise"},
        {"metric": SignalNoiseRatio(zero_mean=True)},
    )

    metric: Annotated[
        SignalRatioMetric | WaveMetric | str,
        "a ratio of signals, such as SignalNoiseRatio(), or the name of its class.",
    ] = _DEFAULT
    mode: Annotated[
        Literal["speaker-wise", "permutation-wise"],
        '"speaker-wise" for metrics of single sources; "permutation-wise" for those of all together, such as SA-SDR.',
    ] = "speaker-wise"
    eval_func: Annotated[Literal["max", "min"], "which value is the best."] = "max"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.metric, str) and self.metric in _BY_NAME:
            object.__setattr__(self, "metric", _BY_NAME[self.metric]())
        if not isinstance(self.metric, EnergyRatioMetric | SignalDistortionRatio):
            got = self.metric.__name__ if isinstance(self.metric, type) else repr(self.metric)
            expected = "a metric of ratios of signals, or its name"
            do = 'Pass ScaleInvariantSignalDistortionRatio(), or "SignalNoiseRatio"'
            raise ConfigError(describe("metric", got, expected, do))
        if self.metric.inputs == "sources" and self.mode == "speaker-wise":
            do = 'Pass mode="permutation-wise"'
            raise ConfigError(describe("mode", repr(self.mode), f"that of {self.metric!r}, of all sources", do))

    @property
    def unchanged_by(self) -> frozenset[Change]:  # type: ignore[override]
        """Changes of the data that change no bit of the value."""
        return self.metric.unchanged_by if isinstance(self.metric, EnergyRatioMetric) else frozenset()

    @property
    def encoder(self) -> Encoder | None:
        if not isinstance(self.metric, SignalDistortionRatio):
            return None
        return BestOrder(self.metric.encoder, self.eval_func == "max")

    @property
    def term(self) -> AudioTerm:
        assert isinstance(self.metric, EnergyRatioMetric), "others have an encoder"
        return PermutedRatio(self.metric.term, self.eval_func == "max")

    def tally(self, weighted: bool) -> Tally:
        return super().tally(weighted) if self.encoder is None else RowSums(RowNumbers(), weighted)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        return super().per_sample(batch) if self.encoder is None else SampleTerms.of(f"{self!r}", batch.preds[:, 0])
