"""Moments of more numbers than should be in memory at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np

from assay.stats.intervals import Array


@dataclass(frozen=True)
class SampleMoments:
    """What is known of some numbers.

    Attributes:
        count: how many there are.
        mean: their mean, correctly rounded.
        deviation: their standard deviation, with ``n - 1``.
        skewness: of their mean: their own over ``sqrt(n)``.
        least: the smallest of them.
        largest: the largest of them.
    """

    count: int
    mean: float
    deviation: float
    skewness: float
    least: float
    largest: float

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.deviation / math.sqrt(self.count)

    @classmethod
    def of(cls, chunks: Callable[[], Iterable[Array]]) -> SampleMoments:
        """The moments of two or more finite numbers. Neither their order nor how they are split changes a bit.

        Args:
            chunks: gives the numbers, some at a time, whenever it is called.

        Example:
            >>> import numpy as np
            >>> SampleMoments.of(lambda: [np.array([1.0, 2.0]), np.array([6.0])]).mean
            3.0
        """
        count, least, largest = 0, math.inf, -math.inf
        for chunk in chunks():
            if len(chunk):
                count += len(chunk)
                least, largest = min(least, float(chunk.min())), max(largest, float(chunk.max()))
        mean = exact_sum(chunks()) / count
        unit = max(largest - mean, mean - least)  # powers of very large or small numbers leave what a float can hold
        if not unit:
            return cls(count, mean, 0.0, 0.0, least, largest)
        squares = exact_sum(((chunk - mean) / unit) ** 2 for chunk in chunks())
        cubes = exact_sum(((chunk - mean) / unit) ** 3 for chunk in chunks())
        return cls(count, mean, unit * math.sqrt(squares / (count - 1)), cubes / squares**1.5, least, largest)


def power_of_two(*numbers: Array | float) -> float:
    """The power of two below the largest of finite numbers, 1 of zeros; divided by it, their powers stay in range.

    Multiplied and divided by powers of two, floats keep all their digits.

    Example:
        >>> import numpy as np
        >>> power_of_two(np.array([3.0, -5.0]), 1.0), power_of_two(0.0)
        (4.0, 1.0)
    """
    largest = max((float(np.abs(each).max()) for each in numbers if np.size(each)), default=0.0)
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0


def exact_sum(chunks: Iterable[Array]) -> float:
    """The sum of numbers, correctly rounded: their order does not matter."""
    return math.fsum(chain.from_iterable(chunk.tolist() for chunk in chunks))
