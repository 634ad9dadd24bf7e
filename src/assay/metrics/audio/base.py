"""What metrics of audio have in common: a number of each signal, and its mean over the signals."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from assay.encode.waves import WaveEncoder
from assay.metrics.base import Metric
from assay.metrics.exact_arithmetic import means, result
from assay.metrics.per_sample import SampleTerms
from assay.tally.base import Batch, Tally
from assay.tally.rows.audio_terms import AudioTerm
from assay.tally.rows.row_terms import RowNumbers
from assay.tally.sums.polynomials import MEAN_OF_ROWS, QuotientOfSums
from assay.tally.sums.row_sums import RowSums, RowTotals


@dataclass(frozen=True, kw_only=True)
class SignalRatioMetric(Metric):
    """The mean over signals of a ratio in decibels.

    Shapes: `preds` and `target` are `(N, ..., T)`: each vector of the last dimension is a signal and counts once.
    Batches may have different lengths. Floats or integers. Weights are `(N,)`.

    Rounding: signals are scaled by powers of two, so that none is too quiet or too loud. The ratio of a signal is
    computed in float32 (float64 where an argument is float64), with the same bits for any size of batch: up to about
    120 decibels it is right to 1e-4 of them. The mean over the signals is exact, rounded once.

    Returns:
        float64 of shape `()`; infinite where preds have no error; NaN without data.

    Raises:
        ShapeError: `preds` and `target` of different shapes, or a signal that is no batch.
        DtypeError: complex numbers, or booleans.
        InvalidValuesError: by `compute`, for signals with NaN or infinite values, and for silent targets, which are all
            zeros, or with a mean that is subtracted constant: their ratio is undefined.
    """

    family = "audio"
    higher_is_better: ClassVar[bool | None] = True
    exact_terms: ClassVar[bool] = False
    inputs = "signals"

    @property
    @abstractmethod
    def term(self) -> AudioTerm:
        """What is measured of a signal."""

    def tally(self, weighted: bool) -> Tally:
        return RowSums(self.term, weighted)

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return MEAN_OF_ROWS

    def compute(self, counts: RowTotals) -> Tensor:
        return result(means(counts))

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        values, _ = self.term.measure(batch.preds, batch.needed_target, batch.compiled)
        if len(values) != len(batch.preds):
            return None  # several signals a sample
        return SampleTerms.of(f"{self.term.name} of {self!r}", values)


@dataclass(frozen=True, kw_only=True)
class WaveMetric(Metric):
    """The mean over signals of a number that is computed on the CPU.

    Shapes: `preds` and `target` are lists of signals `(T,)`, tensors or arrays of any lengths; `list(batch)` of a batch
    `(N, T)`. Weights are `(N,)`.

    Rounding: the number of a signal is computed in float64. The mean over the signals is exact, rounded once.

    Returns:
        float64 of shape `()`; NaN without data.

    Raises:
        ConfigError: an argument that is out of range.
        ShapeError: a signal that is not `(T,)`, or a pair of different lengths.
        DtypeError: complex numbers, or booleans.
        InvalidValuesError: by `update`, for a signal with NaN or infinite values, and for one that is silent; the
            message has its position.
    """

    family = "audio"
    higher_is_better: ClassVar[bool | None] = True
    exact_terms: ClassVar[bool] = False
    inputs = "wave lists"

    @property
    @abstractmethod
    def encoder(self) -> WaveEncoder:
        """What measures a pair of signals."""

    def tally(self, weighted: bool) -> Tally:
        return RowSums(RowNumbers(), weighted)

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return MEAN_OF_ROWS

    def compute(self, counts: RowTotals) -> Tensor:
        return result(means(counts))

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        return SampleTerms.of(f"{self!r}", batch.preds[:, 0])
