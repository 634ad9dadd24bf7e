"""Moments of numbers that come some at a time: those of exact arithmetic, whatever the order."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from assay.stats.moments import SampleMoments


def exact(values):
    """Mean, standard deviation and skewness of the mean, from fractions."""
    numbers = [Fraction(each) for each in values.tolist()]
    mean = sum(numbers) / len(numbers)
    squares, cubes = (sum((each - mean) ** power for each in numbers) for power in (2, 3))
    return float(mean), float(squares / (len(numbers) - 1)) ** 0.5, float(cubes) / float(squares) ** 1.5


@pytest.mark.parametrize("scale", [1.0, 1e150, 1e-150])
def test_moments_are_those_of_fractions_in_any_order(scale):
    random = np.random.default_rng(4)
    values = scale * np.concatenate([random.exponential(size=300), [1e4, -1e-9]])
    found = SampleMoments.of(lambda: np.array_split(values, 7))
    assert (found.mean / scale, found.deviation / scale) == pytest.approx(exact(values / scale)[:2], rel=1e-12)
    assert found.skewness == pytest.approx(exact(values / scale)[2], rel=1e-12)
    shuffled = random.permutation(values)
    assert SampleMoments.of(lambda: np.array_split(shuffled, 3)) == found
    assert (found.count, found.least, found.largest) == (302, values.min(), values.max())


def test_equal_numbers_have_no_spread():
    found = SampleMoments.of(lambda: [np.full(3, 0.1), np.full(4, 0.1), np.empty(0)])
    assert (found.mean, found.deviation, found.skewness, found.error) == (0.1, 0.0, 0.0, 0.0)
