"""What single signals give: ratios of energies in decibels, computed on the device of the signals.

Signals are scaled by powers of two, which rounds nothing, so no square overflows or vanishes. Energies are added up by
halving, with elementwise additions only: the same bits for any number of signals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from assay.errors import DtypeError, ShapeError, describe
from assay.native.audio import signal_ratios
from assay.native.library import takes
from assay.tally.base import Batch, BatchLayout, TensorLayout, shown
from assay.tally.layout_checks import check_weights, shown_or_nothing
from assay.tally.sums.float_terms import difference
from assay.tally.sums.row_sums import RowTerm, RowValues

SignalLayout = Literal["signals", "sources", "spectra"]
"""What one number is of: `(T,)`; `(S, T)`, several sources together; or `(F, T)` complex, `(F, T, 2)` real."""
MOST_SOURCES, MOST_PERMUTED = 10, 6
"""Sources whose best assignment is searched for, one by one and where each permutation is measured as a whole."""

_DIMS = {"signals": 1, "sources": 2, "spectra": 3}
_SHAPES = {"signals": "(N, T)", "sources": "(N, S, T)", "spectra": "(N, F, T), complex, or (N, F, T, 2)"}
_FORMATS = {torch.float32: (torch.int32, 23, 127), torch.float64: (torch.int64, 52, 1023)}
_TOGETHER = 23  # orders of sources that are measured together
_CACHED = 1 << 16  # numbers of the signals that are measured together
_RAISED_BITS = 30
_RAISED = 2.0**_RAISED_BITS  # errors are multiplied by it, so that squares of small ones do not vanish
_DECIBELS = 10 / math.log(10)


class AudioTerm(RowTerm):
    """A number in decibels of each signal of `preds` and `target`; or of each group of signals."""

    name: str
    """What the number is called, for the columns of per-sample values."""
    rounding = 2.0**-10  # of a signal that is nearly its target few digits are left
    invalid = (
        "signals have values that are NaN or infinite",
        "targets are silent (no ratio to them is defined)",
        "preds are silent (no ratio of them is defined)",
    )

    def __call__(self, batch: Batch) -> RowValues:
        values, faults = self.measure(batch.preds, batch.needed_target, batch.compiled)
        if batch.compiled and batch.terms is None and not faults.numpy().any():
            return RowValues(values)  # there is nothing to say of the rows
        return RowValues(values, counted=~faults.any(0), invalid=faults.unbind())

    def measure(self, preds: Tensor, target: Tensor, compiled: bool) -> tuple[Tensor, Tensor]:
        """The numbers `(rows,)`, and whether each is undefined for one of the reasons of `invalid`: `(3, rows)`.

        `compiled` says that compiled code may read the tensors.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class EnergyRatio(AudioTerm):
    """`10 log10(|s|² / |e|²)` of the signal `s` and the error `e = preds - s`.

    Args:
        scale_invariant: `s` is the projection of `preds` onto the target, `<p, t> / <t, t> t`; otherwise the target.
        zero_mean: the mean over time is subtracted first.
        layout: what one number is of.
    """

    scale_invariant: bool = False
    zero_mean: bool = False
    layout: SignalLayout = "signals"

    name = "signal ratio"

    def check(self, layout: BatchLayout) -> None:
        preds, target = layout.preds, layout.target
        tails = [None if each is None else self._tail(name, each) for name, each in _sides(preds, target)]
        if target is None or tails[0] != tails[1] or tails[0] is None or 0 in tails[0]:
            got = f"preds {shown(preds.tail)} and target {shown_or_nothing(target)}"
            do = "Cut both to one length, and give one signal as signal[None]"
            raise ShapeError(describe("target", got, f"both of shape {_SHAPES[self.layout]}", do))
        check_weights(layout.weights)

    def _tail(self, name: str, side: TensorLayout) -> tuple[int, ...] | None:
        """The shape of a sample as real numbers; None where it has too few dimensions."""
        spectra = self.layout == "spectra"
        if side.dtype.is_complex and not spectra:
            do = f"Pass {name}.real, or use ComplexScaleInvariantSignalNoiseRatio for spectra"
            raise DtypeError(describe(name, side.dtype, "real numbers: samples of a signal", do))
        if side.dtype == torch.bool:
            raise DtypeError(describe(name, side.dtype, "floats or integers", f"Pass {name}.float()"))
        tail = (*side.tail, 2) if side.dtype.is_complex else side.tail
        return None if len(tail) < _DIMS[self.layout] or (spectra and tail[-1] != 2) else tail

    def measure(self, preds: Tensor, target: Tensor, compiled: bool) -> tuple[Tensor, Tensor]:
        channels = self._real(preds).shape[-2] if self.layout == "sources" else 1
        size = math.prod(self._real(preds).shape[-_DIMS[self.layout] :])
        own, true = (self._real(x).reshape(-1, 1, channels, size // channels) for x in (preds, target))
        values, faults = self._decibels(own, true, compiled)
        return values.flatten(), faults.flatten(1)

    def measure_pairs(self, preds: Tensor, target: Tensor, compiled: bool) -> tuple[Tensor, Tensor]:
        """The same of each target with each of the preds: of `(N, S, ...)` `(N, S, S)` and `(3, N, S, S)`."""
        sources = preds.shape[1]
        own, true = (self._real(x).reshape(len(x), sources, 1, -1) for x in (preds, target))
        return self._decibels(own, true, compiled)

    @staticmethod
    def _real(x: Tensor) -> Tensor:
        return torch.view_as_real(x) if x.is_complex() else x

    def _decibels(self, preds: Tensor, target: Tensor, compiled: bool) -> tuple[Tensor, Tensor]:
        """Of each target and each of the preds, of `(rows, sources, channels, T)`."""
        if compiled and takes(preds, target):
            ratio, exponent, faults = signal_ratios(preds, target, self.scale_invariant, self.zero_mean)
            values = _in_decibels_by_numpy(ratio, exponent)
            return (values.masked_fill_(faults.any(0), math.nan) if faults.numpy().any() else values), faults
        ratio, exponent, faults = self._ratios(preds, target)
        return _in_decibels(ratio, exponent).masked_fill(faults.any(0), math.nan), faults

    def _ratios(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The form of `signal_ratios` for any device and dtype."""
        rows, sources, *tail = preds.shape
        pairs = rows, sources, sources, *tail
        own, true = preds[:, None].expand(pairs).flatten(0, 2), target[:, :, None].expand(pairs).flatten(0, 2)
        measure, size = self._projected if self.scale_invariant else self._plain, max(1, _CACHED // math.prod(tail))
        parts = [measure(*some) for some in zip(torch.split(own, size), torch.split(true, size), strict=True)]
        ratio, exponent, faults = (torch.cat(each, -1) for each in zip(*parts, strict=True))
        return ratio.view(pairs[:3]), exponent.view(pairs[:3]), faults.view(3, *pairs[:3])

    def _plain(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        own, true = _Extent.of(_float(preds, target)), _Extent.of(_float(target, preds))
        largest = torch.maximum(own.largest, true.largest)
        scale, exponent = _unit(true.largest)
        signal = _float(target, preds) * scale
        error, taken = _error(preds, target, largest)
        if self.zero_mean:
            signal, error = _centred(true.shifted(signal, scale)), _centred(error - error[..., :1])
        silent = true.is_silent(self.zero_mean)
        ratio = _energy(signal) / _energy(error.mul_(_RAISED))
        faults = _faults(_is_finite(largest), silent, torch.zeros_like(silent))
        return ratio.flatten(), 2 * (exponent - taken + _RAISED_BITS).flatten(), faults

    def _projected(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        p, t = _float(preds, target), _float(target, preds)
        extents = _Extent.of(t), _Extent.of(p)
        t, p = (self._scaled(extent, x) for extent, x in zip(extents, (t, p), strict=True))
        y, x = (_centred(t), _centred(p)) if self.zero_mean else (t, p)
        energy = _energy(y)
        factor = _sum_each(x * y) / energy
        error = _without_multiple(p, factor, t)
        error = _centred(error.sub_(error[..., :1].clone())) if self.zero_mean else error
        rest = _sum_each(error * y) / energy  # what the rounding of the factor left of the target
        error = error.sub_(rest * y).mul_(_RAISED)
        factor = (factor + rest).abs()
        scale, exponent = _unit(factor)
        factor = factor * scale
        ratio = factor * factor * energy / _energy(error)
        finite = _is_finite(torch.maximum(extents[0].largest, extents[1].largest))
        faults = _faults(finite, *(extent.is_silent(self.zero_mean) for extent in extents))
        return ratio.flatten(), 2 * (exponent + _RAISED_BITS).flatten(), faults

    def _scaled(self, extent: _Extent, x: Tensor) -> Tensor:
        """Signals near 1, and near 0 where their mean is subtracted."""
        scale, _ = _unit(extent.largest)
        return extent.shifted(x * scale, scale) if self.zero_mean else x * scale


@dataclass(frozen=True)
class PermutedRatio(AudioTerm):
    """The mean ratio of the sources of `(N, S, T)`, with preds in the order of sources in which it is best.

    Args:
        term: the ratio of a pair of sources; or, with the layout "sources", of all of them in one order.
        largest: whether the best is the largest; otherwise it is the smallest.
    """

    term: EnergyRatio
    largest: bool = True

    name = "permutation-invariant signal ratio"

    @property
    def together(self) -> bool:
        """Whether sources are measured together, in every order that they can have."""
        return self.term.layout == "sources"

    def check(self, layout: BatchLayout) -> None:
        spectra = self.term.layout == "spectra"
        dims = 1 + _DIMS[self.term.layout] - self.together - (spectra and layout.preds.dtype.is_complex)
        if len(layout.preds.tail) != dims:
            expected = f"{dims + 1} dimensions, (N, S, ...)"
            do = "Put the sources behind the samples, as preds[:, None] for one"
            raise ShapeError(describe("preds", f"shape {shown(layout.preds.tail)}", expected, do))
        self.term.check(layout)
        sources, most = layout.preds.tail[0], MOST_PERMUTED if self.together else MOST_SOURCES
        if sources > most:
            do = "Use a metric of single signals, such as SignalNoiseRatio" if self.together else "Give fewer sources"
            raise ShapeError(describe("preds", f"{sources} sources", f"at most {most}", do))

    def measure(self, preds: Tensor, target: Tensor, compiled: bool) -> tuple[Tensor, Tensor]:
        return (self._of_orders if self.together else self._of_pairs)(preds, target, compiled)

    def _of_orders(self, preds: Tensor, target: Tensor, compiled: bool) -> tuple[Tensor, Tensor]:
        """The best of all orders, each measured as a whole."""
        best, faults = self.term.measure(preds, target, compiled)
        orders = list(permutations(range(preds.shape[1])))[1:]
        for some in (orders[k : k + _TOGETHER] for k in range(0, len(orders), _TOGETHER)):
            picked = torch.stack([preds[:, k] for order in some for k in order], 1)
            ordered = picked.view(len(preds), len(some), *preds.shape[1:])
            values, _ = self.term.measure(ordered, target[:, None].expand_as(ordered), compiled)
            several = values.view(len(preds), -1)
            best = torch.maximum(best, several.amax(1)) if self.largest else torch.minimum(best, several.amin(1))
        return best, faults

    def _of_pairs(self, preds: Tensor, target: Tensor, compiled: bool) -> tuple[Tensor, Tensor]:
        """The best assignment of preds to targets, from the ratio of each pair."""
        sources = preds.shape[1]
        values, faults = self.term.measure_pairs(preds, target, compiled)
        sign = 1 if self.largest else -1
        ratios = values * sign
        best = {0: torch.zeros_like(ratios[:, 0, 0])}  # for the first targets, with each set of as many preds
        for taken in range(1, 1 << sources):
            row = taken.bit_count() - 1
            ways = [
                (best[taken ^ 1 << k] + ratios[:, row, k]).nan_to_num(-math.inf, math.inf, -math.inf)
                for k in range(sources)
                if taken >> k & 1
            ]
            best[taken] = torch.stack(ways).amax(0)
        return best[(1 << sources) - 1] * (sign / sources), faults.flatten(2).any(2)


def _sides(preds: TensorLayout, target: TensorLayout | None) -> tuple[tuple[str, TensorLayout | None], ...]:
    return ("preds", preds), ("target", target)


def _float(x: Tensor, other: Tensor) -> Tensor:
    """As float32, or float64 where one of both is."""
    return x.to(torch.float64 if torch.float64 in (x.dtype, other.dtype) else torch.float32)


@dataclass(frozen=True, eq=False)
class _Extent:
    """The smallest and largest value of each signal, `(rows, channels, 1)`."""

    low: Tensor
    high: Tensor

    @classmethod
    def of(cls, x: Tensor) -> _Extent:
        return cls(x.amin(2, keepdim=True), x.amax(2, keepdim=True))

    @property
    def largest(self) -> Tensor:
        """The largest absolute value of each row, `(rows, 1, 1)`; NaN where one is."""
        return torch.maximum(self.high, -self.low).amax(1, keepdim=True)

    def is_silent(self, zero_mean: bool) -> Tensor:
        """Which rows have only zeros, or only constant signals where their mean does not count: `(rows, 1, 1)`."""
        return (self.low == self.high).all(1, keepdim=True) if zero_mean else self.largest == 0

    def shifted(self, x: Tensor, scale: Tensor) -> Tensor:
        """Signals, scaled, without their offset where that is larger than their range: no difference is rounded."""
        low, high = self.low * scale, self.high * scale
        middle = (low + high) * 0.5
        return x.sub_(torch.where(middle.abs() >= high - low, middle, 0))


def _is_finite(largest: Tensor) -> Tensor:
    return (largest - largest) == 0


def _unit(largest: Tensor) -> tuple[Tensor, Tensor]:
    """The power of two that brings values into [1, 2), and the exponent of each."""
    kind, bits, bias = _FORMATS[largest.dtype]
    field = (largest.contiguous().view(kind) >> bits).clamp(1, 2 * bias - 1)
    return ((2 * bias - field) << bits).view(largest.dtype), field.to(torch.int64) - bias


def _error(preds: Tensor, target: Tensor, largest: Tensor) -> tuple[Tensor, Tensor]:
    """`preds - target` times a power of two, with its exponent: rounded once."""
    whole = not (preds.dtype.is_floating_point and target.dtype.is_floating_point)
    p, t = (difference(preds, target), None) if whole else (_float(preds, target), _float(target, preds))
    scale, exponent = _unit(_Extent.of(p).largest if t is None else largest)
    return p * scale if t is None else (p * scale).sub_(t * scale), exponent


def _centred(x: Tensor) -> Tensor:
    """Signals near 0 without their means; 0 where they are that."""
    flat = x.flatten(0, 1)
    return x - (sum_by_halves(flat) / flat.shape[1]).view(*x.shape[:2], 1)


def _without_multiple(p: Tensor, factor: Tensor, t: Tensor) -> Tensor:
    """`p - factor * t`, also where little is left: the products of halves of significands are exact."""
    factor_high, factor_low = _halves(factor)
    high, low = _halves(t)
    return (p - factor_high * high).sub_(factor_high * low).sub_(factor_low * t)


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    """Two numbers whose sum is `x`, each with half as many binary digits."""
    kind, bits, _ = _FORMATS[x.dtype]
    high = (x.contiguous().view(kind) & -(1 << (bits + 2) // 2)).view(x.dtype)
    return high, x - high


def _energy(x: Tensor) -> Tensor:
    return _sum_each(x * x)


def _sum_each(x: Tensor) -> Tensor:
    """The sum of each row of `(rows, channels, T)`, of shape `(rows, 1, 1)`."""
    return sum_by_halves(x.flatten(1)).view(-1, 1, 1)


def sum_by_halves(x: Tensor) -> Tensor:
    """The sum of each row of `(rows, columns)`: the second half is added to the first, until one column is left.

    Additions of tensors have no order that depends on the number of rows, or on the device.
    """
    total = x[:, : (x.shape[1] + 1) // 2].clone()
    rest = x[:, total.shape[1] :]
    while True:
        total[:, : rest.shape[1]] += rest
        if total.shape[1] == 1:
            return total[:, 0]
        half = (total.shape[1] + 1) // 2
        total, rest = total[:, :half], total[:, half:]


def _in_decibels(ratio: Tensor, exponent: Tensor) -> Tensor:
    """`10 log10(ratio 2**exponent)`; -inf for 0.

    Only the significand of the ratio goes through the logarithm, so a power of two that moves between both arguments
    changes no bit.
    """
    kind, bits, bias = _FORMATS[ratio.dtype]
    field = ratio.contiguous().view(kind)
    significand = ((field & ((1 << bits) - 1)) | (bias << bits)).view(ratio.dtype)
    whole = (field >> bits) - bias + exponent
    values = significand.log() * _DECIBELS + whole.to(ratio.dtype) * (_DECIBELS * math.log(2))
    return torch.where(ratio == 0, -math.inf, torch.where(ratio == math.inf, math.inf, values))


def _in_decibels_by_numpy(ratio: Tensor, exponent: Tensor) -> Tensor:
    """The same of float32 in host memory: the operators of NumPy take half the time for a few numbers."""
    _, bits, bias = _FORMATS[torch.float32]
    field = ratio.numpy().view(np.int32)
    significand = torch.from_numpy(((field & ((1 << bits) - 1)) | (bias << bits)).view(np.float32))
    whole = (field >> bits) - bias + exponent.numpy()
    values = significand.log().mul_(_DECIBELS).numpy()
    values += whole.astype(np.float32) * np.float32(_DECIBELS * math.log(2))
    numbers = ratio.numpy()
    if not (numbers.all() and np.isfinite(numbers).all()):
        values[numbers == 0], values[numbers == math.inf] = -math.inf, math.inf
    return torch.from_numpy(values)


def _faults(finite: Tensor, no_target: Tensor, no_preds: Tensor) -> Tensor:
    """For which rows each fault is the first, of signals that are finite and of those that are silent: `(3, rows)`."""
    no_target, no_preds = no_target & finite, no_preds & finite
    return torch.stack([each.flatten() for each in (~finite, no_target, no_preds & ~no_target)])
