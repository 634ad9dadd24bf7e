"""Exact sums of many cells with the words that are in use."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from assay.tally.sums import windowed
from assay.tally.sums.windowed import WindowedSums

RANDOM = np.random.default_rng(1)


def numbers(kind, count=3000):
    if kind == "losses":
        return RANDOM.exponential(size=count).astype(np.float32).astype(np.float64)
    if kind == "wide":
        return RANDOM.normal(size=count) * 10.0 ** RANDOM.integers(-300, 300, count)
    if kind == "tiny":
        return RANDOM.choice([5e-324, -5e-324, 2.5e-310, 0.0], count)
    return RANDOM.choice([0.0, -0.0, 1.0, -3.5, 1e16], count)


def exactly(values, cells, count):
    found = [Fraction(0)] * count
    for value, cell in zip(values.tolist(), cells.tolist(), strict=True):
        found[cell] += Fraction(value)
    return found


def read(sums, cells):
    values, unit = sums.integers(cells)
    return [value * Fraction(2) ** unit for value in values]


@pytest.mark.parametrize("carried", [1, 1 << 28])
@pytest.mark.parametrize("kind", ["losses", "wide", "tiny", "few"])
def test_sums_are_exact_and_have_one_form(kind, carried, monkeypatch):
    monkeypatch.setattr(windowed, "_MOST", carried)
    monkeypatch.setattr(windowed.exact, "CHUNK_ROWS", 700)
    values, cells = numbers(kind), RANDOM.integers(0, 7, 3000)
    one = WindowedSums.zeros(7)
    one.add(values, cells)
    assert read(one, 7) == exactly(values, cells, 7)
    other = WindowedSums.zeros(0)
    order = RANDOM.permutation(3000)
    for some in np.array_split(order, 5):
        part = WindowedSums.zeros(7)
        part.add(values[some], cells[some])
        other.reserve(7)
        other.add_tensors(part.tensors(7), np.arange(7))
    for (name, expected), found in zip(one.tensors(7).items(), other.tensors(7).values(), strict=True):
        assert torch.equal(expected, found), name


def test_words_are_few_where_numbers_are_near_each_other():
    sums = WindowedSums.zeros(100)
    sums.add(numbers("losses"), RANDOM.integers(0, 100, 3000))
    assert sums.words.shape[1] <= 6


def test_cells_of_another_order_are_added_where_they_belong():
    first, second = WindowedSums.zeros(2), WindowedSums.zeros(2)
    first.add(np.array([1.0, 2.0]), np.array([0, 1]))
    second.add(np.array([2.0**70, 2.0**-70]), np.array([0, 1]))
    first.add_tensors(second.tensors(2), np.array([1, 0]))
    assert read(first, 2) == [1 + Fraction(2) ** -70, 2 + Fraction(2) ** 70]
    first.add_tensors(WindowedSums.zeros(2).tensors(2), np.array([0, 1]))
    assert read(WindowedSums.zeros(3), 3) == [0, 0, 0]
