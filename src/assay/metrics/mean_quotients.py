"""Weighted means of quotients of integers, of many rows at a time: two floats for each number, with their error."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SPLIT = float((1 << 27) + 1)
_EXACT = float(1 << 53)
"""Integers up to here are floats."""
_ROUNDING = 2.0**-100
"""The error of a step, as a part of the numbers that are added, and some more."""
_TRUNCATION = 2.0**-126
"""By how much integers that are divided one by one, and rounded down, may be below the quotient, and some more."""


def mean_quotients(above: Floats, below: Floats, weights: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The means of `above / below` over the columns, each rounded once, and for which rows that is certain.

    Args:
        above: integers, `(rows, columns)`.
        below: positive integers of the same shape.
        weights: integers of the same shape, 0 or more.

    Example:
        >>> one, two = np.array([[1.0, 2.0]]), np.array([[3.0, 3.0]])
        >>> mean_quotients(one, two, np.ones((1, 2)))
        (array([0.5]), array([ True]))

    Source: T. Dekker, A floating-point technique for extending the available precision, Numerische Mathematik 18
    (1971).
    """
    with np.errstate(all="ignore"):
        terms, low_terms = _product(weights, above / below)
        low_terms += weights * _rest(above, above / below, below)
        total, low, size = np.zeros(len(above)), np.zeros(len(above)), abs(terms).sum(1)
        for term, low_term in zip(terms.T.copy(), low_terms.T.copy(), strict=True):
            together = total + term
            other = together - total
            low += ((total - (together - other)) + (term - other)) + low_term
            total = together
        among = weights.sum(1)
        mean = total / among
        low = _rest(total, mean, among) + low / among
        rounded = mean + low
        low -= rounded - mean
        error = (_ROUNDING * (1 + len(terms.T)) ** 2 * size / among + _TRUNCATION) * (size > 0)
        is_certain = (rounded + (low + error) == rounded) & (rounded + (low - error) == rounded)
        for each in (abs(above), below, weights.sum(1, keepdims=True)):
            is_certain &= each.max(1, initial=0) <= _EXACT
    return rounded, is_certain


def _product(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """A product, and by how much it is rounded."""
    product = x * y
    (x, low_x), (y, low_y) = _split(x), _split(y)
    return product, ((x * y - product) + x * low_y + low_x * y) + low_x * low_y


def _split(x: Floats) -> tuple[Floats, Floats]:
    """A float as the sum of two with 26 digits."""
    scaled = _SPLIT * x
    high = scaled - (scaled - x)
    return high, x - high


def _rest(x: Floats, quotient: Floats, y: Floats) -> Floats:
    """What the quotient lacks to be `x / y`."""
    product, rounded = _product(quotient, y)
    return ((x - product) - rounded) / y
