"""The largest and the smallest value against Python's own."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import DtypeError
from assay.tally.base import Batch, BatchLayout, TensorLayout, merge
from assay.tally.sums.extremes import Extremes

CPU = torch.device("cpu")
NUMBERS = {
    torch.float32: st.floats(width=32, allow_nan=False),
    torch.float16: st.floats(width=16, allow_nan=False),
    torch.float64: st.floats(allow_nan=False),
    torch.int64: st.integers(-(2**63), 2**63 - 1),
    torch.uint8: st.integers(0, 255),
    torch.bool: st.booleans(),
}


def counted(*batches: torch.Tensor, tally: Extremes | None = None):
    tally = tally or Extremes()
    states = []
    for batch in batches:
        state = tally.zero(CPU)
        tally.add(state, Batch(batch))
        states.append(state)
    return merge(tally, states)


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@given(data=st.data())
def test_the_extremes_are_found_for_every_dtype(dtype, data):
    values = data.draw(st.lists(NUMBERS[dtype], min_size=1, max_size=20))
    x = torch.tensor(values, dtype=dtype)
    read = Extremes().compute(counted(x[:3], x[3:]))
    assert read == (max(values), min(values))


def test_dtypes_may_be_mixed():
    read = Extremes().compute(
        counted(torch.tensor([1, 7]), torch.tensor([-2.5]), torch.tensor([7.25, 0], dtype=torch.float64))
    )
    assert read == (7.25, -2.5)


def test_nan_counts_or_is_left_out():
    x = torch.tensor([math.nan, -math.inf, 3.0])
    state = counted(x)
    assert all(map(math.isnan, Extremes().compute(state)))
    assert [(p.what, p.count, p.fatal) for p in Extremes().invalid_values(state)] == [("values are NaN", 1, False)]
    assert Extremes(nan_policy="ignore").compute(state) == (3.0, -math.inf)
    assert Extremes(nan_policy="ignore").invalid_values(state) == []
    (problem,) = Extremes(nan_policy="warn").invalid_values(state)
    assert (problem.count, problem.fatal) == (int(state["nan"]), False)
    assert Extremes(nan_policy="warn").compute(state) == Extremes(nan_policy="ignore").compute(state)
    assert Extremes(nan_policy="warn").union(Extremes(nan_policy="ignore")) == Extremes(nan_policy="warn")
    only = counted(torch.tensor([math.nan]))
    assert all(map(math.isnan, Extremes(nan_policy="ignore").compute(only)))


def test_both_ways_to_treat_nan_are_read_from_one_state():
    ignored, counted = Extremes("ignore"), Extremes()
    assert ignored.union(counted) == counted.union(ignored) == counted
    assert ignored.union(Extremes(0.5)) is Extremes(0.5).union(counted) is None


def test_an_update_waits_for_nothing(count_ops):
    for x in (torch.rand(10), torch.arange(3), torch.rand(0)):
        state = Extremes().zero(CPU)
        with count_ops() as counts:
            Extremes().add(state, Batch(x))
        assert counts.syncs == []


def test_complex_numbers_have_no_order():
    with pytest.raises(DtypeError, match=r"preds: got torch.complex64, expected real numbers: others have no order\."):
        Extremes().check(BatchLayout(TensorLayout(torch.complex64, ()), None, None))
