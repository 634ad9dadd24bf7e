"""Quotients of sums by compiled code against those of Python's integers and fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.metrics.exact_arithmetic import over_root, root
from assay.native.library import library
from assay.native.quotients import (
    ADD,
    LOAD,
    MULTIPLY,
    SUBTRACT,
    Quotients,
    Root,
    StateQuotient,
    quotient_steps,
    quotients,
)

pytestmark = pytest.mark.skipif(library() is None, reason="assay has no compiled code here")

WORDS = 14
LARGEST = 1 << 400


def limbs(numbers: list[int], shuffled: bool = False) -> torch.Tensor:
    """Words of integers: the canonical ones, or others that carry to those."""
    rows = []
    for number in numbers:
        words = [number >> (32 * k) & 0xFFFFFFFF for k in range(WORDS - 1)] + [number >> (32 * (WORDS - 1))]
        if shuffled:
            words = [words[0] + (1 << 32), *words[1:]]
            words[1] -= 1
        rows.append(words)
    return torch.tensor(rows)


def divided(above: list[int], below: list[int], root: Root = "", unit: int = 0, shuffled: bool = False) -> Quotients:
    tables = [limbs(above, shuffled), limbs(below, shuffled)]
    program = quotient_steps([(LOAD, 0, 0), (LOAD, 1, 0)], 0, 1, root, unit)
    return quotients(len(above), [number for table in tables for number in (table.data_ptr(), WORDS)], program)


integers = st.integers(-LARGEST, LARGEST)
divisors = st.integers(1, LARGEST)


@given(st.lists(st.tuples(integers, divisors), min_size=2, max_size=20), st.booleans())
def test_quotients_are_rounded_once(pairs, shuffled):
    above, below = map(list, zip(*pairs, strict=True))
    result = divided(above, below, shuffled=shuffled)
    assert result.values.tolist() == [a / b for a, b in pairs]
    assert not result.doubtful
    for (a, b), value, rest in zip(pairs, result.values.tolist(), result.rests.tolist(), strict=True):
        assert abs(Fraction(value) + Fraction(rest) - Fraction(a, b)) <= abs(Fraction(a, b)) / 2**97


@given(integers, divisors)
def test_a_single_quotient_is_a_number(above, below):
    result = divided([above], [below])
    assert result.values.shape == ()
    assert result.values.item() == above / below


@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_ties_go_to_even_and_what_lies_beside_them_to_its_side(beside):
    numbers = random.Random(beside)
    significands = [numbers.getrandbits(54) | 1 for _ in range(500)] + [(1 << k) + d for k in (53, 54) for d in (-1, 1)]
    divisors = [numbers.choice([1, 1 << numbers.randrange(120), 1 + numbers.getrandbits(120)]) for _ in significands]
    above = [s * b * (1 << numbers.randrange(100)) + beside for s, b in zip(significands, divisors, strict=True)]
    above += [-number for number in above]
    result = divided(above, divisors * 2)
    assert result.values.tolist() == [a / b for a, b in zip(above, divisors * 2, strict=True)]
    assert not result.doubtful


@given(st.lists(st.tuples(integers, divisors), min_size=1, max_size=20))
def test_roots_are_rounded_once_or_in_doubt(pairs):
    above, below = map(list, zip(*pairs, strict=True))
    expected = {
        "of the quotient": lambda a, b: root(Fraction(a, b)),
        "of the divisor": lambda a, b: over_root(Fraction(a), Fraction(b)),
    }
    for kind, exactly in expected.items():
        result = divided(above, below, kind)
        for k, (a, b) in enumerate(pairs):
            assert k in result.doubtful or result.values.view(-1)[k].item() == exactly(a, b)
            assert k not in result.doubtful or (kind == "of the quotient" and a < 0)


@pytest.mark.parametrize("root_of", ["of the quotient", "of the divisor"])
def test_a_root_half_way_between_floats_is_left_to_fractions(root_of):
    tie = 2**53 + 1
    result = divided([tie**2 if root_of == "of the quotient" else tie], [1], root_of)
    assert result.doubtful == [0]


@pytest.mark.parametrize(("above", "below"), [(1, 0), (0, 0), (1, -1), (0, -3)])
def test_what_is_no_quotient_is_in_doubt(above, below):
    assert divided([above], [below]).doubtful == [0]


@pytest.mark.parametrize("unit", [-1200, -1000, 1000, 1200])
def test_what_has_fewer_digits_or_overflows_is_in_doubt(unit):
    assert divided([3], [7], unit=unit).doubtful == [0]


@given(*[st.integers(-(1 << 180), 1 << 180)] * 3, st.integers(-(1 << 62), 1 << 62), divisors)
def test_polynomials_are_exact(x, y, z, count, below):
    table = limbs([x, y, z, below])
    number = torch.tensor([count])
    inputs = [number for k in range(4) for number in (table[k].data_ptr(), WORDS)] + [number.data_ptr(), 1]
    loads = [(LOAD, k, 0) for k in range(5)]
    steps = [*loads, (MULTIPLY, 4, 0), (MULTIPLY, 1, 2), (SUBTRACT, 5, 6), (ADD, 7, 7)]
    result = quotients(1, inputs, quotient_steps(steps, 8, 3, "", 0))
    assert result.values.item() == 2 * (count * x - y * z) / below
    assert not result.doubtful


def test_an_integer_of_too_many_words_is_in_doubt():
    steps = [(LOAD, 0, 0), *((MULTIPLY, k, k) for k in range(5)), (LOAD, 1, 0)]
    table = limbs([(1 << 400) - 1, 1])
    inputs = [table[0].data_ptr(), WORDS, table[1].data_ptr(), WORDS]
    assert quotients(1, inputs, quotient_steps(steps, 5, 6, "", 0)).doubtful == [0]


@pytest.mark.parametrize("bad", [None, 0, 4])
def test_a_quotient_of_a_state_is_none_where_a_flaw_is_not_zero(bad):
    state = {"flaws": torch.zeros(5, dtype=torch.int64), "sums": limbs([7, -5, 3], shuffled=True)}
    if bad is not None:
        state["flaws"][bad] = 1
    program = quotient_steps([(LOAD, 0, 0), (LOAD, 1, 0)], 0, 1, "", 2)
    quotient = StateQuotient([("flaws", 5)], [("sums", 8 * WORDS, WORDS), ("sums", 16 * WORDS, WORDS)], program)
    value, number = quotient(state), quotient.of(state)()
    assert value is None if bad is not None else value.item() == -20 / 3
    assert math.isnan(number) if bad is not None else number == -20 / 3
    assert quotient({**state, "sums": state["sums"].t().contiguous().t()}) is None


def test_a_doubtful_quotient_of_a_state_is_none():
    program = quotient_steps([(LOAD, 0, 0), (LOAD, 1, 0)], 0, 1, "", 0)
    assert StateQuotient([], [("a", 0, WORDS), ("b", 0, WORDS)], program)({"a": limbs([1]), "b": limbs([0])}) is None
