"""Weights as integers: sums of them are exact, and each ratio of two sums is one of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def integer_weights(weights: Array) -> tuple[Array, int]:
    """Finite weights of 0 or more as integers in units of `2 ** unit`, and the unit, of at most 0.

    Args:
        weights: floats or integers, of any shape; integers stay as they are.

    Returns:
        Integers of that shape, int64 where their sum fits, else Python integers; and the unit.

    Example:
        >>> integer_weights(np.array([0.5, 3.0, 0.25]))
        (array([ 2, 12,  1]), -2)
    """
    if weights.dtype.kind == "f":
        significand, exponent = np.frexp(weights.astype(np.float64))
        whole, exponent = (significand * 2.0**53).astype(np.int64), exponent.astype(np.int64) - 53
    else:
        whole, exponent = weights.astype(np.int64), np.zeros(weights.shape, np.int64)
    zeros = np.where(whole != 0, np.frexp((whole & -whole).astype(np.float64))[1] - 1, 0)  # at the low end of each
    odd, place = whole >> zeros, np.where(whole != 0, exponent + zeros, 0)
    unit = min(0, int(place.min(initial=0)))
    shift = place - unit
    bits = np.frexp(odd.astype(np.float64))[1] + shift
    if int(bits.max(initial=0)) + whole.size.bit_length() < 62:
        return odd << shift, unit
    large = np.empty(weights.size, dtype=object)
    large[:] = [w << s for w, s in zip(odd.ravel().tolist(), shift.ravel().tolist(), strict=True)]
    return large.reshape(weights.shape), unit
