"""Metrics of audio by their definitions, of single signals in NumPy."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def decibels(signal: Array, error: Array) -> float:
    with np.errstate(divide="ignore"):
        return float(10 * np.log10(np.sum(signal**2) / np.sum(error**2)))


def centred(x: Array, zero_mean: bool) -> Array:
    return x - x.mean(-1, keepdims=True) if zero_mean else x


def snr(preds: Array, target: Array, zero_mean: bool = False) -> float:
    p, t = (centred(each.astype(np.float64), zero_mean) for each in (preds, target))
    return decibels(t, centred(preds.astype(np.float64) - target.astype(np.float64), True) if zero_mean else p - t)


def si_sdr(preds: Array, target: Array, zero_mean: bool = False) -> float:
    p, t = (centred(each.astype(np.float64), zero_mean).ravel() for each in (preds, target))
    p, t = p / np.abs(p).max(), t / np.abs(t).max()
    projection = np.dot(p, t) / np.dot(t, t) * t
    return decibels(projection, p - projection)


def sa_sdr(preds: Array, target: Array, scale_invariant: bool = True, zero_mean: bool = False) -> float:
    p, t = (centred(each.astype(np.float64), zero_mean) for each in (preds, target))
    factor = np.sum(p * t) / np.sum(t * t) if scale_invariant else 1.0
    return decibels(factor * t, p - factor * t)


def c_si_snr(preds: Array, target: Array, zero_mean: bool = False) -> float:
    return si_sdr(*(each.reshape(-1) for each in (preds, target)), zero_mean)
