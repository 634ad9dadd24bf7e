"""Sums by NumPy against the same sums in tables, to the bit, and against exact rationals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.tally.base import Batch
from assay.tally.sums import exact, modular_sums, sums
from assay.tally.sums.float_terms import SquaredLogError
from assay.tally.sums.sums import Sums
from assay.tally.sums.terms import PREDS, TARGET, AbsoluteError, AbsoluteValue, Product, Term

CPU = torch.device("cpu")
XX, XY, YY = Product(PREDS, PREDS), Product(PREDS, TARGET), Product(TARGET, TARGET)
TERMS: frozenset[Term] = frozenset({PREDS, TARGET, XX, XY, YY, AbsoluteError(), AbsoluteValue("target")})
PLACES = [[0], [1], [0, 0], [0, 1], [1, 1], [0, 1, 2]]


@pytest.fixture(autouse=True)
def without_library(monkeypatch) -> None:
    monkeypatch.setattr(sums, "takes", lambda *columns, dtypes: False)


def drawn(kind: str, rows: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    normal = torch.randn(rows, generator=generator)
    match kind:
        case "normal":
            return normal
        case "offset":
            return normal + 1e6
        case "whole":
            return torch.randint(-9, 9, (rows,), generator=generator).float()
        case "few low":
            return normal.index_fill(0, torch.randint(rows, (20,), generator=generator), 1e-30)
        case "denormal":
            return normal.index_fill(0, torch.randint(rows, (20,), generator=generator), 2.0**-149)
        case "lognormal":
            return (4 * torch.randn(rows, generator=generator)).exp() * normal.sign()
        case "largest":
            return torch.full((rows,), torch.finfo(torch.float32).max) * normal.sign()
        case "cancelling":
            return torch.cat([normal, -normal.flip(0), torch.full((1,), 2.0**-140)])[:rows]
        case "zero":
            return torch.zeros(rows)
    raise AssertionError(kind)


KINDS = ["normal", "offset", "whole", "few low", "denormal", "lognormal", "largest", "cancelling", "zero"]
ALWAYS = {"normal", "offset", "whole", "few low", "denormal", "largest", "zero"}


def rational(columns: list[np.ndarray], places: list[int]) -> Fraction:
    rows = zip(*(columns[k].tolist() for k in places), strict=True)
    return sum((math.prod(map(Fraction, row)) for row in rows), Fraction(0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 2, 1000, 1025])
def test_sums_are_the_rational_ones(kind: str, rows: int) -> None:
    columns = [drawn(kind, rows, seed).numpy() for seed in range(3)]
    for places in (PLACES[:5], PLACES[:2], PLACES):
        found = modular_sums.sums_of_products(columns, places)
        assert found is not None or kind not in ALWAYS
        for value, of_columns in zip(found or (), places, strict=found is not None):
            assert value * Fraction(2) ** (-149 * len(of_columns)) == rational(columns, of_columns)


@given(st.lists(st.tuples(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 3), min_size=1, max_size=40))
def test_sums_of_any_floats_are_the_rational_ones(rows: list[tuple[float, float, float]]) -> None:
    columns = [np.array(column, dtype=np.float32) for column in zip(*rows, strict=True)]
    found = modular_sums.sums_of_products(columns, PLACES)
    assert found is not None
    for value, of_columns in zip(found, PLACES, strict=True):
        assert value * Fraction(2) ** (-149 * len(of_columns)) == rational(columns, of_columns)


def test_sums_of_the_most_bits_are_exact() -> None:
    rows = 1 << 15
    column = np.full(rows, 2.0**18 - 2.0**-6, dtype=np.float32)
    column[::2] = 2.0**-1 + 2.0**-24  # as far below the largest as 42 bits reach
    found = modular_sums.sums_of_products([column], [[0], [0, 0]])
    assert found is not None
    values = [Fraction(float(x)) for x in column[:2]]
    assert [Fraction(x) * Fraction(2) ** (-149 * k) for k, x in enumerate(found, 1)] == [
        rows // 2 * sum(value**k for value in values) for k in (1, 2)
    ]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_left_to_tables(value: float) -> None:
    column = np.array([1.0, value], dtype=np.float32)
    assert modular_sums.sums_of_products([column], [[0]]) is None


def test_numbers_that_spread_too_far_are_left_to_tables() -> None:
    column = np.where(np.arange(5000) % 2 > 0, 1, 1e-30).astype(np.float32)
    assert modular_sums.sums_of_products([column], [[0, 0]]) is None


def state_of(tally: Sums, batch: Batch) -> dict[str, list]:
    state = tally.zero(CPU)
    tally.add(state, batch)
    return {name: value.tolist() for name, value in tally.canonicalize(state, len(batch.preds)).items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [1024, 40_000])
def test_states_are_those_of_tables(kind: str, weighted: bool, rows: int) -> None:
    x, y = drawn(kind, rows, 1), drawn(kind, rows, 2)
    weights = drawn("whole", rows, 3).abs() if weighted else None
    for tally in (Sums(TERMS, None, weighted), Sums(frozenset({PREDS, SquaredLogError()}), None, weighted)):
        fast, slow = (Batch(x, y, weights, 1 << 15, compiled) for compiled in (True, False))
        assert state_of(tally, fast) == state_of(tally, slow)


def test_outputs_and_chunks_that_are_not_finite_are_those_of_tables() -> None:
    x, y = drawn("normal", 90_000, 1).view(-1, 3), drawn("offset", 90_000, 2).view(-1, 3)
    x[40, 1], y[20_000, 2] = math.inf, math.nan
    tally = Sums(TERMS, 3)
    assert state_of(tally, Batch(x, y, compiled=True)) == state_of(tally, Batch(x, y))


@pytest.mark.parametrize("kind", ["normal", "few low", "cancelling"])
def test_it_is_used_where_it_is_faster(kind: str, monkeypatch) -> None:
    monkeypatch.setattr(exact, "add_columns", None)
    x = drawn(kind, 5000, 1)
    state_of(Sums(TERMS), Batch(x, drawn("normal", 5000, 2), compiled=True))


@given(st.lists(st.tuples(st.integers(-(2**300), 2**300), st.integers(0, 900)), min_size=1, max_size=12))
def test_integers_add_up_in_limbs(numbers: list[tuple[int, int]]) -> None:
    limbs = torch.zeros(1, exact.num_limbs(1), dtype=torch.int64)
    for value, bit in numbers:
        exact.add_integer(limbs[0], value, bit)
        assert int(limbs.abs().max()) < 2**33
    assert exact.to_integers(limbs).tolist() == [sum(value << bit for value, bit in numbers)]
