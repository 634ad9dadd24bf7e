"""Roots and quotients of fractions against integer arithmetic and decimals."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.metrics.exact_arithmetic import combined, over_root, quotient, root, rounded

POSITIVE = st.fractions(min_value=Fraction(1, 10**40), max_value=10**40)


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


@given(POSITIVE, st.integers(-900, 900))
def test_a_root_is_rounded_once(value, exponent):
    value *= Fraction(2) ** exponent
    with localcontext(prec=120):
        assert root(value) == float(decimal(value).sqrt())


@given(st.floats(1e-150, 1e150))
def test_the_root_of_a_square_is_the_number(x):
    assert root(Fraction(x) ** 2) == x


def test_a_root_just_beside_a_tie_goes_to_the_right_side():
    tie = Fraction(2**53 + 1, 2**53)  # half way between 1 and the next float64
    assert root(tie**2) == 1.0  # to even
    assert root(tie**2 + Fraction(1, 2**400)) == 1 + 2**-52
    assert root(tie**2 - Fraction(1, 2**400)) == 1.0


@given(POSITIVE, POSITIVE, st.sampled_from([1, -1]))
def test_a_number_over_a_root_is_rounded_once(above, below, sign):
    with localcontext(prec=120):
        assert over_root(sign * above, below) == sign * float(decimal(above) / decimal(below).sqrt())


@pytest.mark.parametrize("value", [Fraction(-1), math.nan, -math.inf])
def test_no_root(value):
    assert math.isnan(root(value))


def test_edges():
    assert root(Fraction(0)) == 0
    assert root(Fraction(10) ** 700) == math.inf
    assert root(math.inf) == math.inf
    assert rounded(Fraction(10) ** 400) == math.inf
    assert rounded(-(Fraction(10) ** 400)) == -math.inf
    assert math.isnan(over_root(Fraction(0), Fraction(0)))
    assert math.isnan(over_root(math.nan, Fraction(1)))
    assert math.isnan(quotient(Fraction(0), Fraction(0)))
    assert math.isnan(quotient(math.inf, Fraction(1)))
    assert quotient(Fraction(-2), Fraction(0)) == -math.inf
    assert quotient(Fraction(1), Fraction(3)) == Fraction(1, 3)
    assert combined((2, Fraction(1, 3)), (-1, Fraction(1, 6))) == Fraction(1, 2)
    assert math.isnan(combined((1, math.inf), (1, Fraction(1))))
