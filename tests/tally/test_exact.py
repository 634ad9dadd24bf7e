"""Exact sums against rationals, at the edges of the formats."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.tally.sums import exact
from thinning import draws

FLOAT32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
FLOAT64 = st.floats(allow_nan=False, allow_infinity=False)


def total(limbs: torch.Tensor, order: int) -> Fraction:
    (value,) = exact.to_integers(exact.canonical(limbs)).ravel()
    return Fraction(value) * Fraction(2) ** exact.origin(order)


def summed(parts: exact.Parts) -> Fraction:
    limbs = torch.zeros(1, 1, exact.num_limbs(parts.order), dtype=torch.int64)
    exact.add_columns(limbs, [[parts]])
    return total(limbs, parts.order)


def column(values, dtype) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype).view(-1, 1)


@given(st.lists(FLOAT32, min_size=1, max_size=30))
def test_float32_is_summed_exactly(values):
    assert summed(exact.parts(column(values, torch.float32))) == sum(map(Fraction, values))


@given(st.lists(FLOAT64, min_size=1, max_size=30))
def test_float64_is_summed_exactly(values):
    assert summed(exact.parts(column(values, torch.float64))) == sum(map(Fraction, values))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30))
def test_integers_are_summed_exactly(values):
    assert summed(exact.parts(column(values, torch.int64))) == sum(values)


@given(st.lists(st.tuples(FLOAT32, FLOAT64, st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=12))
def test_products_of_two_and_three_are_summed_exactly(rows):
    x, y, w = (exact.parts(column(c, d)) for c, d in zip(zip(*rows, strict=True), DTYPES, strict=True))
    assert summed(exact.product(x, y)) == sum(Fraction(a) * Fraction(b) for a, b, _ in rows)
    assert summed(exact.product(exact.product(x, y), w)) == sum(Fraction(a) * Fraction(b) * c for a, b, c in rows)


DTYPES = (torch.float32, torch.float64, torch.int64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_and_the_smallest_fit(dtype, order, sign):
    info = torch.finfo(dtype)
    for value in (info.max, info.tiny * info.eps):
        x = exact.parts(torch.full((40_000, 1), value, dtype=dtype))
        product = x if order == 1 else exact.product(x, x) if order == 2 else exact.product(exact.product(x, x), x)
        signed = product.times_sign(torch.full((40_000, 1), sign))
        assert summed(signed) == sign * 40_000 * Fraction(value) ** order


def test_adding_again_and_again_never_wraps_around():
    limbs = torch.zeros(1, 1, exact.num_limbs(1), dtype=torch.int64)
    x = exact.parts(torch.full((3, 1), -1.5))
    for _ in draws(200):
        exact.add_columns(limbs, [[x]])
        assert limbs[..., :-1].abs().max() < 2**34
    assert total(limbs, 1) == -4.5 * len(draws(200))


@given(st.lists(st.tuples(FLOAT32, st.integers(0, 3)), min_size=1, max_size=40))
def test_channels_are_summed_apart(rows):
    values, channel = torch.tensor([v for v, _ in rows]), torch.tensor([k for _, k in rows])
    limbs = torch.zeros(4, exact.num_limbs(1), dtype=torch.int64)
    exact.add_to(limbs, exact.parts(values), channel)
    for k in range(4):
        assert total(limbs[k : k + 1], 1) == sum(Fraction(v) for v, c in rows if c == k)


def test_both_are_the_sum_of_two_terms():
    x, y = exact.parts(column([1e30, -2.0], torch.float32)), exact.parts(column([1e-300, 5.0], torch.float64))
    given_ = Fraction(torch.tensor(1e30).item()) + Fraction(1e-300) + 3
    assert summed(exact.both(x, y)) == given_


@given(st.lists(FLOAT32, min_size=2, max_size=20), st.integers(1, 10))
def test_settled_limbs_have_one_form(values, cut):
    x = column(values, torch.float32)
    whole, parted = (torch.zeros(1, 1, exact.num_limbs(1), dtype=torch.int64) for _ in range(2))
    exact.add_columns(whole, [[exact.parts(x)]])
    for rows in x.split(cut):
        exact.add_columns(parted, [[exact.parts(rows)]])
    assert exact.canonical(parted).tolist() == exact.canonical(whole).tolist()


@given(
    st.integers(1, 100).flatmap(
        lambda rows: st.lists(
            st.lists(st.integers(-(2**62), 2**62), min_size=5, max_size=5), min_size=rows, max_size=rows
        )
    )
)
def test_carries_are_those_of_integers_for_few_and_for_many_sums(rows):
    limbs = torch.tensor(rows)
    values = [sum(word << (exact.WORD * k) for k, word in enumerate(row)) for row in rows]
    words = exact.canonical(limbs)
    assert exact.to_integers(limbs).tolist() == values
    assert exact.to_integers(words).tolist() == values
    assert words[:, :-1].min() >= 0
    assert words[:, :-1].max() <= exact.MASK
    assert limbs.tolist() == rows


@pytest.mark.parametrize("rows", [1, 64, 65])
def test_a_borrow_goes_through_all_words(rows):
    limbs = torch.zeros(rows, 5, dtype=torch.int64)
    limbs[:, 0] = -3
    limbs[:, 4] = 1
    expected = (1 << (4 * exact.WORD)) - 3
    assert exact.to_integers(exact.canonical(limbs)).tolist() == [expected] * rows


def test_no_sums_at_all_settle():
    assert exact.canonical(torch.zeros(0, 3, 5, dtype=torch.int64)).shape == (0, 3, 5)
