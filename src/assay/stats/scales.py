"""Functions of a mean that always rise, or always fall: the interval of the mean gives that of the value.

The root of a mean squared error, a perplexity and a ratio in decibels are such values. Their own errors are skewed, and
an interval that is symmetric for them misses too often; the ends of the mean's interval are their ends as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from assay.stats.intervals import Array, Ends

Function: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True)
class Scale:
    """A function of means, for floats and arrays.

    Attributes:
        of: the value of a mean.
        mean: the mean of a value.
        slope: how fast the value changes with the mean, at a mean.
        falls: whether the value falls where the mean rises.
    """

    of: Function
    mean: Function
    slope: Function
    falls: bool = False

    def ends(self, lower: float, upper: float) -> Ends:
        """The ends of a value, from those of the mean; the nearest that a value can be where these are no means."""
        with np.errstate(all="ignore"):
            first, second = float(self.of(np.float64(lower))), float(self.of(np.float64(upper)))
        return (second, first) if self.falls else (first, second)

    def end(self, name: str) -> str:
        """Which end of the value an end of the mean is: of ``"lower"``, ``"upper"``, ``"both"`` or none."""
        return {"lower": "upper", "upper": "lower"}.get(name, name) if self.falls else name

    def around(self, means: Array, mean: float) -> Array:
        """What samples contribute to the value, to first order: numbers whose mean is the value."""
        with np.errstate(all="ignore"):
            at = np.float64(mean)
            return np.asarray(self.of(at) + self.slope(at) * (means - at))


def _decibels(mean: Any) -> Any:
    return -10 * np.log10(np.maximum(mean, 0))


SCALES = {
    "": Scale(lambda mean: mean, lambda value: value, lambda mean: 1.0),
    "root": Scale(lambda mean: np.sqrt(np.maximum(mean, 0)), np.square, lambda mean: 0.5 / np.sqrt(mean)),
    "exponential": Scale(np.exp, np.log, np.exp),
    "decibels": Scale(_decibels, lambda value: 10 ** (-value / 10), lambda mean: -10 / np.log(10) / mean, falls=True),
}
"""By name: the mean itself, its root, its exponential, and ``-10 log10`` of it."""
