"""The largest error against exact fractions, in every dtype and where differences neither fit nor are finite."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.tally.base import Batch, merge
from assay.tally.sums.largest_error import LargestError

FLOATS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20)
INTEGERS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20)


def counted(*batches):
    tally = LargestError()
    states = []
    for preds, target in batches:
        states.append(tally.zero(torch.device("cpu")))
        tally.add(states[-1], Batch(preds, target))
    return tally.compute(merge(tally, states))


def exact(preds, target):
    """The largest difference, rounded once."""
    return float(max(abs(Fraction(p) - Fraction(t)) for p, t in zip(preds.tolist(), target.tolist(), strict=True)))


@given(FLOATS, st.randoms())
def test_of_float32_it_is_exact(values, random):
    preds = torch.tensor(values, dtype=torch.float32)
    target = torch.tensor(random.sample(values, len(values)), dtype=torch.float32)
    assert counted((preds, target)) == exact(preds, target)
    assert counted((preds[:1], target[:1]), (preds, target)) == exact(preds, target)


@given(INTEGERS, st.randoms())
def test_of_integers_it_is_exact(values, random):
    preds, target = torch.tensor(values), torch.tensor(random.sample(values, len(values)))
    assert counted((preds, target)) == exact(preds, target)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.bool])
def test_dtypes_may_be_mixed(dtype):
    preds, target = torch.tensor([1, 0, 1]).to(dtype), torch.tensor([1, 1, 0], dtype=torch.int16)
    expected = exact(preds, target)
    assert counted((preds, target), (target.double(), preds.double() + 7)) == expected + 7


def test_differences_may_be_beyond_float32_and_below_float64():
    top = torch.finfo(torch.float32).max
    assert counted((torch.tensor([top]), torch.tensor([-top]))) == 2 * top
    preds, target = torch.tensor([1.0, 1.0]), torch.tensor([-(2.0**-40), -(2.0**-39)])
    assert counted((preds, target)) == 1 + 2.0**-39


@pytest.mark.parametrize("strange", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_counted_and_makes_it_nan(strange):
    tally = LargestError()
    state = tally.zero(torch.device("cpu"))
    tally.add(state, Batch(torch.tensor([1.0, strange]), torch.tensor([0.0, strange])))
    assert tally.compute(state) != tally.compute(state)
    assert [problem.count for problem in tally.invalid_values(state)] == [1]
