"""Log-odds of multiclass logits against decimal arithmetic of 80 digits."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.tally.scores.labelled_scores import log_odds
from thinning import draws, one_of_each

INF = math.inf


def exact_log_odds(row):
    """`z_c - log(sum of exp(z_j) over all other j)`, to the nearest float."""
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 80, -(10**9), 10**9
        z = [Decimal(x) for x in row]
        values = []
        for c in range(len(z)):
            others = [x for j, x in enumerate(z) if j != c]
            top = max(others)
            total = sum((x - top).exp() for x in others if x.is_finite()) if top.is_finite() else Decimal(0)
            values.append(float(z[c] - (top + total.ln())) if total else INF)
        return values


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-7), (torch.float64, 4e-16)])
@pytest.mark.parametrize("num_classes", [2, 3, 5, 40])
@pytest.mark.parametrize("scale", [1e-2, 1.0, 10.0, 1e4])
@one_of_each(lambda dtype, num_classes, **_: (dtype, num_classes))
def test_log_odds_are_those_of_decimal_arithmetic(dtype, tolerance, num_classes, scale):
    logits = torch.randn(len(draws(20)), num_classes, dtype=dtype) * scale
    expected = [exact_log_odds(row) for row in logits.tolist()]
    np.testing.assert_allclose(log_odds(logits).numpy(), expected, rtol=tolerance, atol=tolerance)


def test_two_classes_have_the_differences_of_their_logits():
    logits = torch.randn(100, 2) * 30
    difference = logits[:, 0] - logits[:, 1]
    assert torch.equal(log_odds(logits), torch.stack([difference, -difference], 1))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([1e4, -1e4, 0.0], [1e4, -2e4, -1e4]),
        ([0.0, -1e4, 0.0], [0.0, -1e4 - math.log(2), 0.0]),
        ([200.0, 0.0, 0.0], [200 - math.log(2), -200.0, -200.0]),
        ([5.0, -INF, -INF], [INF, -INF, -INF]),
        ([1.0, 0.0, -INF], [1.0, -1.0, -INF]),
        ([3e38, -3e38, -3e38], [INF, -INF, -INF]),
    ],
)
def test_saturated_and_impossible_classes(row, expected):
    assert log_odds(torch.tensor([row])).tolist() == [pytest.approx(expected, rel=2e-7)]


@pytest.mark.parametrize("row", [[INF, 0.0, 0.0], [INF, INF, 0.0], [-INF] * 3, [math.nan, 0.0, 1.0]])
def test_rows_without_a_softmax_have_a_nan(row):
    assert log_odds(torch.tensor([row])).isnan().any()


@given(
    st.integers(1, 70),
    st.integers(2, 40),
    st.integers(0, 2**32),
    st.integers(-(2**10), 2**10).map(float),
)
def test_neither_a_constant_per_row_nor_the_neighbours_change_a_bit(rows, num_classes, seed, shift):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randint(-(2**12), 2**12, (rows, num_classes), generator=generator) / 64
    whole = log_odds(logits)
    assert torch.equal(log_odds(logits + shift), whole)
    assert torch.equal(torch.cat([log_odds(row) for row in logits.split(1)]), whole)
