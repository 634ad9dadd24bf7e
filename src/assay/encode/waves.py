"""Numbers of pairs of signals that take a solver or a program of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from assay.encode.pairs import Floats, PairEncoder


@dataclass(frozen=True)
class WaveEncoder(PairEncoder):
    """A number of two signals, `(T,)` each."""

    takes: ClassVar[str] = "signals"
    shape: ClassVar[str] = "(T,)"
    dims: ClassVar[int] = 1


@dataclass(frozen=True)
class DistortionRatio(WaveEncoder):
    """The signal-to-distortion ratio of BSS Eval: that of the part of preds that a filter makes of the target.

    Args:
        filter_length: how many coefficients the filter has.
        zero_mean: the means of both are subtracted first.
        load_diag: what is added to the energy of the target, of 1, when the filter is solved for.
    """

    filter_length: int = 512
    zero_mean: bool = False
    load_diag: float | None = None

    def number(self, preds: Floats, target: Floats) -> float:
        from scipy import fft

        p, t = (_unit(name, each, self.zero_mean) for name, each in (("preds are", preds), ("the target is", target)))
        size = fft.next_fast_len(len(p) + self.filter_length, real=True)
        spectrum_p, spectrum_t = fft.rfft(p, size), fft.rfft(t, size)
        own = fft.irfft(np.abs(spectrum_t) ** 2, size)[: self.filter_length]
        common = fft.irfft(spectrum_t.conj() * spectrum_p, size)[: self.filter_length]
        own[0] += self.load_diag or 0.0
        coefficients = _solve(own, common)
        if self.load_diag:
            signal = float(common @ coefficients)
            error = 1 - signal
        else:
            made = fft.irfft(spectrum_t * fft.rfft(coefficients, size), size)
            rest = np.zeros(size)
            rest[: len(p)] = p
            signal, error = float(made @ made), float(np.sum((rest - made) ** 2))
        with np.errstate(divide="ignore"):
            return float(10 * (np.log10(signal) - np.log10(error)))


def _unit(name: str, x: Floats, zero_mean: bool) -> Floats:
    """A signal of an energy of 1."""
    if zero_mean:
        x = x - (x.min() * 0.5 + x.max() * 0.5)
        x = x - x.mean()
    largest = np.abs(x).max()
    if largest == 0:
        raise ValueError(f"{name} silent")
    x = x / largest
    unit: Floats = x / np.sqrt(x @ x)
    return unit


def _solve(own: Floats, common: Floats) -> Floats:
    """The solution of the symmetric Toeplitz system; the shortest one where there are several."""
    from scipy.linalg import LinAlgError, lstsq, solve_toeplitz, toeplitz

    try:
        solution: Floats = solve_toeplitz(own, common, check_finite=False)
    except LinAlgError:
        solution = np.full_like(common, np.nan)
    matrix = None
    if not np.isfinite(solution).all():
        matrix = toeplitz(own)
        solution = lstsq(matrix, common)[0]
    return solution


@dataclass(frozen=True)
class BestOrder(PairEncoder):
    """The mean number of the sources of `(S, T)`, with preds assigned to the targets for which it is best.

    Args:
        single: what gives the number of a source.
        largest: whether the best is the largest; otherwise it is the smallest.
    """

    single: WaveEncoder
    largest: bool = True

    takes: ClassVar[str] = "sources"
    shape: ClassVar[str] = "(S, T)"
    dims: ClassVar[int] = 2

    def number(self, preds: Floats, target: Floats) -> float:
        from scipy.optimize import linear_sum_assignment

        numbers = np.array([[self.single.number(own, true) for own in preds] for true in target])
        order = linear_sum_assignment(np.clip(numbers, -1e6, 1e6), maximize=self.largest)
        return float(numbers[order].mean())
